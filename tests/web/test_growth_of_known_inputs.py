"""Pages and files that once took quadratic or cubic time."""

import gzip
import re
from collections.abc import Callable
from typing import Any

import pytest
from growth import MOST_EXPONENT, exponent_of

from focused.web import warc_reader
from focused.web.feed_entries import FeedEntry, read_entries
from focused.web.html.document import find_day
from focused.web.html.main_text import parse_tree
from focused.web.html.parse import parse_page
from focused.web.html.search_forms import SearchForm
from focused.web.html.text_structure import PARAGRAPH, TextBlock, render_markdown
from focused.web.page import Fetched, Link
from focused.web.robots.robots_rules import parse_robots_body
from focused_lab.changing_web.changed_content import remove_links

RESULTS = "https://a.test/s?q=whale"
SEARCH = SearchForm("https://a.test/s", "q")


def page(body: str) -> Fetched:
    return Fetched("https://a.test/", 200, {"content-type": "text/html"}, body.encode())


def results(*anchors: str) -> tuple[Link, ...]:
    return tuple(Link(f"{RESULTS}&n={n}", anchor) for n, anchor in enumerate(anchors))


def parse_robots_file(text: str) -> object:
    return parse_robots_body(text.encode(), "WhaleBot")


CASES: dict[str, tuple[Callable[[Any], object], Callable[[int], Any], int]] = {
    "attributes of many html tags": (
        parse_page,
        lambda n: page("".join(f"<html a{k}=x>" for k in range(n)) + "text"),
        32_000,
    ),
    "attributes of many body tags": (
        parse_page,
        lambda n: page("<body>" + "".join(f"<BODY a{k}=x>" for k in range(n)) + "text"),
        32_000,
    ),
    "an unreadable crawl-delay": (
        parse_robots_file,
        lambda n: "User-agent: *\nCrawl-delay: " + "1" * n + "x",
        32_000,
    ),
    "an unreadable crawl-delay of many agents": (
        parse_robots_file,
        lambda n: "".join(f"User-agent: a{k}\n" for k in range(n)) + f"Crawl-delay: {'1' * n}x",
        8_000,
    ),
    "rules of many agents": (
        parse_robots_file,
        lambda n: "".join(f"User-agent: a{k}\n" for k in range(n)) + "Allow: /a\n" * n,
        8_000,
    ),
    "a link of signs": (
        lambda links: SEARCH.next_page(RESULTS, links),
        lambda n: results(">" * n + "a"),
        800,
    ),
    "Markdown of empty lines": (
        render_markdown,
        lambda n: [TextBlock(PARAGRAPH, "a" + "\n\u00a0" * n + "b")],
        16_000,
    ),
    "tags without an end in a feed": (
        lambda xml: list(read_entries(xml, FeedEntry(), "https://a.test/")),
        lambda n: "<rss><channel><item><link>/a</link><title>" + "<a" * n + ">",
        48_000,
    ),
    "a body of many gzip members": (
        lambda body: warc_reader._inflate(body, (31,)),
        lambda n: gzip.compress(b"", mtime=0) * n,
        32_000,
    ),
    "elements for dates around many others": (
        lambda html: find_day(parse_tree(html), in_text=False),
        lambda n: "<time>" * 100 + "<i>x</i>" * n,
        3_200,
    ),
    "links without an end tag in a recorded page": (
        lambda body: remove_links(body, (), ()),
        lambda n: b"<a href=x>" * n,
        8_000,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_time_is_linear(case):
    call, make, size = CASES[case]
    assert exponent_of(call, make, size)[0] < MOST_EXPONENT


@pytest.mark.parametrize(
    "anchor", [">>", " next page ", "[Next]", "\u2192", "\u203a", "more\u2026"]
)
def test_the_link_to_the_next_page_of_results_is_a_word_or_a_sign(anchor):
    assert SEARCH.next_page(RESULTS, results(anchor)) is not None


@pytest.mark.parametrize("anchor", ["", "...", "the next whale", "a > b", ">" * 101])
def test_other_links_are_not_the_next_page(anchor):
    assert SEARCH.next_page(RESULTS, results(anchor)) is None


def test_markup_at_the_start_of_each_line_is_escaped():
    text = render_markdown([TextBlock(PARAGRAPH, "a\n\n - b\n 1. c\n\u00a0# d")])
    assert re.findall(r"\\[-.#]", text) == ["\\-", "\\.", "\\#"]
