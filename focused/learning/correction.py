"""How far this crawl's own lessons move the prior's weights.

Bayesian logistic regression with the prior's score as a fixed offset: the
correction starts at zero, a Gaussian around zero holds it there, and what is
likeliest after the last lessons is found anew every so many (Bishop 2006, "Pattern
Recognition and Machine Learning", 4.5.1). Targets are calibrated relevances,
never verdicts of 0 or 1, so a judge that knows little teaches little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from focused.learning.calibration import expit
from focused.learning.evidence import FEATURE_NAMES
from focused.learning.link_prior import LinkPrior

MAX_LESSONS = 2_000
"""The last lessons are kept, some 32 bytes a feature each; older ones no longer count."""

_EVERY = 25
# How many lessons' worth of doubt there is before a weight moves by one standard deviation of
# its feature; the bias moves freely, for crawls differ in how much of what they meet is good.
_PRECISION = 30.0
_BIAS_PRECISION = 1.0
_HELD = np.append(np.full(len(FEATURE_NAMES), _PRECISION), _BIAS_PRECISION)


class Correction:
    """What is added to the prior's log-odds: ``weights`` . features + ``bias``."""

    def __init__(self, prior: LinkPrior) -> None:
        self._prior = prior
        self._lessons: list[tuple[Sequence[float], float]] = []
        self._seen = 0
        self.weights: NDArray[np.float64] = np.zeros(len(prior.weights))
        self.bias = 0.0

    def learn(self, evidence: Sequence[float], relevance: float) -> None:
        """A link with this evidence led to a page of ``relevance`` in [0, 1]."""
        self._lessons.append((tuple(map(float, evidence)), relevance))
        self._seen += 1
        if self._seen % _EVERY == 0:
            del self._lessons[:-MAX_LESSONS]
            self._fit()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restore`."""
        return [self._seen, self.weights.tolist(), self.bias, self._lessons]

    def restore(self, state: Any) -> None:
        """Go on where :meth:`state` was taken."""
        self._seen, weights, self.bias, lessons = state
        self.weights = np.array(weights)
        self._lessons = [(tuple(evidence), relevance) for evidence, relevance in lessons]

    def _fit(self) -> None:
        prior = self._prior
        rows = np.array([evidence for evidence, _ in self._lessons])
        target = np.array([relevance for _, relevance in self._lessons])
        offset = prior.bias + rows @ prior.weights
        # Centred: else a weight that moves would move all scores, and be the bias held firmly.
        middle = rows.mean(axis=0)
        design = np.column_stack([(rows - middle) / prior.scales, np.ones(len(rows))])

        def loss(moved: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            log_odds = offset + design @ moved
            held = _HELD * moved
            return (
                float(np.logaddexp(0.0, log_odds).sum() - target @ log_odds + moved @ held / 2),
                design.T @ (expit(log_odds) - target) + held,
            )

        start = np.append(self.weights * prior.scales, self.bias + middle @ self.weights)
        moved = minimize(loss, start, jac=True, method="L-BFGS-B").x
        self.weights = moved[:-1] / prior.scales
        self.bias = float(moved[-1] - middle @ self.weights)
