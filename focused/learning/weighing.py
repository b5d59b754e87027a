"""What evidence weighs: rows of it become scores, and worths by which links are ordered.

Weights that were fitted on recorded webs (:mod:`focused.learning.link_prior`)
are moved by what this crawl has taught (:mod:`focused.learning.correction`).

While the crawl has found little, pages near their host's root come first:
from there the ways part. That is in a link's *worth*, which orders, and not in
its score, which stays a probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.calibration import expit
from focused.learning.correction import Correction
from focused.learning.evidence import FEATURE_NAMES, rounded
from focused.learning.link_prior import LinkPrior

# Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md).
ROOTWARD = 0.5
_FOUND_ENOUGH = 3.0
_MAX_LOG_ODDS = 12.0

Floats = NDArray[np.float64]


class Weighing:
    """The weights of one crawl, as they are now."""

    def __init__(
        self, prior: LinkPrior, without: Sequence[str], *, learns: bool, rootward: float
    ) -> None:
        """See :class:`focused.learning.apprentice.Apprentice`."""
        self._prior = prior
        self._used = np.array([float(name not in without) for name in FEATURE_NAMES])
        self._learns = learns
        self._rootward = rootward
        self._correction = Correction(replace(prior, weights=prior.weights * self._used))
        self._relevance_found = 0.0

    def weigh(self, rows: Floats, levels: Floats) -> tuple[Floats, Floats]:
        """Scores and worths of rows of evidence, as they are kept, each of shape (n,).

        ``rows`` has shape (n, features); ``levels``, shape (n,), are below their hosts' roots.
        """
        weights = (self._prior.weights + self._correction.weights) * self._used
        log_odds = self._prior.bias + self._correction.bias + rows @ weights
        log_odds = np.minimum(np.maximum(log_odds, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        # What a link is worth less for its place in its site's tree, in nats.
        lost = _FOUND_ENOUGH / (_FOUND_ENOUGH + self._relevance_found)
        detour = self._rootward * lost * levels
        return rounded(expit(log_odds), np.float32), rounded(log_odds - detour, np.float32)

    def learn(self, evidence: Sequence[float], relevance: float) -> None:
        """A link of ``evidence``, empty of a seed, led to a page of ``relevance`` in [0, 1]."""
        self._relevance_found += relevance
        if evidence and self._learns:
            self._correction.learn(np.array(evidence) * self._used, relevance)

    def state(self) -> Mapping[str, Any]:
        """All that was learned, as plain data; see :meth:`restore`."""
        return {
            "relevance_found": self._relevance_found,
            "correction": self._correction.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state` was taken; what else is in it is not read."""
        self._relevance_found = state["relevance_found"]
        self._correction.restore(state["correction"])
