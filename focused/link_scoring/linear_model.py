"""What features weighs: rows of it become scores, and worths by which links are ordered.

Weights that were fitted on recorded webs (:mod:`focused.link_scoring.link_prior`)
are moved by what this crawl has taught (:mod:`focused.link_scoring.linear_model`).

While the crawl has found little, pages near their host's root come first:
from there the ways part. That is in a link's *rank_score*, which orders, and not in
its score, which stays a probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import expit
from focused.link_scoring.link_features import FEATURE_NAMES, round_precision
from focused.link_scoring.link_prior import LinkPrior

# Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md).
DEPTH_PENALTY = 0.5
_RELEVANCE_TO_HALVE_PENALTY = 3.0
_MAX_LOG_ODDS = 12.0

FloatArray = NDArray[np.float64]


class LinearModel:
    """The weights of one crawl, as they are now."""

    def __init__(
        self, prior: LinkPrior, without: Sequence[str], *, learns: bool, depth_penalty: float
    ) -> None:
        """See :class:`focused.link_scoring.apprentice.Apprentice`."""
        self._prior = prior
        self._used = np.array([float(name not in without) for name in FEATURE_NAMES])
        self._learns = learns
        self._rootward = depth_penalty
        self._online_update = OnlineUpdate(replace(prior, weights=prior.weights * self._used))
        self._relevance_found = 0.0

    def predict(self, rows: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores and worths of rows of features, as they are kept, each of shape (n,).

        ``rows`` has shape (n, features); ``levels``, shape (n,), are below their hosts' roots.
        """
        weights = (self._prior.weights + self._online_update.weights) * self._used
        log_odds = self._prior.bias + self._online_update.bias + rows @ weights
        log_odds = np.minimum(np.maximum(log_odds, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        # What a link is rank_score less for its place in its site's tree, in nats.
        lost = _RELEVANCE_TO_HALVE_PENALTY / (_RELEVANCE_TO_HALVE_PENALTY + self._relevance_found)
        detour = self._rootward * lost * levels
        return round_precision(expit(log_odds), np.float32), round_precision(
            log_odds - detour, np.float32
        )

    def learn(self, features: Sequence[float], relevance: float) -> None:
        """A link of ``features``, empty of a seed, led to a page of ``relevance`` in [0, 1]."""
        self._relevance_found += relevance
        if features and self._learns:
            self._online_update.learn(np.array(features) * self._used, relevance)

    def state(self) -> Mapping[str, Any]:
        """All that was learned, as plain data; see :meth:`restore`."""
        return {
            "relevance_found": self._relevance_found,
            "correction": self._online_update.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state` was taken; what else is in it is not read."""
        self._relevance_found = state["relevance_found"]
        self._online_update.restore(state["correction"])


MAX_EXAMPLES = 2_000
"""The last lessons are kept, 8 bytes a feature each; older ones no longer count."""

_FIT_INTERVAL = 25
# How many lessons' worth of doubt there is before a weight moves by one standard deviation of
# its feature; the bias moves freely, for crawls differ in how much of what they meet is good.
_PRECISION = 30.0
_BIAS_PRECISION = 1.0
_PRECISIONS = np.append(np.full(len(FEATURE_NAMES), _PRECISION), _BIAS_PRECISION)
_CAPACITY = MAX_EXAMPLES + _FIT_INTERVAL

# In nats, of the lesson that moves most. What is left after a last whole step is its square.
_MAX_STEP = 1.0
_TOLERANCE = 1e-3
_MAX_ITERATIONS = 100


class OnlineUpdate:
    """What is added to the prior's log-odds: ``weights`` . features + ``bias``."""

    def __init__(self, prior: LinkPrior) -> None:
        self._prior = prior
        # A column a lesson; the last row is its relevance.
        self._examples = np.empty((len(prior.weights) + 1, _CAPACITY))
        self._n_kept = 0
        self._n_seen = 0
        self.weights: FloatArray = np.zeros(len(prior.weights))
        self.bias = 0.0

    def learn(self, features: Sequence[float] | FloatArray, relevance: float) -> None:
        """A link with this features led to a page of ``relevance`` in [0, 1]."""
        self._examples[:-1, self._n_kept] = features
        self._examples[-1, self._n_kept] = relevance
        self._n_kept += 1
        self._n_seen += 1
        if self._n_seen % _FIT_INTERVAL == 0:
            self._forget()
            self._fit()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restore`."""
        lessons = self._examples[:, : self._n_kept].astype("<f8").tobytes()
        return [self._n_seen, self.weights.tolist(), self.bias, lessons]

    def restore(self, state: Any) -> None:
        """Go on where :meth:`state` was taken."""
        self._n_seen, weights, self.bias, kept = state
        self.weights = np.array(weights)
        lessons = np.frombuffer(kept, "<f8").reshape(len(self._examples), -1)
        self._n_kept = lessons.shape[1]
        self._examples[:, : self._n_kept] = lessons

    def _forget(self) -> None:
        too_many = self._n_kept - MAX_EXAMPLES
        if too_many > 0:
            self._examples[:, :MAX_EXAMPLES] = self._examples[:, too_many : self._n_kept].copy()
            self._n_kept = MAX_EXAMPLES

    def _fit(self) -> None:
        prior = self._prior
        rows, target = self._examples[:-1, : self._n_kept], self._examples[-1, : self._n_kept]
        offset = prior.bias + prior.weights @ rows
        # Centred: else a weight that moves would move all scores, and be the bias held firmly.
        middle = rows.mean(axis=1)
        design = np.ones((len(rows) + 1, self._n_kept))
        design[:-1] = (rows - middle[:, None]) / prior.scales[:, None]
        start = np.append(self.weights * prior.scales, self.bias + middle @ self.weights)
        moved = _fit_newton(design, offset, target, start)
        self.weights = moved[:-1] / prior.scales
        self.bias = float(moved[-1] - middle @ self.weights)


def _fit_newton(
    design: FloatArray, offset: FloatArray, target: FloatArray, moved: FloatArray
) -> FloatArray:
    """Where ``target`` is likeliest by the log-odds offset + moved . design, ``moved`` being held.

    ``design`` has shape (k, n), the result (k,).
    """
    log_odds = offset + moved @ design
    for _ in range(_MAX_ITERATIONS):
        # The tangent's form of the logistic function is the one that is soonest there.
        share = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        slope = design @ (share - target) + _PRECISIONS * moved
        bend = (design * (share * (1.0 - share))) @ design.T
        bend.flat[:: len(bend) + 1] += _PRECISIONS
        step = np.linalg.solve(bend, slope)
        change = step @ design
        longest = float(np.abs(change).max())
        # Where the log-odds move by less than this, every step leads down.
        part = min(1.0, _MAX_STEP / max(longest, _TOLERANCE))
        moved = moved - part * step
        log_odds -= part * change
        if longest < _TOLERANCE:
            break
    return moved
