"""Pages that a policy needs to match breadth-first."""

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from focused_lab.analysis.comparison_analysis import analyse_runs
from focused_lab.analysis.comparison_runs import runs_of
from focused_lab.analysis.paired_comparison import PagesToBaseline, pages_until_found
from focused_lab.analysis.summary_text import detail_sentences
from focused_lab.run_measures import harvest_curve
from tests.lab.analysis.comparison_rows import Row, run, runs


def every(nth: int, policy: str, **changed: Any) -> Row:
    """A run with every nth page on topic."""
    pages = changed.get("fetched", 100)
    return run(policy, 1 / nth, curve=[[n, n // nth] for n in range(1, pages + 1)], **changed)


def half_the_pages() -> list[Row]:
    return [
        each
        for n in range(2)
        for each in (every(2, "focused", repeat=n), every(4, "bfs", repeat=n))
    ]


def rows_of(rows: list[Row]) -> dict[str, PagesToBaseline]:
    return {each.policy: each for each in analyse_runs(runs_of(rows)).pages_to_baseline}


def test_twice_the_harvest_needs_half_the_pages():
    found = rows_of(half_the_pages())
    ours = found["focused"]
    assert (ours.starts, ours.reached, ours.never) == (2, 2, 0)
    assert (ours.pages, ours.share) == (50.0, 0.5)
    assert (ours.share_low, ours.share_high) == (0.5, 0.5)


def test_breadth_first_itself_needs_what_it_fetched_until_its_last_good_page():
    early = [[n, min(n, 20)] for n in range(1, 101)]
    assert rows_of([run("bfs", 0.2, curve=early)])["bfs"].pages == 20.0


def test_pages_are_counted_against_those_that_breadth_first_fetched():
    found = rows_of([every(5, "focused"), every(10, "bfs", fetched=80)])["focused"]
    assert (found.pages, found.share) == (40.0, 0.5)


def test_a_run_that_never_got_there_is_later_than_any():
    nths = (10, 10, 2, 4, 5)
    rows = [every(nth, "dfs", repeat=n) for n, nth in enumerate(nths)]
    rows += [every(5, "bfs", repeat=n) for n in range(5)]
    found = rows_of(rows)["dfs"]
    assert (found.reached, found.never, found.pages) == (3, 2, 100.0)
    assert (found.pages_low, found.pages_high) == (40.0, None)


def test_where_most_runs_never_get_there_the_median_is_never():
    found = rows_of(runs({"whales": {"dfs": [0.1, 0.1, 0.5], "bfs": [0.2] * 3}}))["dfs"]
    assert (found.reached, found.pages, found.share) == (1, None, None)


def test_starts_from_which_breadth_first_found_nothing_are_left_out():
    found = rows_of(runs({"whales": {"focused": [0.4, 0.4], "bfs": [0.0, 0.2]}}))
    assert (found["focused"].starts, found["focused"].pages_low) == (1, None)


def test_without_breadth_first_there_is_no_goal():
    assert rows_of(runs({"whales": {"focused": [0.4], "shark": [0.2]}})) == {}


def test_a_policy_without_a_run_from_such_a_start_is_left_out():
    rows = [run("bfs", 0.2), run("focused", 0.4, repeat=1)]
    assert set(rows_of(rows)) == {"bfs"}


@given(st.lists(st.booleans(), min_size=1, max_size=700), st.integers(1, 50))
def test_pages_from_a_curve_are_never_too_early_and_at_most_a_hundredth_too_late(is_relevant, goal):
    found = np.cumsum(is_relevant)
    on_topic, fetched = int(found[-1]), len(is_relevant)
    (read,) = runs_of(
        [
            run(
                "bfs",
                0.5,
                fetched=fetched,
                on_topic=on_topic,
                curve=harvest_curve(np.array(is_relevant)),
            )
        ]
    )
    place = pages_until_found(read, goal)
    if on_topic < goal:
        assert place == math.inf
        return
    exact = int(np.flatnonzero(found >= goal)[0]) + 1
    assert exact <= place <= exact + math.ceil(fetched / 99)


def test_the_report_has_a_sentence_about_it():
    sentences = " ".join(detail_sentences(analyse_runs(runs_of(half_the_pages()))))
    assert (
        "after 50% (95% interval 50–50%) of the pages in the median; 0 of 2 runs never" in sentences
    )
    slow = runs({"whales": {"focused": [0.1, 0.1], "bfs": [0.2, 0.2]}})
    sentences = " ".join(detail_sentences(analyse_runs(runs_of(slow))))
    assert "in fewer than half of its runs: 2 of 2 runs never got there" in sentences


def test_the_order_is_by_pages_needed_and_who_never_gets_there_is_last():
    policies = {"dfs": [0.1], "shark": [0.3], "focused": [0.4], "bfs": [0.2]}
    analysis = analyse_runs(runs_of(runs({"whales": policies})))
    order = [each.policy for each in analysis.fewest_pages_first]
    assert order == ["focused", "shark", "bfs", "dfs"]
    needed = [each.share for each in analysis.fewest_pages_first[:3]]
    assert all(one <= other for one, other in itertools.pairwise(needed) if one and other)
