"""How far this crawl's own lessons move the prior's weights.

Bayesian logistic regression with the prior's score as a fixed offset: the
correction starts at zero, a Gaussian around zero holds it there, and Newton
steps find the likeliest one for the last lessons (Bishop 2006, "Pattern
Recognition and Machine Learning", 4.5.1). Targets are calibrated relevances,
never verdicts of 0 or 1, so a judge that knows little teaches little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.calibration import expit
from focused.learning.link_prior import LinkPrior

MAX_LESSONS = 2_000
"""The last lessons are kept, 8 bytes a feature each; older ones no longer count."""

_EVERY = 25
_STEPS = 3
# How many lessons' worth of doubt there is before a weight moves by one standard deviation of
# its feature; the bias moves freely, for crawls differ in how much of what they meet is good.
_PRECISION = 30.0
_BIAS_PRECISION = 1.0


class Correction:
    """What is added to the prior's log-odds: ``weights`` . features + ``bias``."""

    def __init__(self, prior: LinkPrior) -> None:
        self._prior = prior
        self._lessons: list[tuple[Sequence[float], float]] = []
        self._seen = 0
        # In standard deviations; the bias comes last.
        self._moved = np.zeros(len(prior.weights) + 1)
        self._set()

    def learn(self, evidence: Sequence[float], relevance: float) -> None:
        """A link with this evidence led to a page of ``relevance`` in [0, 1]."""
        self._lessons.append((tuple(evidence), relevance))
        self._seen += 1
        if self._seen % _EVERY == 0:
            del self._lessons[:-MAX_LESSONS]
            self._fit()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restore`."""
        return [self._seen, self._moved.tolist(), self._lessons]

    def restore(self, state: Any) -> None:
        """Go on where :meth:`state` was taken."""
        self._seen, moved, lessons = state
        self._moved = np.array(moved)
        self._lessons = [(tuple(evidence), relevance) for evidence, relevance in lessons]
        self._set()

    def _set(self) -> None:
        self.weights: NDArray[np.float64] = self._moved[:-1] / self._prior.scales
        self.bias = float(self._moved[-1])

    def _fit(self) -> None:
        prior = self._prior
        rows = np.array([evidence for evidence, _ in self._lessons])
        target = np.array([relevance for _, relevance in self._lessons])
        offset = prior.bias + rows @ prior.weights
        design = np.column_stack([rows / prior.scales, np.ones(len(rows))])
        precision = np.full(design.shape[1], _PRECISION)
        precision[-1] = _BIAS_PRECISION
        for _ in range(_STEPS):
            share = expit(offset + design @ self._moved)
            slope = design.T @ (share - target) + precision * self._moved
            curve = (design.T * (share * (1.0 - share))) @ design + np.diag(precision)
            self._moved = self._moved - np.linalg.solve(curve, slope)
        self._set()
