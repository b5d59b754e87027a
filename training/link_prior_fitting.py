"""Fits a link prior on logged links with labels.

Logistic regression with an intercept per run, so that the weights separate links within a
run, not topics that are easier to find (conditional on the run, as in matched case-control
studies: Breslow and Day 1980, chapter 7; here the intercepts are shrunk to their mean).
Signs are constrained. The fit is deterministic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from focused.classifier.calibration import expit
from focused.link_scoring.linear_model import PRIOR_FORMAT, LinkPriorFile
from focused.link_scoring.link_features import FEATURE_NAMES

RIDGE = 2_000.0
"""L2 penalty of the weights, per standard deviation of the feature.

Correlated features share their weight, and what only one web shows counts less: on bounds-out
webs 2,000 ranks links slightly better than 20.
"""

INTERCEPT_RIDGE = 0.5
"""L2 penalty of an intercept's distance from the mean, for a run of mean size."""

COEFFICIENT_SIGNS: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(FEATURE_NAMES, 1) | {"since": -1, "in_links": 0}
)
"""1: not below zero; -1: not above; 0: no weight.

The number of in-links depends on how long the crawl has known the target, which differs in
longer crawls.
"""

_DIGITS = 4
_MIN_SCALE = 0.05


@dataclass(frozen=True)
class LoggedRun:
    """The links followed by one crawl.

    ``rows``, shape (n, len(FEATURE_NAMES)), are their features before the fetch; ``on_topic``,
    shape (n,), the labels of their targets.
    """

    web: str
    topic: str
    rows: NDArray[np.float64]
    on_topic: NDArray[np.bool_]


def fit_link_prior(
    runs: Sequence[LoggedRun], *, ridge: float = RIDGE, intercept_ridge: float = INTERCEPT_RIDGE
) -> LinkPriorFile:
    """Fit a prior on ``runs``; each web has the same weight, and each run of a web.

    ``bias`` is the mean intercept, ``scales`` the features' standard deviations. Raises
    ValueError if the runs hold no links of one class.
    """
    runs = [run for run in runs if len(run.on_topic)]
    on_topic = np.concatenate([run.on_topic for run in runs]) if runs else np.empty(0, np.bool_)
    if on_topic.all() or not on_topic.any():
        raise ValueError("a prior needs links that led to pages on topic, and links that did not")
    rows = np.concatenate([run.rows for run in runs])
    share = _example_weights(runs)
    mean = np.average(rows, axis=0, weights=share)
    scales = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=share))
    scales = np.maximum(scales, _MIN_SCALE)
    run_of = np.repeat(np.arange(len(runs)), [len(run.on_topic) for run in runs])
    problem = _PriorObjective(
        (rows - mean) / scales, on_topic, share, run_of, ridge, intercept_ridge
    )
    standard, bias = problem.solve()
    weights = standard / scales
    return LinkPriorFile(
        format=PRIOR_FORMAT,
        fitted_on=tuple(dict.fromkeys(run.web for run in runs)),
        examples=len(rows),
        bias=_round_weight(float(bias - mean @ weights)),
        weights=dict(zip(FEATURE_NAMES, map(_round_weight, weights), strict=True)),
        scales=dict(zip(FEATURE_NAMES, map(_round_weight, scales), strict=True)),
    )


def log_odds(prior: LinkPriorFile, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a prior's log-odds of feature ``rows``, shape (n,)."""
    weights = np.array([prior.weights[name] for name in FEATURE_NAMES])
    return np.asarray(prior.bias + rows @ weights, dtype=np.float64)


def runs_with_both_classes(runs: Sequence[LoggedRun]) -> list[LoggedRun]:
    """Return the runs with links to on-topic pages and to others."""
    return [run for run in runs if run.on_topic.any() and not run.on_topic.all()]


def _example_weights(runs: Sequence[LoggedRun]) -> NDArray[np.float64]:
    """Return weights with mean 1: equal for webs, for runs of a web, for links of a run."""
    runs_of = Counter(run.web for run in runs)
    links = sum(len(run.on_topic) for run in runs)
    return np.concatenate(
        [
            np.full(n, links / (len(runs_of) * runs_of[run.web] * n))
            for run in runs
            if (n := len(run.on_topic))
        ]
    )


def _round_weight(value: float) -> float:
    # + 0.0 turns -0.0 into 0.0.
    return round(float(value), _DIGITS) + 0.0


@dataclass(frozen=True)
class _PriorObjective:
    """The objective; ``design`` is standardised, shape (n, k), ``share`` and ``run_of`` (n,)."""

    design: NDArray[np.float64]
    on_topic: NDArray[np.bool_]
    share: NDArray[np.float64]
    run_of: NDArray[np.int64]
    ridge: float
    intercept_ridge: float

    def solve(self) -> tuple[NDArray[np.float64], float]:
        """Return the optimal weights, shape (k,), and the mean intercept."""
        share_of_run = np.bincount(self.run_of, self.share) / self.share.sum()
        bounds = [_BOUNDS[COEFFICIENT_SIGNS[name]] for name in FEATURE_NAMES]
        found = minimize(
            self._loss,
            np.zeros(len(bounds) + len(share_of_run)),
            args=(share_of_run,),
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, *[_BOUNDS[None]] * len(share_of_run)],
            # Tighter than the rounding of the weights.
            options={"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-13, "gtol": 1e-4},
        )
        weights, intercepts = np.split(found.x, [len(bounds)])
        return weights, float(share_of_run @ intercepts)

    def _loss(
        self, point: NDArray[np.float64], share_of_run: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient; ``share_of_run``, shape (runs,), sums to 1."""
        weights, intercepts = np.split(point, [self.design.shape[1]])
        # Not BLAS: the order of its sums differs between machines.
        log_odds = np.einsum("ij,j->i", self.design, weights) + intercepts[self.run_of]
        deviation = intercepts - share_of_run @ intercepts
        precision = self.intercept_ridge * len(intercepts) * share_of_run
        log_loss = np.logaddexp(0.0, log_odds) - self.on_topic * log_odds
        loss = (self.share * log_loss).sum()
        loss += 0.5 * self.ridge * (weights @ weights)
        loss += 0.5 * (precision @ deviation**2)
        residuals = self.share * (expit(log_odds) - self.on_topic)
        run_gradient = np.bincount(self.run_of, residuals, minlength=len(intercepts))
        weight_gradient = np.einsum("ij,i->j", self.design, residuals)
        gradient = (weight_gradient + self.ridge * weights, run_gradient + precision * deviation)
        return float(loss), np.concatenate(gradient)


_BOUNDS: Mapping[int | None, tuple[float | None, float | None]] = MappingProxyType(
    {1: (0.0, None), -1: (None, 0.0), 0: (0.0, 0.0), None: (None, None)}
)
