"""How far this crawl's own lessons move the prior's weights.

Bayesian logistic regression with the prior's score as a fixed offset: the
correction starts at zero, a Gaussian around zero holds it there, and what is
likeliest after the last lessons is found anew every so many, by Newton's
method (Bishop 2006, "Pattern Recognition and Machine Learning", 4.3.3 and
4.5.1). Targets are calibrated relevances, never verdicts of 0 or 1, so a judge
that knows little teaches little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.evidence import FEATURE_NAMES
from focused.learning.link_prior import LinkPrior

MAX_LESSONS = 2_000
"""The last lessons are kept, 8 bytes a feature each; older ones no longer count."""

_EVERY = 25
# How many lessons' worth of doubt there is before a weight moves by one standard deviation of
# its feature; the bias moves freely, for crawls differ in how much of what they meet is good.
_PRECISION = 30.0
_BIAS_PRECISION = 1.0
_HELD = np.append(np.full(len(FEATURE_NAMES), _PRECISION), _BIAS_PRECISION)
_ROOM = MAX_LESSONS + _EVERY

# In nats, of the lesson that moves most. What is left after a last whole step is its square.
_LONGEST_STEP = 1.0
_LAST_STEP = 1e-3
_MOST_STEPS = 100

Floats = NDArray[np.float64]


class Correction:
    """What is added to the prior's log-odds: ``weights`` . features + ``bias``."""

    def __init__(self, prior: LinkPrior) -> None:
        self._prior = prior
        # A column a lesson; the last row is its relevance.
        self._lessons = np.empty((len(prior.weights) + 1, _ROOM))
        self._kept = 0
        self._seen = 0
        self.weights: Floats = np.zeros(len(prior.weights))
        self.bias = 0.0

    def learn(self, evidence: Sequence[float] | Floats, relevance: float) -> None:
        """A link with this evidence led to a page of ``relevance`` in [0, 1]."""
        self._lessons[:-1, self._kept] = evidence
        self._lessons[-1, self._kept] = relevance
        self._kept += 1
        self._seen += 1
        if self._seen % _EVERY == 0:
            self._forget()
            self._fit()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restore`."""
        lessons = self._lessons[:, : self._kept].astype("<f8").tobytes()
        return [self._seen, self.weights.tolist(), self.bias, lessons]

    def restore(self, state: Any) -> None:
        """Go on where :meth:`state` was taken."""
        self._seen, weights, self.bias, kept = state
        self.weights = np.array(weights)
        lessons = np.frombuffer(kept, "<f8").reshape(len(self._lessons), -1)
        self._kept = lessons.shape[1]
        self._lessons[:, : self._kept] = lessons

    def _forget(self) -> None:
        too_many = self._kept - MAX_LESSONS
        if too_many > 0:
            self._lessons[:, :MAX_LESSONS] = self._lessons[:, too_many : self._kept].copy()
            self._kept = MAX_LESSONS

    def _fit(self) -> None:
        prior = self._prior
        rows, target = self._lessons[:-1, : self._kept], self._lessons[-1, : self._kept]
        offset = prior.bias + prior.weights @ rows
        # Centred: else a weight that moves would move all scores, and be the bias held firmly.
        middle = rows.mean(axis=1)
        design = np.ones((len(rows) + 1, self._kept))
        design[:-1] = (rows - middle[:, None]) / prior.scales[:, None]
        start = np.append(self.weights * prior.scales, self.bias + middle @ self.weights)
        moved = _likeliest(design, offset, target, start)
        self.weights = moved[:-1] / prior.scales
        self.bias = float(moved[-1] - middle @ self.weights)


def _likeliest(design: Floats, offset: Floats, target: Floats, moved: Floats) -> Floats:
    """Where ``target`` is likeliest by the log-odds offset + moved . design, ``moved`` being held.

    ``design`` has shape (k, n), the result (k,).
    """
    log_odds = offset + moved @ design
    for _ in range(_MOST_STEPS):
        # The tangent's form of the logistic function is the one that is soonest there.
        share = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        slope = design @ (share - target) + _HELD * moved
        bend = (design * (share * (1.0 - share))) @ design.T
        bend.flat[:: len(bend) + 1] += _HELD
        step = np.linalg.solve(bend, slope)
        change = step @ design
        longest = float(np.abs(change).max())
        # Where the log-odds move by less than this, every step leads down.
        part = min(1.0, _LONGEST_STEP / max(longest, _LAST_STEP))
        moved = moved - part * step
        log_odds -= part * change
        if longest < _LAST_STEP:
            break
    return moved
