"""``focused history`` and ``focused changes``."""

import json

import pytest

from focused.cli.report import describe_rate, parse_when
from focused.errors import ConfigurationError
from tests.support.command import focused
from tests.support.continuous_crawl import HOME, NEWS


def test_a_history_shows_each_version(living_crawl):
    done = focused("history", NEWS, "--folder", living_crawl)
    for text in (NEWS, "first seen 1970-01-12", "change rate", "next change expected", "changed"):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("per_day", "words"),
    [
        (1_370.0, "more than once an hour"),
        (2.5, "2.5 a day"),
        (1.0, "1.0 a day"),
        (0.1, "a change every 10.0 days"),
    ],
)
def test_a_change_rate_is_worded_by_its_size(per_day, words):
    assert describe_rate(per_day) == words


def test_a_history_can_show_what_differs(living_crawl):
    for options in (("--diff",), ("--versions", 1, 3)):
        done = focused("history", NEWS, "--folder", living_crawl, *options)
        assert "Nobody saw the whales again, neither calf nor mother." in done.stdout


def test_a_page_without_a_diff_is_an_error_in_one_line(living_crawl):
    done = focused("history", HOME, "--folder", living_crawl, "--diff", status=2)
    assert done.stderr == f"focused: {HOME}: has one version; there is nothing to compare\n"


def test_changes_are_json_lines_on_the_output(living_crawl):
    done = focused("changes", living_crawl, "--since", "1970-01-13")
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert len(kinds) == 8 and set(kinds) == {"new", "changed", "gone", "moved", "reappeared"}


def test_a_feed_is_written_to_a_file(living_crawl, tmp_path):
    out = tmp_path / "mine.atom"
    done = focused(
        "changes", living_crawl, "--since", "1970-01-13", "--format", "atom", "--out", out
    )
    assert done.stdout == ""
    assert out.read_bytes().count(b"<entry>") == 8


def test_a_file_that_cannot_be_written_is_an_error(living_crawl, tmp_path):
    done = focused("changes", living_crawl, "--out", tmp_path / "none" / "mine.jsonl", status=2)
    assert "cannot be written" in done.stderr


NOW = 1_767_225_600.0  # 2026-01-01


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", NOW - 5_400),
        ("12h", NOW - 43_200),
        ("7d", NOW - 604_800),
        ("0.5w", NOW - 302_400),
        ("2026-01-01", NOW),
        ("2026-01-01T14:00", NOW + 50_400),
        ("2026-01-01T14:00+01:00", NOW + 46_800),
        ("2026-01-01T00:00:00Z", NOW),
    ],
)
def test_since_takes_a_date_or_a_duration(text, at):
    assert parse_when(text, NOW) == at


@pytest.mark.parametrize("text", ["", "yesterday", "7", "-3d", "2026-13-01"])
def test_another_text_is_an_error_that_shows_both_forms(text):
    with pytest.raises(ConfigurationError, match=r"such as 2026-01-31.*such as 7d"):
        parse_when(text, NOW)
