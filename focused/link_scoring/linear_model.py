"""The apprentice's linear model: a prior fitted on recorded webs, updated online.

:class:`LinkPrior` has the initial weights. ``training/link_prior.py`` fits them on crawls of
labelled webs; they are shipped. Its card names these webs: a crawl must not be evaluated on labels
that its link scorer was fitted on.

:class:`LinearModel` turns link features into scores (probabilities) and rank scores. While
the crawl has found little, links near their host's root are ranked first, and on a single site a
meaning unlike the topic's counts for little. Both change the rank score, not the probability.

:class:`OnlineUpdate` is Bayesian logistic regression with the prior's log-odds as a fixed
offset and a Gaussian around zero. It is refitted to the last examples at intervals.
Targets are calibrated relevances, not 0 or 1, so that an uncertain classifier has little
influence.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.kernels.link_features import predict
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES
from focused.link_scoring.recalibration import ScoreRecalibration, fit_newton, one_blas_thread

PRIOR_FORMAT = 1
DEFAULT_PRIOR = "all-webs"
_DEFAULT_BIAS = -2.2
_PRIOR_NAME = re.compile(r"[a-z0-9-]+")


class LinkPriorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a prior file; ``weights`` by feature.

    ``scales`` are the features' standard deviations in the logged crawls; ``fitted_on`` the
    names of the webs, ``examples`` the number of links.
    """

    format: int
    fitted_on: tuple[str, ...]
    examples: int
    bias: float
    weights: dict[str, float]
    scales: dict[str, float]


@dataclass(frozen=True)
class LinkPrior:
    """A linear model in log-odds; ``weights`` and ``scales`` have shape (len(FEATURE_NAMES),)."""

    name: str
    fitted_on: tuple[str, ...]
    bias: float
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]


def list_shipped_priors() -> dict[str, Traversable]:
    """Return the shipped priors by name."""
    folder = files("focused.link_scoring").joinpath("priors")
    found = {each.name.removesuffix(".json"): each for each in folder.iterdir()}
    return {name: found[name] for name in sorted(found) if _PRIOR_NAME.fullmatch(name)}


def load_link_prior(name: str | Path = DEFAULT_PRIOR) -> LinkPrior:
    """Load a shipped prior by name, or a prior file by path; raises ConfigurationError."""
    shipped = list_shipped_priors()
    source = shipped.get(str(name)) or Path(name)
    if not source.is_file():
        raise ConfigurationError(
            f"training.link_prior: there is no prior {str(name)!r}; use the path of a file, "
            f"or one of {', '.join(shipped)}"
        )
    try:
        prior_file = msgspec.json.decode(source.read_bytes(), type=LinkPriorFile)
    except (msgspec.MsgspecError, OSError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{source}: this is not a link prior: {error}") from error
    return _validate_prior(str(name), prior_file, str(source))


def uninformed_prior(prior: LinkPrior) -> LinkPrior:
    """Return a prior with zero weights that expects one relevant page in ten."""
    return replace(prior, name="none", bias=_DEFAULT_BIAS, weights=np.zeros_like(prior.weights))


def _validate_prior(name: str, prior_file: LinkPriorFile, where: str) -> LinkPrior:
    if prior_file.format != PRIOR_FORMAT:
        raise ConfigurationError(
            f"{where}: format {prior_file.format}, but this version reads {PRIOR_FORMAT}; "
            "fit it again with training/link_prior.py"
        )
    for part, values in (("weights", prior_file.weights), ("scales", prior_file.scales)):
        mismatched = set(values) ^ set(FEATURE_NAMES)
        if mismatched:
            raise ConfigurationError(
                f"{where}: {part} do not fit this version's features "
                f"({', '.join(sorted(mismatched))}); fit it again with training/link_prior.py"
            )
    weights = np.array([prior_file.weights[each] for each in FEATURE_NAMES])
    scales = np.array([prior_file.scales[each] for each in FEATURE_NAMES])
    if not (np.isfinite(weights).all() and (scales > 0).all() and np.isfinite(prior_file.bias)):
        raise ConfigurationError(f"{where}: weights must be finite, and scales positive")
    return LinkPrior(name, prior_file.fitted_on, prior_file.bias, weights, scales)


# Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md).
DEPTH_PENALTY = 0.5
_RELEVANCE_TO_HALVE_PENALTY = 3.0
_MEANING = [FEATURE_INDEX[name] for name in ("anchor_meaning", "context_meaning", "url_meaning")]
_MAX_LOG_ODDS = 12.0

FloatArray = NDArray[np.float64]


class LinearModel:
    """The current weights of one crawl."""

    def __init__(
        self,
        prior: LinkPrior,
        without: Sequence[str],
        *,
        learns: bool,
        depth_penalty: float,
    ) -> None:
        """See :class:`focused.link_scoring.apprentice.Apprentice`."""
        self._prior = prior
        self._used = np.array([float(name not in without) for name in FEATURE_NAMES])
        self._learns = learns
        self._depth_penalty = depth_penalty
        self._online_update = OnlineUpdate(replace(prior, weights=prior.weights * self._used))
        self._recalibration = ScoreRecalibration()
        self._relevance_found = 0.0
        self._weights, self._bias = self._current_weights()

    def predict(
        self,
        rows: Sequence[Sequence[float]],
        levels: Sequence[int],
        *,
        discounts_meaning: bool = False,
    ) -> tuple[list[float], list[float]]:
        """Return scores and rank scores of n feature rows, rounded as they are stored.

        ``levels`` are the depths of the URL paths. With ``discounts_meaning`` a meaning unlike the
        topic's lowers no rank score before the topic is found: the way to the topic leads over
        pages that mean something else.
        """
        # Depth penalty and discount decrease with the relevance found, in nats.
        search_factor = _RELEVANCE_TO_HALVE_PENALTY / (
            _RELEVANCE_TO_HALVE_PENALTY + self._relevance_found
        )
        scores, rank_scores = predict(
            list(map(list, rows)),
            list(levels),
            self._weights,
            self._bias,
            _MAX_LOG_ODDS,
            self._depth_penalty * search_factor,
            _MEANING if discounts_meaning else [],
            search_factor,
        )
        return array("f", scores).tolist(), array("f", rank_scores).tolist()

    def calibrate(self, scores: Sequence[float]) -> list[float]:
        """Return calibrated scores of :meth:`predict`, in the same order."""
        return self._recalibration.apply(scores)

    def learn(self, features: Sequence[float], relevance: float, tempered: float) -> None:
        """Update with one example; ``features`` is empty for a seed.

        Scores follow ``relevance``, calibrated scores the ``tempered`` relevance.
        """
        self._relevance_found += relevance
        if features and self._learns:
            # At the root the rank score is the log-odds, in single precision.
            _, (log_odds,) = self.predict([features], [0])
            self._recalibration.learn(log_odds, tempered)
            self._online_update.learn(np.array(features) * self._used, relevance)
            self._weights, self._bias = self._current_weights()

    def state(self) -> Mapping[str, Any]:
        """Return the learned state as plain data."""
        return {
            "relevance_found": self._relevance_found,
            "correction": self._online_update.state(),
            "recalibration": self._recalibration.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state` returned; ignores other keys."""
        self._relevance_found = state["relevance_found"]
        self._online_update.restore(state["correction"])
        self._recalibration.restore(state["recalibration"])
        self._weights, self._bias = self._current_weights()

    def _current_weights(self) -> tuple[list[float], float]:
        weights = (self._prior.weights + self._online_update.weights) * self._used
        return weights.tolist(), self._prior.bias + self._online_update.bias


MAX_EXAMPLES = 2_000
"""Number of examples kept, 8 bytes per feature each; older ones are dropped."""

_FIT_INTERVAL = 25
# Prior precisions of the weights, per standard deviation of the feature, and of the bias. The bias
# is nearly free, because the probability of good pages differs between crawls.
_PRECISION = 30.0
_BIAS_PRECISION = 1.0
_PRECISIONS = np.append(np.full(len(FEATURE_NAMES), _PRECISION), _BIAS_PRECISION)
_CAPACITY = MAX_EXAMPLES + _FIT_INTERVAL


class OnlineUpdate:
    """The correction of the prior's log-odds: ``weights`` · features + ``bias``."""

    def __init__(self, prior: LinkPrior) -> None:
        self._prior = prior
        # One column per example; the last row is the relevance.
        self._examples = np.empty((len(prior.weights) + 1, _CAPACITY))
        self._n_kept = 0
        self._n_seen = 0
        self.weights: FloatArray = np.zeros(len(prior.weights))
        self.bias = 0.0

    def learn(self, features: Sequence[float] | FloatArray, relevance: float) -> None:
        """Add one example: features of a link and the relevance of its target in [0, 1]."""
        self._examples[:-1, self._n_kept] = features
        self._examples[-1, self._n_kept] = relevance
        self._n_kept += 1
        self._n_seen += 1
        if self._n_seen % _FIT_INTERVAL == 0:
            self._forget()
            with one_blas_thread():
                self._fit()

    def state(self) -> Any:
        """Return the learned state as plain data."""
        examples = self._examples[:, : self._n_kept].astype("<f8").tobytes()
        return [self._n_seen, self.weights.tolist(), self.bias, examples]

    def restore(self, state: Any) -> None:
        """Restore what :meth:`state` returned."""
        self._n_seen, weights, self.bias, kept = state
        self.weights = np.array(weights)
        examples = np.frombuffer(kept, "<f8").reshape(len(self._examples), -1)
        self._n_kept = examples.shape[1]
        self._examples[:, : self._n_kept] = examples

    def _forget(self) -> None:
        too_many = self._n_kept - MAX_EXAMPLES
        if too_many > 0:
            self._examples[:, :MAX_EXAMPLES] = self._examples[:, too_many : self._n_kept].copy()
            self._n_kept = MAX_EXAMPLES

    def _fit(self) -> None:
        prior = self._prior
        rows, target = self._examples[:-1, : self._n_kept], self._examples[-1, : self._n_kept]
        offset = prior.bias + prior.weights @ rows
        # Centred, so that weights and bias are independent.
        mean = rows.mean(axis=1)
        design = np.ones((len(rows) + 1, self._n_kept))
        design[:-1] = (rows - mean[:, None]) / prior.scales[:, None]
        start = np.append(self.weights * prior.scales, self.bias + mean @ self.weights)
        moved = fit_newton(design, offset, target, _PRECISIONS, start)
        self.weights = moved[:-1] / prior.scales
        self.bias = float(moved[-1] - mean @ self.weights)
