"""Which labels judge and which teach.

A measure is honest when its pages were drawn without regard to what any model thinks of
them, and when no model has learned from them. So one page in five is set aside for the
judge, by the hash of its URL alone: whoever asks, whenever, gets the same answer, and
pages from the other four are all that active choice may pick.
"""

from __future__ import annotations

from collections.abc import Iterable

from focused.labels.label import Label, Role
from focused.lots import lot

JUDGES_SHARE = 0.2
"""Of all pages, the share that is the judge's."""

_SEED = 20  # any number that no other lot uses


def judges_lot(url: str) -> float:
    """The page's place in the judge's queue, in [0, 1): the lower, the sooner it is shown."""
    return lot(url, _SEED)


def role_of(url: str) -> Role:
    """Whether a label of this page judges or teaches."""
    return "judge" if judges_lot(url) < JUDGES_SHARE else "teach"


def teaching(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels that models may learn from: said yes or no, and never the judge's."""
    return tuple(one for one in labels if one.role == "teach" and one.verdict != "skip")


def judging(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels that models are measured by: said yes or no of pages drawn at random."""
    return tuple(one for one in labels if one.role == "judge" and one.verdict != "skip")
