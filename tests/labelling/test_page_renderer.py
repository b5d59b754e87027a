"""The views of a page, and the limits of preparing them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from growth import MOST_EXPONENT, exponent_of

from focused.archive.archive import PageRow
from focused.labelling.labelling_task import FetchedPages
from focused.labelling.page_renderer import (
    MAX_ORIGINAL_CHARS,
    MAX_TEXT_CHARS,
    PageRenderer,
    readable_text,
    sanitised_html,
)
from focused.parser_process import ParsingLimits
from focused.web.page import Fetched
from tests.labelling.hostile_originals import VECTORS, hostile_page
from tests.labelling.labelled_crawls import page_row

SLOW = b"Whales come first. " + b"&" * 2_000_000
"""The sanitiser takes minutes; no page is known that slows the text extractor."""


@dataclass(frozen=True, slots=True)
class Bodies(FetchedPages):
    """A crawl with given records that counts its readers."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def response(self, page: PageRow) -> Fetched | None:
        self.asked.append(page.url)
        body = self.bodies.get(page.url)
        return None if body is None else html(body)


def html(body: bytes | str) -> Fetched:
    body = body if isinstance(body, bytes) else body.encode()
    return Fetched("https://h.example/", 200, {"content-type": "text/html"}, body)


def bodies(**named: bytes) -> Bodies:
    return Bodies(Path(), {}, 0, {f"http://{name}.example/": body for name, body in named.items()})


def page(name: str) -> PageRow:
    return page_row(f"http://{name}.example/")


@pytest.fixture
def reader() -> Iterator[PageRenderer]:
    with PageRenderer() as opened:
        yield opened


def test_text_with_long_runs_of_blanks_takes_time_in_proportion():
    def blanks(count: int) -> Fetched:
        return html(f"<pre>x{' ' * count}y</pre>")

    assert exponent_of(readable_text, blanks, 160_000)[0] < MOST_EXPONENT


def test_paragraphs_are_kept_and_blank_lines_collapsed():
    text = readable_text(html("<pre>one  \n   \n\t\n\n two \nthree</pre>"))
    assert [line.strip() for line in text.split("\n")] == ["one", "", "two", "three"]


def test_long_text_is_cut():
    assert len(readable_text(html("<p>" + "whale " * 10_000))) <= MAX_TEXT_CHARS + 2


def test_an_original_keeps_structure_and_text():
    kept = '<h1>Whales</h1><ul><li>blue</li></ul><table><tbody><tr><td colspan="2">x</td></tr>'
    assert sanitised_html(html(kept)).startswith(kept)


def test_an_original_has_no_attribute_that_could_hold_a_url_style_or_script():
    found = sanitised_html(html("<p style='x' id=a class=b onclick=c title=d lang=de>t</p>"))
    assert found == '<p lang="de">t</p>'


@pytest.mark.parametrize("vector", VECTORS)
def test_sanitising_what_was_sanitised_changes_nothing(vector):
    """Mutation attacks rely on output that another parser reads differently."""
    once = sanitised_html(html(hostile_page(vector, "twice")))
    assert sanitised_html(html(once)) == once


def test_a_sanitised_original_is_bounded():
    assert len(sanitised_html(html("<" * 1_900_000))) <= MAX_ORIGINAL_CHARS


def test_a_page_that_takes_too_long_is_shown_from_its_beginning_and_says_so():
    # By CPU time alone: on a busy machine a good page may take seconds by the clock.
    with PageRenderer(ParsingLimits(cpu_s=2.0)) as reader:
        crawled = bodies(slow=SLOW, good=b"<p>Krill.</p>")
        prepared = reader.original(crawled, page("slow"))
        assert "could not be prepared within" in prepared.problem
        assert reader.text(crawled, page("good")).content == "Krill."


def test_a_page_is_prepared_once(reader):
    crawled = bodies(good=b"<p>Krill.</p>")
    first = reader.text(crawled, page("good"))
    assert reader.text(crawled, page("good")) is first
    assert crawled.asked == ["http://good.example/"]


def test_a_record_that_cannot_be_read_is_a_problem_and_no_error(reader):
    assert "cannot be read" in reader.text(bodies(), page("gone")).problem
    assert "cannot be read" in reader.original(bodies(), page("gone")).problem


def test_after_it_is_closed_no_process_is_left(reader):
    reader.text(bodies(good=b"<p>Krill.</p>"), page("good"))
    process = reader._parser._process
    assert process is not None and process.poll() is None
    reader.close()
    assert process.poll() is not None
