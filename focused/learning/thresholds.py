"""The relevance from which a page counts as on topic, by what its user wants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from focused.learning.calibration import Bools, Floats, best_threshold

_FEW = 10
"""A precision of fewer accepted good samples than this (or all there are) would be chance."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the threshold is to give: this precision, this recall, or the best F1 (both None)."""

    precision: float | None = None
    recall: float | None = None

    def __str__(self) -> str:
        if self.precision is not None:
            return f"a precision of {self.precision:.2f}"
        return "the best F1" if self.recall is None else f"a recall of {self.recall:.2f}"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A relevance in (0, 1), and whether it gives what was wished for on held-out samples."""

    relevance: float
    granted: bool = True


def chosen_threshold(probability: Floats, good: Bools, weights: Floats, wish: Wish) -> Threshold:
    """The threshold for the wish, on held-out ``probability`` of samples of these weights.

    The lowest that gives the precision, or the highest that gives the recall:
    of what is granted, it gives the most of the other. A precision that
    cannot be had gives the threshold of the highest there is.
    """
    if wish.precision is None and wish.recall is None:
        return Threshold(best_threshold(probability, good, weights))
    order = np.argsort(-probability, kind="stable")
    hits = np.cumsum(weights[order] * good[order])
    precision = hits / np.cumsum(weights[order])
    # Samples of one relevance are taken together: only the last of them is a threshold.
    ends = np.flatnonzero(np.append(np.diff(probability[order]) < 0, True))
    if wish.recall is not None:
        place = ends[hits[ends] >= wish.recall * hits[-1] * (1 - 1e-9)][0]
        return Threshold(_below(probability[order], place))
    enough = ends[np.cumsum(good[order])[ends] >= min(_FEW, good.sum())]
    granted = enough[precision[enough] >= (wish.precision or 0.0)]
    place = granted[-1] if len(granted) else enough[np.argmax(precision[enough])]
    return Threshold(_below(probability[order], place), granted=len(granted) > 0)


def _below(falling: Floats, place: int) -> float:
    """A relevance half way between the last accepted and the first refused sample."""
    following = falling[falling < falling[place]]
    lower = following[0] if len(following) else 0.0
    return float(np.clip((falling[place] + lower) / 2, 1e-4, 1 - 1e-4))
