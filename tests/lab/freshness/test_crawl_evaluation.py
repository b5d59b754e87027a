"""Specification of the evaluation of a crawl of a changing web."""

import pytest

from focused.archive.page_history import VisitResult, VisitRow
from focused.errors import ConfigurationError
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    write_change_history,
)
from focused_lab.freshness.crawl_evaluation import (
    CrawlVisits,
    collect_visits,
    downloaded_pages,
    evaluate_crawl,
    read_truth,
    restrict_window,
    true_window,
)

START = 1_000.0
END = 1_100.0
A, B, C = (f"https://a.example/{name}" for name in ("a", "b.html", "c/"))


def created(at: float) -> Change:
    return Change(ChangeKind.CREATED, at)


def changed(at: float) -> Change:
    return Change(ChangeKind.CHANGED, at)


def deleted(at: float) -> Change:
    return Change(ChangeKind.DELETED, at)


TRUTH = [
    SiteChanges(
        "a.example",
        (
            PageChanges(A, (created(1_000), changed(1_020), changed(1_060))),
            PageChanges(B, (created(1_050),)),
            PageChanges(C, (created(1_000), deleted(1_040), created(1_080))),
        ),
    )
]
WINDOW = true_window(TRUTH, START, END)


def test_a_window_has_a_life_for_each_creation():
    lives = [(life.name, life.created_at, life.deleted_at, life.changes) for life in WINDOW.pages]
    never = float("inf")
    assert lives == [
        (A, 0.0, never, (20.0, 60.0)),
        (B, 50.0, never, ()),
        (C, 0.0, 40.0, ()),
        (C, 80.0, never, ()),
    ]


def test_a_copy_is_fresh_until_the_page_changes():
    """Fetched at 10 and 70; stale from 20 to 70; 90 s in the collection."""
    evaluation = evaluate_crawl(WINDOW, START, {A: CrawlVisits([1_010.0, 1_070.0], requests=2)})
    assert evaluation.result.freshness == pytest.approx(40 / 90)
    assert evaluation.result.age_s == pytest.approx(50**2 / 2 / 90)
    assert evaluation.requests == 2


def test_a_visit_that_brought_no_content_makes_no_copy_fresh():
    honest = CrawlVisits([1_010.0], requests=1)
    lied_to = CrawlVisits([1_010.0], requests=5)
    results = [evaluate_crawl(WINDOW, START, {A: each}).result for each in (honest, lied_to)]
    assert results[0] == results[1]
    assert results[0].freshness == pytest.approx(10 / 90)


def test_a_deleted_page_stays_until_it_is_found_gone():
    visits = {C: CrawlVisits([1_010.0], found_gone=[1_060.0, 1_070.0], requests=3)}
    assert evaluate_crawl(WINDOW, START, visits).result.freshness == pytest.approx(30 / 50)


def test_discovery_is_late_by_the_time_from_creation_to_download():
    visits = {B: CrawlVisits([1_065.0], requests=1)}
    discovery = evaluate_crawl(WINDOW, START, visits).discovery
    assert (discovery.created, discovery.found) == (2, 1)
    assert sorted(discovery.delays_s) == [15.0, 20.0]
    only = evaluate_crawl(WINDOW, START, visits, relevant={B}).discovery
    assert (only.delays_s, only.mean_s, only.median_s) == ((15.0,), 15.0, 15.0)


def test_visits_of_other_addresses_of_a_page_count():
    visits = {
        f"{C}index.html": CrawlVisits([1_010.0], requests=1),
        C.replace("https", "http"): CrawlVisits([1_020.0], requests=1),
        "https://other.example/": CrawlVisits([1_020.0], requests=1),
    }
    assert evaluate_crawl(WINDOW, START, visits).requests == 2


def test_the_pace_is_that_of_the_revisits_in_the_measured_time():
    """Two of three revisits are measured; the page is in the collection for all of the 70 s."""
    window = true_window(TRUTH, START, END, warm_up_s=30.0)
    visits = {A: CrawlVisits([1_010.0], revisits=[1_020.0, 1_040.0, 1_060.0], requests=4)}
    evaluation = evaluate_crawl(window, START, visits)
    assert evaluation.revisits == 2
    assert evaluation.mean_interval_s == pytest.approx(70 / 2)


def test_downloaded_pages_restrict_a_window_to_the_collection():
    visits = {
        A.replace("https", "http"): CrawlVisits([1_010.0], requests=1),
        B: CrawlVisits(requests=1),
    }
    urls = downloaded_pages(WINDOW, visits)
    assert urls == {A}
    assert [life.name for life in restrict_window(WINDOW, urls).pages] == [A]


def test_a_window_may_be_limited_to_some_pages():
    assert {life.name for life in true_window(TRUTH, START, END, only={B}).pages} == {B}


def visit(page: int, url: str, at: float, previous_at: float, result: VisitResult) -> VisitRow:
    return VisitRow(page, url, at, previous_at, result)


def test_the_first_revisit_tells_the_first_fetch():
    fetches = [(A, 200, 1_030.0), (B, 404, 1_011.0), (C, 200, 1_012.0)]
    revisits = [
        visit(0, A, 1_020.0, 1_010.0, VisitResult.NOT_MODIFIED),
        visit(0, A, 1_030.0, 1_020.0, VisitResult.CHANGED),
        visit(0, A, 1_040.0, 1_030.0, VisitResult.MISSING),
        visit(0, A, 1_050.0, 1_040.0, VisitResult.FAILED),
    ]
    assert collect_visits(fetches, revisits) == {
        A: CrawlVisits(
            [1_010.0, 1_030.0], [1_040.0], [1_020.0, 1_030.0, 1_040.0, 1_050.0], requests=5
        ),
        B: CrawlVisits(requests=1),
        C: CrawlVisits([1_012.0], requests=1),
    }


def test_the_truth_is_read_from_its_folder(tmp_path):
    with pytest.raises(ConfigurationError, match="--truth"):
        read_truth(tmp_path)
    write_change_history(tmp_path / "a.example.tsv.gz", TRUTH[0])
    assert read_truth(tmp_path) == TRUTH
