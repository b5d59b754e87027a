"""Calibration of a topic classifier: probabilities, threshold, and what is too foreign to judge."""

from __future__ import annotations

import numpy as np

from focused.errors import TrainingError
from focused.learning.calibration import (
    Bools,
    Floats,
    cross_fitted,
    expit,
    fit_curve,
    logit,
    measure,
    platt,
    reliability,
)
from focused.learning.plan import Plan
from focused.learning.report import Trial
from focused.learning.thresholds import Threshold, Wish, chosen_threshold
from focused.learning.topic_classifier import Calibration
from focused.learning.trial import MIN_HOST_AUC, Material, OutOfFold, try_out

_PRIOR_RANGE = (0.02, 0.5)
# Measured (docs/explanation/classifier.md): pages of the samples' language have a larger share of
# known words but for one in a hundred, those of other languages hardly ever.
_FOREIGN_QUANTILE, _FOREIGN_PART = 0.02, 0.65
_FOREIGN_RANGE = (0.05, 0.5)


def calibrate(
    material: Material, known_share: Floats, plan: Plan
) -> tuple[Calibration, OutOfFold, Trial]:
    """Try the estimator out and calibrate on what it said of left-out samples.

    ``known_share`` is of each own sample's words. Raises
    :class:`TrainingError` when left-out samples are not told apart.
    """
    good, weights = material.drawn_good, material.drawn_weights
    seen, host_auc = try_out(material, plan.estimator, plan.seed)
    curve = fit_curve(seen.evidence, good, weights)
    if curve.slope <= 0:
        raise TrainingError(
            "training.good: cross-validation finds no difference between the good samples and "
            "the rest; give more samples of more hosts, or check that the categories are right"
        )
    share = float(np.average(good, weights=weights))
    prior = held_prior(share) if plan.prior is None else plan.prior
    shift = logit(prior) - logit(share)
    relevance = cross_fitted(seen.evidence, good, seen.fold, weights)
    # A precision holds at the prior only; the best F1 was always that of the samples.
    at_prior = weights if plan.wish == Wish() else _at_prior(weights, good, prior)
    threshold = chosen_threshold(relevance, good, at_prior, plan.wish)
    calibration = Calibration(
        curve=curve,
        shift=shift,
        verdict_slope=max(platt(seen.title_evidence, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=foreign_below(known_share),
    )
    return (
        calibration,
        seen,
        calibration_trial(seen, host_auc, good, at_prior, relevance, threshold, plan.wish),
    )


def calibration_trial(
    seen: OutOfFold,
    host_auc: float | None,
    good: Bools,
    weights: Floats,
    relevance: Floats,
    threshold: Threshold,
    wish: Wish,
) -> Trial:
    """The figures of a trial; ``weights`` and ``relevance`` are of the m drawn samples."""
    before = expit(seen.evidence)
    return Trial(
        by_host=host_auc is not None and host_auc >= MIN_HOST_AUC,
        host_auc=host_auc,
        folds=len(np.unique(seen.fold)) if np.ptp(seen.fold) else 0,
        naive_bayes=measure(seen.naive_bayes, good, 0.5, weights),
        uncalibrated=measure(before, good, 0.5, weights),
        calibrated=measure(relevance, good, threshold.relevance, weights),
        bins_before=tuple(reliability(before, good, weights)),
        bins_after=tuple(reliability(relevance, good, weights)),
        kind=seen.kind,
        taxonomy=seen.taxonomy,
        named=seen.named,
        wish=str(wish),
        granted=threshold.granted,
    )


def _at_prior(weights: Floats, good: Bools, prior: float) -> Floats:
    """Weights under which the good samples' share is ``prior``."""
    result = weights.copy()
    for side, share in ((good, prior), (~good, 1.0 - prior)):
        result[side] *= share * weights.sum() / weights[side].sum()
    return result


def held_prior(share: float) -> float:
    """A share of good pages, held within what a crawl may meet."""
    return float(np.clip(share, *_PRIOR_RANGE))


def foreign_below(known_share: Floats) -> float:
    """The share of known words below which a page is foreign, by that of the samples."""
    usual = float(np.quantile(known_share, _FOREIGN_QUANTILE))
    return float(np.clip(_FOREIGN_PART * usual, *_FOREIGN_RANGE))
