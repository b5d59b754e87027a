"""The analysis of runs with a known result."""

import json
import random

import pytest

from focused_lab.analysis.comparison_analysis import (
    ComparisonAnalysis,
    analyse_runs,
    analysis_to_dict,
)
from focused_lab.analysis.comparison_runs import runs_of
from focused_lab.analysis.summary_text import caveats, detail_sentences, summary_sentence
from tests.lab.analysis.comparison_rows import Row, run, runs

TWO_TOPICS = {
    "whales": {"focused": [0.6, 0.5], "bfs": [0.2, 0.3], "oracle": [0.8, 0.8]},
    "ships": {"focused": [0.4, 0.1], "bfs": [0.4, 0.2], "oracle": [0.5, 0.5]},
}


def analysed(rows: list[Row]) -> ComparisonAnalysis:
    return analyse_runs(runs_of(rows))


def test_pairs_count_wins_ties_and_losses_from_the_same_starts():
    pair = analysed(runs(TWO_TOPICS)).pairing("focused", "bfs")
    assert pair is not None
    assert (pair.wins, pair.ties, pair.losses) == (2, 1, 1)
    assert pair.difference.mean == pytest.approx(0.125)
    assert (pair.topics_won, pair.topics_lost) == (1, 1)


def test_five_pages_in_a_thousand_are_a_tie_and_six_are_none():
    harvests = {"whales": {"focused": [0.305, 0.306], "bfs": [0.3, 0.3]}}
    pair = analysed(runs(harvests, budget=1000, recall=0.5, crawl_and_stop=0.5)).pairing(
        "focused", "bfs"
    )
    assert pair is not None and (pair.wins, pair.ties) == (1, 1)


def test_an_interrupted_comparison_pairs_and_ranks_complete_starts_alone():
    harvests = {topic: dict(policies) for topic, policies in TWO_TOPICS.items()}
    harvests["ships"]["bfs"] = [0.4]  # stopped before its second repeat
    analysis = analysed(runs(harvests))
    pair = analysis.pairing("focused", "bfs")
    assert pair is not None and pair.starts == 3
    assert analysis.ranks.starts == 3
    ratio = analysis.summary_of("focused").ratio_to_bfs  # type: ignore[union-attr]  # it is there
    assert ratio is not None and ratio.mean == pytest.approx((0.6 + 0.5 + 0.4) / 0.9)
    assert any("3 of 4 starts have a run of every policy" in each for each in caveats(analysis))


def test_ratios_to_the_oracles_are_of_mean_harvests():
    summary = analysed(runs(TWO_TOPICS)).summary_of("focused")
    assert summary is not None and summary.ratio_to_oracle is not None
    assert summary.ratio_to_oracle.mean == pytest.approx(1.6 / 2.6)
    assert summary.ratio_to_path_oracle is None


def with_unreachable(**changed: object) -> list[Row]:
    """Two topics, and a start of whales from which nothing can be found."""
    nothing = {"whales": {"focused": [0.0], "bfs": [0.0], "oracle": [0.0]}}
    rows = runs(nothing, seeds="off-topic:5", **({"reachable": 0} | changed))
    return runs(TWO_TOPICS, reachable=90) + rows


def test_starts_that_cannot_reach_the_topic_change_no_figure():
    with_them, without = (analysis_to_dict(rows) for rows in (with_unreachable(), runs(TWO_TOPICS)))
    assert with_them.pop("unreachable") and not without.pop("unreachable")
    assert with_them == without


def test_starts_that_cannot_reach_the_topic_are_counted_apart():
    analysis = analysed(with_unreachable())
    (apart,) = analysis.unreachable
    assert (apart.topic, apart.seeds, apart.repeats, apart.starts) == (
        "whales",
        "off-topic:5",
        (0,),
        1,
    )
    assert any("From 1 of 5 starts no page on topic can be reached" in s for s in caveats(analysis))


def test_a_start_of_an_earlier_version_is_not_left_out():
    rows = [{k: v for k, v in row.items() if k != "reachable"} for row in with_unreachable()]
    analysis = analysed(rows)
    assert (analysis.unreachable, len(analysis.grid.starts)) == ((), 5)


def test_a_start_from_which_a_run_found_something_counts_whatever_the_graph_says():
    rows = [*with_unreachable(), run("dfs", 0.1, seeds="off-topic:5", reachable=0)]
    assert analysed(rows).unreachable == ()


def test_a_comparison_of_unreachable_starts_alone_has_no_result():
    analysis = analysed([run("bfs", 0.0, reachable=0), run("oracle", 0.0, reachable=0)])
    assert analysis.unreachable_count == 1
    assert summary_sentence(analysis) == "There is no run to report."
    assert len(caveats(analysis)) == 1


def test_the_oracle_s_share_of_the_path_oracle_is_what_link_evidence_attains():
    rows = runs({"whales": {"focused": [0.4], "oracle": [0.6], "path-oracle": [0.8]}})
    sentence = next(s for s in detail_sentences(analysed(rows)) if "path-oracle" in s)
    assert "focused reaches 50% of the harvest of the path-oracle" in sentence
    assert "reaches 75%: that is what link evidence could attain" in sentence
    assert "focused reaches 67% of it" in sentence


def test_oracles_are_never_ranked():
    ranks = analysed(runs(TWO_TOPICS)).ranks
    assert set(ranks.mean_ranks) == {"focused", "bfs"}
    assert ranks.mean_ranks["focused"] == 1.5


def test_a_single_run_has_means_and_nothing_more():
    analysis = analysed([run("focused", 0.4)])
    (summary,) = analysis.summary
    assert summary.harvest is not None
    assert (summary.harvest.mean, summary.harvest.low) == (0.4, None)
    assert analysis.paired == ()
    assert (analysis.ranks.p, analysis.ranks.critical_difference) == (None, None)
    assert "There is no other policy" in summary_sentence(analysis)
    assert "single start" in caveats(analysis)[0]


def test_an_empty_comparison_is_reported_in_words():
    assert summary_sentence(analysed([])) == "There is no run to report."
    assert (detail_sentences(analysed([])), caveats(analysed([]))) == ([], [])


def test_the_order_of_the_runs_changes_no_figure():
    rows = runs(TWO_TOPICS) + runs(TWO_TOPICS, host_cap=30)
    policies = ("focused", "bfs", "oracle")
    shuffled = rows[:]
    random.Random(4).shuffle(shuffled)
    shuffled.sort(key=lambda row: policies.index(row["policy"]))
    rows.sort(key=lambda row: policies.index(row["policy"]))
    assert analysis_to_dict(rows) == analysis_to_dict(shuffled)


def test_the_summary_splits_by_kind_of_start_and_by_topic():
    rows = runs(TWO_TOPICS) + runs({"ships": {"focused": [0.9]}}, host_cap=30)
    summary = analysed(rows).summary_of("focused")
    assert summary is not None
    by_group = {(each.seeds, each.host_cap): each.runs for each in summary.by_group}
    assert by_group == {("on-topic:5", None): 4, ("on-topic:5", 30): 1}
    by_topic = {each.topic: each.harvest and each.harvest.mean for each in summary.by_topic}
    assert by_topic == pytest.approx({"whales": 0.55, "ships": 1.4 / 3})


def test_half_recall_is_the_median_of_the_runs_that_got_there():
    rows = [
        run("bfs", 0.2, repeat=n, half_recall_pages=pages)
        for n, pages in enumerate((10, None, 30, 90))
    ]
    (summary,) = analysed(rows).summary
    assert (summary.half_recall_pages, summary.half_recall_reached) == (30.0, 3)


def test_runs_that_ended_early_are_counted_and_cause_a_caveat():
    analysis = analysed([run("bfs", 0.5, fetched=10), run("focused", 0.4)])
    assert [each.ended_early for each in analysis.summary] == [1, 0]
    assert any("of bfs emptied the frontier" in each for each in caveats(analysis))


def test_what_was_not_measured_is_none_and_not_zero():
    row = {key: value for key, value in run("bfs", 0.2).items() if key not in ("cpu_s", "peak_mb")}
    (summary,) = analysed([row]).summary
    assert (summary.cpu_s, summary.cpu_ms_per_page, summary.peak_mb) == (None, None, None)


def test_the_summary_says_when_the_interval_contains_zero():
    unsure = {"whales": {"focused": [0.5, 0.3], "bfs": [0.3, 0.5]}}
    assert "the interval contains zero" in summary_sentence(analysed(runs(unsure)))
    sure = {"whales": {"focused": [0.5, 0.6], "bfs": [0.3, 0.2]}}
    sentence = summary_sentence(analysed(runs(sure)))
    assert "30.0 points more" in sentence and "contains zero" not in sentence


def test_a_headline_does_not_hide_that_ours_is_worse():
    worse = {"whales": {"focused": [0.2, 0.3], "bfs": [0.5, 0.5]}}
    assert "25.0 points less" in summary_sentence(analysed(runs(worse)))


def test_findings_are_json_with_an_estimate_as_three_keys():
    given = json.loads(json.dumps(analysis_to_dict(runs(TWO_TOPICS))))
    (ours, *_) = given["summary"]
    assert ours["harvest_low"] <= ours["harvest"] <= ours["harvest_high"]
    assert {"ratio_to_path_oracle", "ratio_to_path_oracle_low"} <= ours.keys()
    assert given["paired"][0]["reference"] == "bfs"
    assert given["ranks"]["topics"] == 2


def test_a_part_left_out_is_held_against_the_whole_what_is_missed_most_first():
    rows = runs(
        {
            "whales": {
                "focused": [0.5, 0.4],
                "focused-without-url": [0.5, 0.3],
                "focused-without-words": [0.2, 0.2],
                "shark": [0.1, 0.1],
                "bfs": [0.2, 0.3],
            }
        }
    )
    words, url = analysed(rows).ablations
    assert (words.policy, url.policy) == ("focused-without-words", "focused-without-url")
    assert words.difference.mean == pytest.approx(-0.25)
    assert words.area_difference.low == pytest.approx(-0.3)
    assert not url.difference.excludes_zero


def test_without_the_full_policy_there_are_no_ablations():
    rows = runs({"whales": {"focused-without-url": [0.5], "bfs": [0.3]}})
    assert analysed(rows).ablations == []
