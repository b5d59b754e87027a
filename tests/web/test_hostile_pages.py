"""Hostile pages are parsed in time and memory linear in their size."""

import gzip
import time

import pytest

from focused.web.html.parse import MAX_QUICK_BYTES, MAX_QUICK_TAGS, needs_parser_process, parse_page
from focused.web.page import Failed, Fetched, Page

URL = "https://example.org/docs/page.html"
LINEAR_TIMES = 4.0  # eight times the bytes take so many times eight at most; quadratic is eight
ROUNDS = 12  # a busy machine spoils some


def read(body: bytes, content_type: str = "text/html; charset=utf-8") -> Page | Failed:
    return parse_page(Fetched(URL, 200, {"content-type": content_type}, body))


def filled(piece: bytes, length: int, before: bytes = b"", after: bytes = b"") -> bytes:
    return before + piece * ((length - len(before) - len(after)) // len(piece)) + after


SHAPES: dict[str, tuple[bytes, bytes, bytes]] = {
    "divs": (b"<div>", b"", b"text"),
    "divs with links": (b"<div><a href=x>y</a>", b"", b""),
    "links in links": (b"<object><a href=x>y", b"", b""),
    "inline": (b"<b><i>", b"", b"<a href=x>y</a>"),
    "options": (b"<option href=x>y", b"<select>", b""),
    "closed options": (b"<option>y</option>", b"<select>", b""),
    "optgroups": (b"<optgroup>y", b"", b""),
    "items of two kinds": (b"<dt><li>y", b"", b""),
    "ruby annotations": (b"<rt>y", b"", b""),
    "ruby parentheses": (b"<rp>y", b"", b""),
    "formatting": (b"<b><i><u><a href=x><p>", b"", b"text"),
    "open formatting": (b"<p>y", b"".join(b"<font a%d>" % n for n in range(990)), b""),
    "attributes of many tags": (b"<p %s>y" % b" ".join(b"a%d" % n for n in range(3_000)), b"", b""),
    "tables": (b"<table><tr><td>x", b"", b""),
    "misnested": (b"<b><p></b></p>", b"", b""),
    "one attribute": (b"x", b"<a href='", b"'>text</a>"),
    "attributes": (b" a=b", b"<a href=x", b">text</a>"),
    "one class": (b"nav ", b"<div class='", b"'><a href=x>y</a>"),
    "open comments": (b"<!--", b"", b""),
    "open tags": (b"<a ", b"", b""),
    "self-closed": (b"<a/", b"", b""),
    "entities": (b"&lt;&#1;&amp", b"", b""),
    "blanks": (b" ", b"<p>x", b"y"),
    "percent": (b"%", b"<a href='/?", b"'>text</a>"),
    "backslashes": (b"\\", b"<a href='", b"'>text</a>"),
    "base of dots": (b"../", b"<base href='", b"'><a href=x>text</a>"),
    "refresh": (b" ;,", b"<meta http-equiv=refresh content='0;url=", b"'>text"),
    "robots": (b"noindex,", b"<meta name=robots content='", b"'>text"),
    "robots names": (b"a:", b"<meta name=robots content='", b"'>text"),
    "charset": (b"charset=", b"<meta ", b">text"),
    "titles": (b"<title>x</title>", b"", b"text"),
    "headings": (b"<h2>x</h2><a href=x>y</a>", b"", b""),
    "prolog": (b"<!-- -->\n", b"", b"<urlset>"),
    "doctypes": (b"<!DOCTYPE [", b"", b"<rss>"),
    "lines of URLs": (b"http://a.com/x\n", b"", b"x"),
}


def _cpu_s(body: bytes, content_type: str) -> float:
    began = time.thread_time()
    read(body, content_type)
    return time.thread_time() - began


def _is_linear(small: bytes, large: bytes, content_type: str) -> bool:
    """Whether the least times of some rounds, small and large in turn, are in proportion.

    What others do on the machine makes a round longer, and none shorter.
    """
    # What is read in a few milliseconds grows with nothing that could hurt.
    small_s = large_s = float("inf")
    for _ in range(ROUNDS):
        small_s = min(small_s, _cpu_s(small, content_type))
        large_s = min(large_s, _cpu_s(large, content_type))
        if large_s < LINEAR_TIMES * 8 * max(0.01, small_s):
            return True
    return False


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("content_type", ["text/html", "application/xhtml+xml"])
def test_time_grows_with_bytes(shape, content_type):
    piece, before, after = SHAPES[shape]
    small, large = (filled(piece, size, before, after) for size in (100_000, 800_000))
    assert _is_linear(small, large, content_type)


def test_formatting_left_open_is_not_repeated_in_each_block_of_a_small_page():
    body = "".join(f"<font a{n}>" for n in range(700)) + "<p>whale" * 700
    open_formatting = min(_timed(body) for _ in range(3))
    closed = min(_timed(body.replace("<font", "</font")) for _ in range(3))
    assert open_formatting < 20 * closed + 0.01  # without a bound 490,000 elements are made


def _timed(body: str) -> float:
    return _cpu_s(body.encode(), "text/html")


def test_what_is_dropped_of_many_options_is_not_a_text():
    page = read(b"<select>" + b"<option>whale</option>" * 12_000 + b"</select><p>after")
    assert isinstance(page, Page)
    assert page.text.split() == ["whale"] * 12_000 + ["after"]


def test_ruby_annotations_of_a_long_page_are_read():
    page = read("<ruby>鯨<rp>(</rp><rt>くじら</rt><rp>)</rp></ruby> ".encode() * 2_000)
    assert isinstance(page, Page)
    assert page.text.split() == ["鯨(くじら)"] * 2_000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<p>whales</p>" * 100, False),
        (b"<p>" * (MAX_QUICK_TAGS + 1), True),
        (b"whales" * MAX_QUICK_BYTES, True),
        (gzip.compress(b"<urlset></urlset>", mtime=0), True),
    ],
)
def test_pages_of_many_bytes_or_tags_and_gzipped_ones_may_take_long(body, expected):
    assert needs_parser_process(Fetched(URL, 200, {}, body)) is expected


def test_an_attribute_of_ten_megabytes_is_not_a_link():
    page = read(b"<p>text<a href='" + b"x" * 10_000_000 + b"'>y</a>")
    assert isinstance(page, Page)
    assert page.links == ()


def test_a_url_of_a_hundred_kilobytes_is_not_a_link_and_its_neighbours_are():
    page = read(b"<a href='/" + b"a" * 40_000 + b"'>y</a>" * 3 + b"<a href=b>z</a>")
    assert isinstance(page, Page)
    assert [link.anchor for link in page.links] == ["z"]


def test_nul_bytes_are_not_in_what_is_read():
    page = read(
        b"<p>so\x00me te\x00xt</p><a href='a\x00b' title='x\x00'>y\x00</a>" + b"word " * 200
    )
    assert isinstance(page, Page)
    assert "\x00" not in page.text + page.links[0].url + page.links[0].anchor
