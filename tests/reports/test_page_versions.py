"""The history of a page: its versions, what visits brought, and the difference of versions."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from focused.errors import ConfigurationError, StateError
from focused.reports.collection_changes import diff_versions, read_timeline
from focused.topic import Output, Revisit
from tests.support.continuous_crawl import BACK, DAY_S, HOME, LEFT, MOVED, NEWS, after, whales
from tests.support.simulated import START, Simulation, topic


def results(folder: Path, url: str) -> list[str]:
    return [event.result for event in read_timeline(folder, url).events]


def test_a_history_begins_with_the_first_version_and_has_each_later_one(living_crawl):
    timeline = read_timeline(living_crawl, NEWS)
    assert [event.result for event in timeline.events] == ["first", "changed", "changed"]
    assert len(timeline.versions) == 3
    first, second, _ = timeline.versions
    assert first.at == timeline.first_seen
    assert first.change is None
    assert second.change is not None and 0 < second.change < 0.5
    assert all(version.relevance == 0.9 and version.bytes > 300 for version in timeline.versions)


def test_visits_without_a_change_are_counted_only(living_crawl):
    timeline = read_timeline(living_crawl, HOME)
    assert [event.result for event in timeline.events] == ["first"]
    assert timeline.visits["identical"] == sum(timeline.visits.values()) > 5


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (LEFT, ["first", "gone"]),
        (MOVED, ["first", "moved"]),
        (BACK, ["first", "gone", "reappeared"]),
    ],
)
def test_a_page_that_leaves_or_comes_back_has_one_event_each(living_crawl, url, expected):
    assert results(living_crawl, url) == expected


def test_the_next_change_is_expected_by_the_change_rate(living_crawl):
    timeline = read_timeline(living_crawl, NEWS)
    assert timeline.change_rate is not None and timeline.next_change_at is not None
    wait_days = (timeline.next_change_at - timeline.last_seen) / DAY_S
    assert wait_days == pytest.approx(1 / timeline.change_rate)
    assert timeline.change_probability(timeline.last_seen) == 0
    assert timeline.change_probability(timeline.next_change_at) == pytest.approx(0.632, abs=0.001)


def test_the_next_visit_is_due_after_the_last_one_unless_the_page_is_queued(living_crawl):
    due = [
        (timeline.next_visit_at, timeline.last_seen)
        for timeline in (read_timeline(living_crawl, url) for url in (HOME, NEWS, LEFT, BACK))
    ]
    assert all(at == -math.inf or (at is not None and at > seen) for at, seen in due)


def test_of_a_page_that_is_gone_no_change_is_expected(living_crawl):
    timeline = read_timeline(living_crawl, LEFT)
    assert timeline.gone_at is not None
    assert timeline.next_change_at is None
    assert timeline.change_probability(START + 100 * DAY_S) is None


def test_a_url_may_lack_its_scheme(living_crawl):
    assert read_timeline(living_crawl, "a.test/news").url == NEWS


def test_an_unknown_url_is_an_error_with_similar_ones(living_crawl):
    with pytest.raises(ConfigurationError, match=f"no history of it; similar.*\n +{NEWS}"):
        read_timeline(living_crawl, "http://a.test/new")


def test_a_folder_without_a_state_is_an_error(tmp_path):
    with pytest.raises(StateError, match="has no state/"):
        read_timeline(tmp_path, NEWS)


def test_the_diff_of_the_last_two_versions_shows_the_blocks_that_differ(living_crawl):
    lines = diff_versions(living_crawl, read_timeline(living_crawl, NEWS))
    assert lines[0].startswith("--- version 2") and lines[1].startswith("+++ version 3")
    (before,) = [line for line in lines[2:] if line.startswith("-")]
    (now,) = [line for line in lines[2:] if line.startswith("+")]
    assert before.endswith("The calf swims beside its mother in the bay.")
    assert now.endswith("Nobody saw the whales again, neither calf nor mother.")
    assert " Whales news" in lines


def test_any_two_versions_can_be_compared(living_crawl):
    lines = diff_versions(living_crawl, read_timeline(living_crawl, NEWS), 1, 3)
    assert any(line.startswith("-") and line.endswith("was born.") for line in lines)


@pytest.mark.parametrize(("older", "newer"), [(0, 1), (1, 4)])
def test_a_version_that_does_not_exist_is_an_error(living_crawl, older, newer):
    with pytest.raises(ConfigurationError, match="has the versions 1 to 3, but no version"):
        diff_versions(living_crawl, read_timeline(living_crawl, NEWS), older, newer)


def test_a_page_of_one_version_has_no_diff(living_crawl):
    with pytest.raises(ConfigurationError, match="nothing to compare"):
        diff_versions(living_crawl, read_timeline(living_crawl, HOME))


def test_without_a_warc_there_is_no_diff(tmp_path):
    web = {HOME: after((0, whales(HOME, "home")), (1, whales(HOME, "another home of whales")))}
    revisit = Revisit(continuous=True, hours=72, pages_per_day=4)
    output = Output(tmp_path / "out", warc="off")
    simulation = Simulation(replace(topic(tmp_path, HOME, revisit=revisit), output=output), web)
    simulation.run(20_000).close()
    timeline = read_timeline(output.folder, HOME)
    assert len(timeline.versions) == 2
    with pytest.raises(ConfigurationError, match="version 1 has no WARC record"):
        diff_versions(output.folder, timeline)
