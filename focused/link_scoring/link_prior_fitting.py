"""The link prior is fitted: logged links with labels in, a prior's file out.

Logistic regression with an intercept of its own for each run, so that weights
tell what sets links of one run apart, and not that one topic is found more
easily than another (conditional on the run, as in matched case-control
studies: Breslow and Day 1980, chapter 7; here with the intercepts drawn to
their mean). Evidence never counts against what it was made to speak for: signs
are held. Nothing is drawn by lot: the same runs give the same prior.
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
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.link_prior import PRIOR_FORMAT, LinkPriorFile

RIDGE = 2_000.0
"""How many examples' worth of doubt holds a weight, per standard deviation, at zero.

Features that say the same share the weight, and what only one web says counts for less: on
webs left out the fit with 2,000 ranked links a little better than with 20.
"""

INTERCEPT_RIDGE = 0.5
"""The same, in a run of mean share, for the distance of its intercept from the mean of all."""

COEFFICIENT_SIGNS: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(FEATURE_NAMES, 1)
    | {"since": -1, "out_degree": -1, "navigation": -1}
    | {"in_links": 0}
)
"""1: never below zero; -1: never above; 0: no weight.

How many pages link to a target tells how long the crawl has met it: that is its
place in the log, and another one in a longer crawl.
"""

_DIGITS = 4
_MIN_SCALE = 0.05


@dataclass(frozen=True)
class LoggedRun:
    """The links that one crawl followed.

    ``rows``, shape (n, len(FEATURE_NAMES)), is their features as it was before
    the fetch; ``on_topic``, shape (n,), what they led to, by labels.
    """

    web: str
    topic: str
    rows: NDArray[np.float64]
    on_topic: NDArray[np.bool_]


def fit_link_prior(
    runs: Sequence[LoggedRun], *, ridge: float = RIDGE, intercept_ridge: float = INTERCEPT_RIDGE
) -> LinkPriorFile:
    """Fit a prior on ``runs``; each web counts alike, and each run of a web.

    The prior's ``bias`` is the mean of the runs' intercepts, weighed alike, its
    ``scales`` the features' standard deviations. Raises ValueError when the runs hold no link,
    or none that led to a page on topic, or none that did not.
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
    """What a prior gives links with the features ``rows``, shape (n,), in nats."""
    weights = np.array([prior.weights[name] for name in FEATURE_NAMES])
    return np.asarray(prior.bias + rows @ weights, dtype=np.float64)


def runs_with_both_classes(runs: Sequence[LoggedRun]) -> list[LoggedRun]:
    """The runs that have links to pages on topic and links to others."""
    return [run for run in runs if run.on_topic.any() and not run.on_topic.all()]


def _example_weights(runs: Sequence[LoggedRun]) -> NDArray[np.float64]:
    """What each link counts, 1 in the mean: webs alike, runs of a web alike, links of a run."""
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
    # Where the sign is held a zero may come with a minus.
    return round(float(value), _DIGITS) + 0.0


@dataclass(frozen=True)
class _PriorObjective:
    """``design`` is standardised, shape (n, k); ``share`` and ``run_of`` have shape (n,)."""

    design: NDArray[np.float64]
    on_topic: NDArray[np.bool_]
    share: NDArray[np.float64]
    run_of: NDArray[np.int64]
    ridge: float
    intercept_ridge: float

    def solve(self) -> tuple[NDArray[np.float64], float]:
        """The likeliest weights, shape (k,), and the mean intercept."""
        share_of_run = np.bincount(self.run_of, self.share) / self.share.sum()
        held = [_BOUNDS[COEFFICIENT_SIGNS[name]] for name in FEATURE_NAMES]
        found = minimize(
            self._loss,
            np.zeros(len(held) + len(share_of_run)),
            args=(share_of_run,),
            jac=True,
            method="L-BFGS-B",
            bounds=[*held, *[_BOUNDS[None]] * len(share_of_run)],
            # Closer than a weight is rounded.
            options={"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-13, "gtol": 1e-4},
        )
        weights, intercepts = np.split(found.x, [len(held)])
        return weights, float(share_of_run @ intercepts)

    def _loss(
        self, point: NDArray[np.float64], share_of_run: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """``share_of_run``, shape (runs,), adds up to 1."""
        weights, intercepts = np.split(point, [self.design.shape[1]])
        # Not by BLAS, whose threads add up in an order of their own, on each machine another.
        log_odds = np.einsum("ij,j->i", self.design, weights) + intercepts[self.run_of]
        apart = intercepts - share_of_run @ intercepts
        doubt = self.intercept_ridge * len(intercepts) * share_of_run
        surprise = np.logaddexp(0.0, log_odds) - self.on_topic * log_odds
        loss = (self.share * surprise).sum()
        loss += 0.5 * self.ridge * (weights @ weights)
        loss += 0.5 * (doubt @ apart**2)
        wrong = self.share * (expit(log_odds) - self.on_topic)
        of_runs = np.bincount(self.run_of, wrong, minlength=len(intercepts))
        of_weights = np.einsum("ij,i->j", self.design, wrong)
        slope = (of_weights + self.ridge * weights, of_runs + doubt * apart)
        return float(loss), np.concatenate(slope)


_BOUNDS: Mapping[int | None, tuple[float | None, float | None]] = MappingProxyType(
    {1: (0.0, None), -1: (None, 0.0), 0: (0.0, 0.0), None: (None, None)}
)
