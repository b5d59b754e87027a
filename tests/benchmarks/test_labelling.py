"""The conclusions of the labelling benchmark from its points."""

from __future__ import annotations

import pandas as pd
import pytest
from labelling import MAX_LABELS, MEASURES, STEP, needed, summary

pytestmark = pytest.mark.long


def points(random: float, ours: float) -> pd.DataFrame:
    """Curves that rise evenly from 0.5 to these levels with 200 labels; 1 at most."""
    rows = []
    for topic in ("a", "b"):
        for choice, level in (("random", random), ("ours", ours)):
            for labels in range(0, MAX_LABELS + 1, STEP):
                value = min(0.5 + (level - 0.5) * labels / MAX_LABELS, 1.0)
                row = {"topic": topic, "draw": 0, "choice": choice, "labels": labels}
                rows.append({**row, **dict.fromkeys(MEASURES, value)})
    return pd.DataFrame(rows)


def texts(points: pd.DataFrame, measure: str, choice: str) -> list[str]:
    rows = [line.strip("| ").split(" | ") for line in needed(points).splitlines()]
    (found,) = [row for row in rows if row[:2] == [measure, choice]]
    return found


def test_a_choice_twice_as_good_needs_half_the_labels() -> None:
    found = texts(points(random=0.7, ours=0.9), "average_precision", "ours")
    median, low, high, within = found[2:6]
    assert (median, low, high, within) == ("100", "100", "100", "0")


def test_a_choice_that_never_gets_there_is_counted_as_beyond_the_last() -> None:
    found = texts(points(random=0.9, ours=0.6), "precision_at_recall", "ours")
    assert found[2] == str(MAX_LABELS + STEP)
    assert float(found[6]) < 0


def test_the_summary_has_a_table_for_each_measure() -> None:
    text = summary(points(random=0.7, ours=0.8))
    assert all(f"## {measure}" in text for measure in MEASURES)
