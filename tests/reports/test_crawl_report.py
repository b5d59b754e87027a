"""The report of a crawl: its figures, tables and files."""

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from focused.errors import StateError
from focused.reports.report_output import print_report
from tests.support.crawl_folders import failed, good_page, page, report_as_dict, write_crawl

A, B, C = "http://a.example/", "http://b.example/", "http://c.example/"
SETTINGS = {
    "policy": "focused",
    "topic": {"name": "databases", "training": {"good": ["Top/Databases"]}},
}
STATS = {
    "robots_excluded": 12,
    "nofollow": 31,
    "links_over_limit": 9,
    "out_of_scope": {"host denied": 3, "too deep": 4},
    "frontier": 1234,
    "started_at": 1000.0,
    "ended_at": 1004.0,
    "end_reason": "budget of pages spent",
    "mirrors": {"http://b.example": "https://b.example"},
    "long_crawl_delays": {"slow.example": 43_200},
    "traps": [{"site": "calendar.test", "kind": "trap: calendar", "pages": 3, "links": 5}],
}
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    rows = [
        good_page(A, parent=None, title="Start", relevance=0.8),
        page(A + "x", outcome="redirected", status=301, relevance=None, bytes=0),
        good_page(B, title="Best [bold]\x1b[31m", relevance=0.97, score=0.83),
        page(C, score=0.2, duplicate_of=A, duplicate_kind="near"),
        page(C + "2", score=0.3),
        failed(C + "3", "timeout"),
        good_page(C + "4", training=True),
        page(C + "5", outcome="noindex", relevance=0.99, bytes=0),
    ]
    return write_crawl(tmp_path / "crawl", rows, settings=SETTINGS, stats=STATS)


def printed(
    folder: Path, labels: dict[str, list[str]] | None = None, out: Path | None = None
) -> str:
    screen = Console(width=100)
    with screen.capture() as capture:
        print_report(folder, screen, labels, out=out)
    return capture.get()


def figures(text: str) -> dict[str, list[str]]:
    """The first table's rows: name to the cells after it."""
    rows = [line.strip("│┃ ").split("│") for line in text.splitlines() if "│" in line]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if len(row) > 1}


def test_failures_are_those_counted_where_not_each_has_a_row(tmp_path):
    rows = [good_page(A), failed(B, "timeout"), failed(C, "gone"), failed(C + "1", "gone")]
    stats = {"failures": {"timeout": 40, "directory-budget": 7, "gone": 1}}
    folder = write_crawl(tmp_path / "crawl", rows, settings=SETTINGS, stats=stats)
    found = report_as_dict(folder)["failures"]
    assert list(found.items()) == [("timeout", 40), ("directory-budget", 7), ("gone", 2)]


@pytest.mark.parametrize("replay", ["127.0.0.1:8100", None])
def test_links_out_of_a_recorded_web_are_no_errors(tmp_path, replay):
    rows = [good_page(A), failed(B, "no-such-host"), failed(C, "timeout")]
    settings = {**SETTINGS, "replay": replay}
    folder = write_crawl(tmp_path / "crawl", rows, settings=settings, stats={"unrecorded_hosts": 7})
    data = report_as_dict(folder)
    shown = figures(printed(folder))
    if replay is None:
        assert data["failures"] == {"no-such-host": 1, "timeout": 1}
        assert data["unrecorded_hosts"] == 0
        assert "outside the recorded web" not in shown
    else:
        assert (data["failures"], data["unrecorded_hosts"]) == ({"timeout": 1}, 7)
        assert shown["outside the recorded web"] == ["7 links"]
        assert shown["errors"] == ["1"]


def test_links_out_of_scope_are_counted_by_reason(tmp_path):
    counted = {"too deep": 2, "private address": 1_500}
    stats = {"out_of_scope": counted}
    folder = write_crawl(tmp_path / "crawl", [good_page(A)], settings=SETTINGS, stats=stats)
    found = report_as_dict(folder)["out_of_scope_by"]
    assert list(found.items()) == [("private address", 1_500), ("too deep", 2)]
    assert figures(printed(folder))["private address"] == ["1,500"]


def test_the_figures_come_from_pages_and_counters(crawl):
    data = report_as_dict(crawl)
    expected = {
        "topic": "databases",
        "policy": "focused",
        "fetched": 4,
        "on_topic": 2,
        "harvest_rate": 0.5,
        "training": 1,
        "redirected": 1,
        "failures": {"timeout": 1},
        "hosts": 3,
        "duplicates": 1,
        "near_duplicates": 1,
        "mirrors": {"http://b.example": "https://b.example"},
        "long_crawl_delays_s": {"slow.example": 43_200},
        "robots_excluded": 12,
        "noindex": 1,
        "nofollow": 31,
        "links_over_limit": 9,
        "out_of_scope": 7,
        "frontier": 1234,
        "bytes": 5000,
        "duration_s": 4.0,
        "pages_per_s": 1.0,
        "end_reason": "budget of pages spent",
        "by_labels": None,
    }
    assert {key: data[key] for key in expected} == expected
    assert [page["url"] for page in data["best_pages"]] == [B, A, C + "2"]
    assert data["top_hosts"][0] == {"host": "a.example", "fetched": 1, "on_topic": 1}
    assert data["curve"][-1] == (4, 0.5, 0.5)


def test_a_report_is_json_without_nan(crawl):
    labels = {A: ["Top/Databases"]}
    assert json.loads(json.dumps(report_as_dict(crawl, labels), allow_nan=False))["fetched"] == 4


def test_labels_are_read_with_the_topics_own_good_categories(crawl):
    by_labels = report_as_dict(crawl, {A: ["Top/Databases/SQL"], B: ["Top/Other"]})["by_labels"]
    assert (by_labels["on_topic"], by_labels["rate"], by_labels["precision"]) == (1, 0.25, 0.5)


def test_labels_of_other_topics_are_not_used(crawl):
    """A recorded web has no labels for a user's own topic."""
    labels = {A: ["Top/Whales"], B: ["Top/Other"]}
    assert report_as_dict(crawl, labels)["by_labels"] is None
    assert "by labels" not in printed(crawl, labels)


def test_labels_without_good_categories_are_an_error(tmp_path):
    folder = write_crawl(tmp_path, [page(A)])
    with pytest.raises(StateError, match=r"settings\.json: topic\.training\.good is missing"):
        report_as_dict(folder, {A: ["Top/X"]})


def test_a_crawl_without_counters_is_reported_from_its_pages(tmp_path):
    rows = [page(A, fetched_at=10.0), failed(B, "robots", fetched_at=12.5), page(C, fetched_at=20)]
    data = report_as_dict(write_crawl(tmp_path, rows))
    assert (data["robots_excluded"], data["failures"]) == (1, {})
    assert (data["duration_s"], data["policy"], data["topic"]) == (10.0, "focused", tmp_path.name)
    assert (data["frontier"], data["end_reason"]) == (None, "")


def test_time_over_several_sittings_is_taken_from_the_counters(tmp_path):
    stats = {**STATS, "active_s": 2.5}
    assert report_as_dict(write_crawl(tmp_path, [page(A)], stats=stats))["duration_s"] == 2.5


def test_an_empty_crawl_has_a_report(tmp_path):
    text = printed(write_crawl(tmp_path, [], settings=SETTINGS))
    assert figures(text)["harvest rate"] == ["0.0%"]
    assert figures(text)["ended"] == ["unknown: still running, or killed"]


@pytest.mark.parametrize(("off_topic", "warns"), [(99, False), (100, True)])
def test_pages_without_any_on_topic_at_the_end_are_a_warning(off_topic, warns, tmp_path):
    rows = [good_page(A), *(page(f"{B}{n}") for n in range(off_topic))]
    text = printed(write_crawl(tmp_path, rows, settings=SETTINGS))
    assert ("Warning: none of the last 100 pages was on topic" in text) == warns


def test_the_table_shows_the_main_figures(crawl):
    shown = figures(printed(crawl))
    assert shown["fetched"] == ["4"]
    assert shown["pages lost to traps"] == ["3"]
    assert shown["calendar.test"] == ["calendar", "3", "5"]
    assert shown["robots-excluded"] == ["12"]
    assert shown["noindex, dropped"] == ["1"]
    assert shown["nofollow links"] == ["31"]
    assert shown["links over the limit of a page"] == ["9"]
    assert shown["on topic"] == ["2"]
    assert shown["harvest rate"] == ["50.0%"]
    assert shown["hosts"] == ["3"]
    assert shown["duplicates"] == ["1"]
    assert shown["near-duplicates"] == ["1"]
    assert shown["crawl-delay"] == ["12.0 h: slow.example"]
    assert shown["mirror"] == ["http://b.example of https://b.example"]
    assert shown["robots-excluded"] == ["12"]
    assert shown["timeout"] == ["1"]
    assert shown["downloaded"] == ["5.0 kB"]
    assert shown["ended"] == ["budget of pages spent"]


def test_the_labels_verdict_stands_beside_the_classifiers(crawl):
    labels = {A: ["Top/Databases"], "http://other.example/": ["Top/Databases"]}
    shown = figures(printed(crawl, labels))
    assert shown["harvest rate"] == ["50.0%", "25.0%"]
    assert shown["recall"] == ["", "50.0% of 2"]
    assert shown["classifier's precision"] == ["", "50.0%"]


def test_the_scores_stand_against_classifier_and_labels(crawl):
    shown = figures(printed(crawl, {B: ["Top/Databases"], C + "2": ["Top/Databases"]}))
    assert shown["0.8–0.9"] == ["1", "0.83", "0.97", "100%", "100%"]
    assert shown["0.3–0.4"] == ["1", "0.30", "0.10", "0%", "100%"]
    assert shown["scores' calibration error"] == ["0.235", "0.435"]
    assert shown["scores' Brier score"] == ["0.059", "0.259"]
    assert shown["of a constant prediction"] == ["0.250", "0.000"]


def test_scores_that_only_order_links_are_not_taken_for_probabilities(tmp_path):
    crawl = write_crawl(tmp_path, [page(A, score=0.0)], settings={"policy": "bfs"})
    assert report_as_dict(crawl)["reliability"] is None
    assert "Calibration of scores" not in printed(crawl)


def test_a_title_is_shown_as_it_is_and_cannot_control_the_terminal(crawl):
    text = printed(crawl)
    assert r"Best [bold]\x1b[31m" in text
    assert "\x1b[31m" not in text


def test_json_and_pictures_are_written_where_they_are_wanted(crawl, tmp_path):
    out = tmp_path / "new" / "report"
    printed(crawl, out=out)
    kept = json.loads((out / "report.json").read_text())
    assert kept == json.loads(json.dumps(report_as_dict(crawl)))
    assert (out / "harvest.png").read_bytes().startswith(PNG)


def test_printing_writes_nothing_into_the_crawls_folder(crawl):
    before = sorted(crawl.iterdir())
    printed(crawl)
    assert sorted(crawl.iterdir()) == before


def test_a_folder_that_cannot_be_written_is_reported(crawl):
    (crawl / "report.json").mkdir()
    assert "could not be written" in printed(crawl, out=crawl)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(StateError, match="none: no such folder"):
        report_as_dict(tmp_path / "none")


def test_a_folder_of_something_else_is_an_error(tmp_path):
    with pytest.raises(StateError, match=r"pages\.parquet: is missing; this is no crawl's folder"):
        report_as_dict(tmp_path)


def test_a_damaged_table_is_an_error_with_advice(crawl):
    whole = (crawl / "pages.parquet").read_bytes()
    (crawl / "pages.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StateError, match=r"pages\.parquet: is damaged"):
        report_as_dict(crawl)


def test_a_table_of_another_program_is_an_error_with_its_missing_columns(tmp_path):
    pq.write_table(pa.table({"url": ["http://a.example/"]}), tmp_path / "pages.parquet")
    with pytest.raises(StateError, match="lacks the columns anchor, bytes"):
        report_as_dict(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]", "\udcff", "[" * 100_000])
def test_damaged_counters_are_an_error(crawl, content):
    (crawl / "stats.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(StateError, match=r"stats\.json: is damaged"):
        report_as_dict(crawl)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("stats.json", {"failures": 5}),
        ("stats.json", {"frontier": "many"}),
        ("stats.json", {"mirrors": {"a.test": 3}}),
        ("stats.json", {"long_crawl_delays": {"a.test": "long"}}),
        ("stats.json", {"active_s": math.inf}),
        ("stats.json", {"active_s": math.nan}),
        ("stats.json", {"active_s": 10**400}),
        ("stats.json", {"profile": {"stages": {"parsing": None}}}),
        ("stats.json", {"profile": {"reactor_blocked": {"longest_s": "x"}}}),
        ("stats.json", {"traps": [{}]}),
        ("stats.json", {"traps": [{"site": 1, "kind": "trap", "pages": 1, "links": 1}]}),
        ("settings.json", {"topic": 5}),
        ("settings.json", {"topic": {"training": {"link_prior": 5}}}),
    ],
)
def test_what_no_crawl_writes_is_an_error_with_advice(crawl, name, content):
    (crawl / name).write_text(json.dumps(content))
    with pytest.raises(StateError, match=r"\.json: is damaged \(.*; delete it to go on"):
        report_as_dict(crawl)
