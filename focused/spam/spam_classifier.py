"""The spam classifier: evidence that a page's text is spam, from its content signals.

An additive model: each signal contributes a piecewise linear function of its value. It is fitted on
a topic's own samples beside spam made of their words (:mod:`focused.spam.spam_training`), so it
knows how good pages of this subject and language read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from focused.spam.content_signals import PopularWords, content_signals
from focused.web.page import Page

MAX_EVIDENCE = 4.0


@dataclass(frozen=True)
class SpamClassifier:
    """Rates texts by their content signals.

    ``knots`` and ``values``, shape (19, k), are the points of each signal's function; knots ascend
    strictly. ``good_mean`` and ``spam_mean`` are the mean evidence of held-out good pages and of
    held-out spam. ``spam_sites`` are registered domains of which a person labelled a page spam.
    """

    popular: PopularWords
    knots: NDArray[np.float32]
    values: NDArray[np.float32]
    bias: float
    good_mean: float
    spam_mean: float
    spam_sites: tuple[str, ...] = ()

    def evidence(self, page: Page) -> float | None:
        """Return log-odds of spam against good, both equally likely, within ±4.

        None if the text is too short to tell.
        """
        signals = content_signals(page, self.popular)
        return None if signals is None else self.evidence_of(signals)

    def evidence_of(self, signals: NDArray[np.float64]) -> float:
        """Return the evidence for signals of shape (19,), within ±4."""
        total = self.bias
        for signal, (knots, values) in zip(signals.tolist(), self._functions, strict=True):
            total += _interpolate(signal, knots, values)
        return min(max(total, -MAX_EVIDENCE), MAX_EVIDENCE)

    @cached_property
    def _functions(self) -> Sequence[tuple[list[float], list[float]]]:
        return list(zip(self.knots.tolist(), self.values.tolist(), strict=True))


def _interpolate(at: float, knots: list[float], values: list[float]) -> float:
    """Return ``np.interp`` of one number, without arrays."""
    place = bisect_right(knots, at)
    if not 0 < place < len(knots):
        return values[max(place - 1, 0)]
    low, high = knots[place - 1 : place + 1]
    least, most = values[place - 1 : place + 1]
    return (most - least) / (high - low) * (at - low) + least
