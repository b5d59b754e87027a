"""Pages that need JavaScript in a crawl: counted, selected, learned from, archived as rendered."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator

from focused.archive.archive import page_rows
from focused.archive.warc_files import WARC_FILE
from focused.crawl import Crawl, Fetch
from focused.crawl.javascript import JavascriptPages, select_to_render
from focused.rendering.subrequests import RenderFailure, RenderResult
from focused.topic import Scope
from focused.web.html.parse import parse_page
from focused.web.page import Page
from focused.web.warc_reader import read_response
from tests.support.recorded_web import html
from tests.support.simulated import FETCH_S, Simulation, page, raw, site, topic

A = "http://a.test/"
SHELL = '<div id="root"></div><script type="module" src="/app.js"></script>'
CONTENT = html("Whales", "/1", "/2", "/3", text="A whale is a large animal of the sea. " * 8)
WEB = site(
    page(A, "/shell", "/text", "/empty", text="All whales"),
    raw(A + "shell", SHELL),
    raw(A + "empty", f"{SHELL}<p>"),
    page(A + "text", text="A whale " * 150),
)

Open = Callable[..., Simulation]


@pytest.fixture
def crawl(tmp_path: Path, simulate: Open) -> Open:
    def open_crawl(javascript: str, web: object = WEB, *seeds: str) -> Simulation:
        subject = topic(tmp_path / "crawl", *(seeds or (A,)), scope=Scope(javascript=javascript))
        return simulate(subject, web)

    return open_crawl


def pages_of(crawl: Crawl) -> JavascriptPages:
    pages = crawl.feature(JavascriptPages)
    assert pages is not None
    return pages


def lease_of(simulation: Simulation, url: str) -> int:
    """Crawl until ``url`` is in flight; return its lease."""
    while True:
        step = simulation.crawl.next(simulation.now)
        if isinstance(step, Fetch) and step.url == url:
            return step.lease
        if isinstance(step, Fetch):
            simulation.now += FETCH_S
            simulation.crawl.settle(step.lease, simulation._answer(step), simulation.now)
        else:
            simulation.now += 1.0


def shown() -> Page:
    found = parse_page(raw(A + "shell", CONTENT))
    assert isinstance(found, Page)
    return found


def test_by_default_pages_that_show_nothing_are_counted_with_their_host(crawl):
    done = crawl("report").run()
    assert done.crawl.counters.kinds("javascript") == {"needing": 2}
    assert pages_of(done.crawl).needing_by_host(5) == {"a.test": 2}


def test_ignored_pages_are_not_looked_for(crawl):
    done = crawl("ignore").run()
    assert done.crawl.feature(JavascriptPages) is None
    assert done.crawl.counters.kinds("javascript") == {}


def test_what_was_counted_survives_a_restart(crawl):
    done = crawl("report").run()
    done.restart()
    assert pages_of(done.crawl).needing_by_host(5) == {"a.test": 2}


def test_without_rendering_no_page_is_selected(crawl):
    simulation = crawl("report", WEB, A + "shell")
    lease = lease_of(simulation, A + "shell")
    answer = raw(A + "shell", SHELL)
    parsed = simulation.crawl.parser.page_parser().read(answer)
    assert select_to_render(simulation.crawl, lease, answer, parsed, simulation.now) is None


def test_a_selected_page_delays_its_host_for_the_requests_of_its_scripts(crawl):
    simulation = crawl("render", WEB, A + "shell")
    lease, answer = lease_of(simulation, A + "shell"), raw(A + "shell", SHELL)
    parsed = simulation.crawl.parser.page_parser().read(answer)
    candidate = select_to_render(simulation.crawl, lease, answer, parsed, simulation.now)
    assert candidate is not None
    requests = simulation.crawl.hosts.direct_requests
    own = requests.add(A + "app.js", simulation.now, lease)
    assert requests.wait_s(own, simulation.now) == pytest.approx(1.0)
    assert requests.wait_s(own, simulation.now + 1.0) == 0.0


def test_other_requests_wait_until_the_page_is_settled(crawl):
    simulation = crawl("render", WEB, A + "shell")
    lease_of(simulation, A + "shell")
    requests = simulation.crawl.hosts.direct_requests
    other = requests.add(A + "picture", simulation.now)
    assert requests.wait_s(other, simulation.now + 100.0) > 0.0


def test_a_gain_is_used_and_remembered(crawl):
    simulation = crawl("render", WEB, A + "shell")
    lease, answer = lease_of(simulation, A + "shell"), raw(A + "shell", SHELL)
    crawled = simulation.crawl
    parsed = crawled.parser.page_parser().read(answer)
    candidate = select_to_render(crawled, lease, answer, parsed, simulation.now)
    assert candidate is not None
    result = RenderResult(CONTENT, requests=3, request_bytes=700, seconds=1.5)
    assert pages_of(crawled).learn(candidate, result, shown())
    crawled.settle(lease, replace(answer, rendered=CONTENT), simulation.now)
    simulation.restart()
    learned = pages_of(simulation.crawl).hosts["a.test"]
    assert (learned.rendered, learned.gained, learned.requests) == (1, 1, 3)
    events = simulation.crawl.counters.kinds("javascript")
    assert events == {"needing": 1, "rendered": 1, "gained": 1, "requests": 3, "milliseconds": 1500}
    assert simulation.crawl.counters.bytes >= 700


@pytest.mark.parametrize("failure", [RenderFailure.TIMEOUT, RenderFailure.NO_BROWSER])
def test_a_failure_keeps_the_raw_page_and_is_counted(crawl, failure):
    simulation = crawl("render", WEB, A + "shell")
    lease, answer = lease_of(simulation, A + "shell"), raw(A + "shell", SHELL)
    crawled = simulation.crawl
    parsed = crawled.parser.page_parser().read(answer)
    candidate = select_to_render(crawled, lease, answer, parsed, simulation.now)
    assert candidate is not None
    assert not pages_of(crawled).learn(candidate, RenderResult(failure=failure), None)
    assert crawled.counters.kinds("javascript")[f"failed/{failure}"] == 1
    # Without a browser nothing was learned of the page.
    learned = pages_of(crawled).hosts["a.test"].by_template
    assert bool(learned) == (failure is RenderFailure.TIMEOUT)


def rendered_crawl(crawl: Open) -> Simulation:
    other = replace(raw(A + "other", SHELL), rendered=CONTENT.replace(b"large", b"huge"))
    web = {
        **site(page(A, "/shell", "/other", text="whale"), other),
        A + "shell": replace(raw(A + "shell", SHELL), rendered=CONTENT),
    }
    return crawl("render", web).run()


def test_text_and_links_are_those_of_the_rendered_page(crawl):
    done = rendered_crawl(crawl)
    rows = {row["url"]: row for row in page_rows(done.store.tables)}
    row = rows[A + "shell"]
    assert (row["title"], row["rendered"], row["bytes"]) == ("Whales", True, len(SHELL))
    assert row["on_topic"]
    assert rows[A]["rendered"] is False
    assert A + "2" in [url for _, url in done.asked]


def test_the_warc_has_the_raw_page_and_the_rendered_one_as_its_conversion(crawl):
    done = rendered_crawl(crawl)
    path = done.topic.output.folder / WARC_FILE
    done.close()
    with path.open("rb") as file:
        found = [
            (each.headers["WARC-Type"], dict(each.headers), each.reader.read())
            for each in ArchiveIterator(file, parse_http=False)
        ]
    kinds = [kind for kind, _, _ in found]
    at = kinds.index("conversion")
    _, fields, block = found[at]
    assert block == CONTENT
    assert fields["Content-Type"] == "text/html; charset=utf-8"
    assert fields["WARC-Refers-To"] == found[at - 1][1]["WARC-Record-ID"]
    assert found[at - 1][2].endswith(SHELL.encode())
    # The second shell is the same: a revisit record, with a conversion of its own.
    assert kinds[kinds.index("revisit") + 1] == "conversion"


def test_a_stored_page_is_read_as_it_was_rendered(crawl):
    done = rendered_crawl(crawl)
    rows = {row["url"]: row for row in page_rows(done.store.tables)}
    for url, body in (
        (A + "shell", CONTENT),
        (A + "other", CONTENT.replace(b"large", b"huge")),
        (A, WEB[A].body),  # type: ignore[union-attr]
    ):
        row = rows[url]
        stored = read_response(done.topic.output.folder / row["warc_file"], row["warc_offset"])
        assert stored is not None
        if url != A:
            assert stored.body == body
        assert stored.headers["content-length"] == str(len(stored.body))
