"""The link graph of a recorded web, as a crawl may follow it."""

from pathlib import Path

import numpy as np
import pytest

from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.link_graph import GRAPH_FILE, LinkGraph, open_link_graph
from focused_lab.simulation.parsed_web import CACHE_FOLDER, ParsedWeb
from tests.support.recorded_web import html, page, record_web, redirect

A = "http://a.test"
B = "http://b.test"
LINKS = """<title>Start</title><a href="/near">near</a><a href="/near#again">near</a>
<a href="/old">moved</a><a href="https://b.test/far">far</a><a href="/secret/x">secret</a>
<a href="/shy" rel="nofollow">shy</a><a href="/missing">missing</a><a href="/circle">circle</a>
<a href="http://gone.test/">gone</a><a href="/">self</a>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return record_web(
        tmp_path / "web",
        page(f"{A}/", LINKS),
        page(
            f"{A}/near",
            '<title>Near</title><meta name="robots" content="nofollow"><a href="/shy">x',
        ),
        page(f"{A}/shy", html("Shy", f"{B}/far", "/near")),
        page(f"{A}/new", '<meta http-equiv="refresh" content="0; url=/shy">'),
        page(f"{A}/secret/x", html("Secret", "/shy")),
        page(f"{A}/void", "<html></html>"),
        page(f"{B}/far", html("Far", f"{A}/old", f"{A}/void")),
        page(f"{A}/robots.txt", "User-agent: *\nDisallow: /secret/\n"),
        redirect(f"{A}/old", "/older"),
        redirect(f"{A}/older", "/new"),
        redirect(f"{A}/circle", "/circle-2"),
        redirect(f"{A}/circle-2", "/circle"),
    )


@pytest.fixture
def graph(folder: Path) -> LinkGraph:
    return opened(folder)


def opened(folder: Path, progress: list[tuple[int, int]] | None = None) -> LinkGraph:
    with ParsedWeb(RecordedWeb.open(folder)) as web:
        tell = None if progress is None else lambda done, total: progress.append((done, total))
        return open_link_graph(web, tell)


def targets(graph: LinkGraph, url: str) -> set[str]:
    row = graph.links[[graph.index[url]]]
    return {graph.urls[place] for place in row.indices}


def marked(graph: LinkGraph, *urls: str) -> np.ndarray:
    return np.isin(np.array(graph.urls), urls)


def away(graph: LinkGraph, distances: np.ndarray) -> dict[str, int]:
    return {url.split("/", 3)[3]: int(n) for url, n in zip(graph.urls, distances, strict=True)}


def test_duplicates_refer_to_the_first_page(tmp_path):
    texts = {"a": "one", "b": "two", "c": "one", "d": "three"}
    pages = [page(f"{A}/{name}", html("Page", text=text)) for name, text in texts.items()]
    folder = record_web(tmp_path / "web", *pages)
    for graph in (opened(folder), opened(folder)):  # built, then read
        assert [graph.urls[place] for place in graph.first_duplicate] == [
            f"{A}/{name}" for name in "abad"
        ]


def test_pages_are_what_answers_with_200_robots_left_out(graph):
    paths = {"/", "/near", "/shy", "/new", "/secret/x", "/void"}
    assert set(graph.urls) == {f"{A}{path}" for path in paths} | {f"{B}/far"}


def test_a_page_links_to_where_its_links_end_once_and_never_to_itself(graph):
    found = {f"{A}/near", f"{A}/new", f"{B}/far", f"{A}/secret/x"}
    assert targets(graph, f"{A}/") == found
    assert (graph.links.data == 1).all()


def test_nofollow_pages_lead_nowhere(graph):
    assert targets(graph, f"{A}/near") == set()


def test_a_refresh_leads_on_like_a_link(graph):
    assert targets(graph, f"{A}/new") == {f"{A}/shy"}


def test_in_degrees_count_linking_pages(graph):
    counts = {url: int(n) for url, n in zip(graph.urls, graph.in_degrees, strict=True)}
    assert counts[f"{A}/new"] == 2
    assert counts[f"{A}/shy"] == 2
    assert counts[f"{A}/"] == 0


def test_what_robots_txt_forbids_or_cannot_be_parsed_is_not_fetchable(graph):
    kept = {url for url, can in zip(graph.urls, graph.fetchable, strict=True) if not can}
    assert kept == {f"{A}/secret/x", f"{A}/void"}


def test_distances_are_clicks_along_the_links(graph):
    clicks = away(graph, graph.distances(marked(graph, f"{A}/shy")))
    assert clicks == {
        "": 2, "near": -1, "shy": 0, "new": 1, "secret/x": -1, "void": -1, "far": 2,
    }  # fmt: skip


def test_a_page_that_may_not_be_passed_closes_the_ways_through_it(graph):
    open_pages = graph.fetchable & ~marked(graph, f"{A}/new")
    clicks = away(graph, graph.distances(marked(graph, f"{A}/shy"), open_pages))
    assert {path for path, n in clicks.items() if n >= 0} == {"shy"}


def test_depths_are_clicks_from_the_nearest_seed(graph):
    clicks = away(graph, graph.depths(marked(graph, f"{A}/")))
    assert clicks == {
        "": 0, "near": 1, "shy": 2, "new": 1, "secret/x": -1, "void": -1, "far": 1,
    }  # fmt: skip


def test_without_targets_every_page_is_unreachable(graph):
    assert (graph.distances(marked(graph)) == -1).all()


def same(one: LinkGraph, other: LinkGraph) -> bool:
    matrices = (one.links != other.links).nnz == 0
    return matrices and one.urls == other.urls and bool((one.fetchable == other.fetchable).all())


def test_the_second_opening_reads_what_the_first_made(folder):
    progress: list[tuple[int, int]] = []
    made, read = opened(folder, progress), opened(folder, progress)
    assert progress == [(7, 7)]
    assert same(made, read)


def test_a_damaged_file_is_made_anew(folder):
    made = opened(folder)
    path = folder / CACHE_FOLDER / GRAPH_FILE
    path.write_bytes(path.read_bytes()[:200])
    assert same(opened(folder), made)


def test_a_web_recorded_anew_has_a_graph_of_its_own(folder):
    opened(folder)
    warc = next(folder.glob("*.warc.gz"))
    warc.write_bytes(warc.read_bytes() * 2)
    progress: list[tuple[int, int]] = []
    opened(folder, progress)
    assert progress
