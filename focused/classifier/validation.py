"""Trying a topic classifier out on samples that it has not seen, and choosing by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from focused.classifier.calibration import (
    BoolArray,
    ChosenThreshold,
    FloatArray,
    ThresholdTarget,
    choose_threshold,
    compute_metrics,
    cross_fit_probabilities,
    expit,
    fit_calibration_curve,
    fit_platt_scaling,
    logit,
    reliability_bins,
    roc_auc,
)
from focused.classifier.estimators import TrainingOptions, fit_word_weights
from focused.classifier.taxonomy import (
    NAIVE_BAYES_KINDS,
    ROOT_NODE,
    TAXONOMY_SHAPES,
    Taxonomy,
    fit_taxonomy,
    log_likelihood_ratio,
)
from focused.classifier.topic_classifier import Calibration, score_short_texts
from focused.classifier.training_report import ValidationReport
from focused.errors import TrainingError
from focused.text.documents import Vocabulary

MIN_HOST_AUC = 0.75
"""Below this on left-out hosts, the model is calibrated on left-out pages."""

ClassSums = NDArray[np.floating[Any]]
"""Single precision does: they are of numbers up to some ten."""

_TAXONOMY_CHOICES = tuple((kind, shape) for shape in TAXONOMY_SHAPES for kind in NAIVE_BAYES_KINDS)
# Choices by less are chance: of three topics where complement naive Bayes was ahead by 0.01 to
# 0.05 on left-out hosts, it was behind on the pages of the whole web on two.
_KIND_MARGIN = 0.05
_TAXONOMY_MARGIN = 0.01


@dataclass(frozen=True)
class TrainingData:
    """The samples as fits want them: n of them, of which m are ``drawn``.

    All count for naive Bayes, whose sums are made from ``batches()``, rows of
    shape (·, V) in order; ``rows``, shape (m, V), are those of the samples that
    regressions and trials see. ``category`` is the place of each of the n
    samples in ``categories`` (C of them), ``category_good`` those places'
    sides. ``weights``, ``hosts`` and ``titles`` are of all n samples.
    """

    batches: Callable[[], Iterator[sp.csr_matrix]]
    rows: sp.csr_matrix
    drawn: NDArray[np.intp]
    category: NDArray[np.intp]
    categories: tuple[str, ...]
    category_good: BoolArray
    weights: FloatArray
    hosts: Sequence[str]
    titles: Sequence[str]
    vocabulary: Vocabulary

    @property
    def good(self) -> BoolArray:
        """The side of each of the n samples."""
        return np.asarray(self.category_good[self.category])

    @property
    def drawn_good(self) -> BoolArray:
        """The side of each of the m samples drawn."""
        return np.asarray(self.good[self.drawn])

    @property
    def drawn_weights(self) -> FloatArray:
        """Weights of the m samples drawn; each side keeps its weight in all n."""
        good, weights = self.good, self.weights[self.drawn].copy()
        for side in (True, False):
            mine = self.drawn_good == side
            weights[mine] *= self.weights[good == side].sum() / weights[mine].sum()
        return weights

    def sums(self, folds: NDArray[np.intp]) -> tuple[ClassSums, FloatArray]:
        """Weighed vectors summed by fold and category, shape (F, C, V), and weights (F, C)."""
        groups, width = int(folds.max()) + 1, len(self.categories)
        place = folds * width + self.category
        total = np.zeros((groups * width, len(self.vocabulary)), dtype=np.float32)
        done = 0
        for rows in self.batches():
            count = rows.shape[0]
            part = slice(done, done + count)
            columns = np.arange(count)
            onto = sp.csr_matrix(
                (self.weights[part], (place[part], columns)), shape=(len(total), count)
            )
            total += np.asarray((onto @ rows).toarray(), dtype=np.float32)
            done += count
        sizes = np.bincount(place, self.weights, minlength=len(total))
        return total.reshape(groups, width, -1), np.asarray(
            sizes.reshape(groups, width), dtype=np.float64
        )


@dataclass(frozen=True, slots=True)
class OutOfFoldPredictions:
    """What models said of samples they had not seen, arrays of shape (m,).

    ``title_scores`` is of the sample's title alone, as
    :func:`score_short_texts` gives it; ``naive_bayes`` the plain soft-focus
    posterior, for comparison; ``fold`` the part each sample was left out with.
    ``kind`` is of :data:`focused.classifier.taxonomy.NAIVE_BAYES_KINDS`, what weighed the words;
    ``taxonomy`` the kind and shape that named most samples' categories rightly,
    ``named`` the share of samples by kind and shape.
    """

    raw_scores: FloatArray
    title_scores: FloatArray
    naive_bayes: FloatArray
    fold: NDArray[np.intp]
    kind: str
    taxonomy: tuple[str, str]
    named: tuple[tuple[str, str, float], ...]


def validate_estimator(
    material: TrainingData, estimator: str, seed: int
) -> tuple[OutOfFoldPredictions, float | None]:
    """The trial to calibrate on, and the AUC on left-out hosts where that was tried.

    Left-out hosts are the honest trial. But a topic that lives on few hosts,
    each with a vocabulary of its own, leaves too little to learn from when one
    is taken away; a calibration on that would call every page doubtful.
    """
    good = material.good
    folds, auc = make_host_folds(good, material.hosts, seed), None
    if folds is not None and _each_fold_leaves_both_classes(
        folds[material.drawn], material.drawn_good
    ):
        seen = cross_validate(material, folds, estimator)
        auc = roc_auc(seen.raw_scores, material.drawn_good, material.drawn_weights)
        if auc >= MIN_HOST_AUC:
            return seen, auc
    return cross_validate(material, make_page_folds(good, seed), estimator), auc


def _each_fold_leaves_both_classes(folds: NDArray[np.intp], good: BoolArray) -> bool:
    """Whether both sides are left when any one fold is taken away."""
    rests = [good[folds != fold] for fold in np.unique(folds)]
    return all(0 < rest.sum() < len(rest) for rest in rests)


def cross_validate(
    material: TrainingData, folds: NDArray[np.intp], estimator: str
) -> OutOfFoldPredictions:
    """Fit on all folds but one, speak about that one, for each fold; choose by what comes out.

    ``folds``, shape (n,), counts from 0. ``estimator`` is one of
    :data:`focused.topic.ESTIMATORS`; the kind of naive Bayes that weighs the
    words is multinomial unless the other ranks clearly better.
    """
    sums, sizes = material.sums(folds)
    fold = folds[material.drawn]
    said = [_predict_left_out(material, sums, fold, estimator, NAIVE_BAYES_KINDS[0])]
    if estimator == "naive-bayes":
        said.append(_predict_left_out(material, sums, fold, estimator, NAIVE_BAYES_KINDS[1]))
    worth = [_average_precision(one[0], material) for one in said]
    best = 1 if worth[-1] > worth[0] + _KIND_MARGIN else 0
    named, plain = _compare_taxonomies(material, sums, sizes, fold)
    kind, shape, share = named[0]
    for other in named[1:]:
        if other[2] > share + _TAXONOMY_MARGIN:
            kind, shape, share = other
    return OutOfFoldPredictions(
        *said[best], plain, fold, NAIVE_BAYES_KINDS[best], (kind, shape), named
    )


def _predict_left_out(
    material: TrainingData, sums: ClassSums, fold: NDArray[np.intp], estimator: str, kind: str
) -> tuple[FloatArray, FloatArray]:
    """Evidence of the left-out samples and of their titles, shape (m,) each."""
    rows, good, weights = material.rows, material.drawn_good, material.drawn_weights
    raw_scores, of_titles = np.zeros(len(good)), np.zeros(len(good))
    total = sums.sum(axis=0)
    for number in np.unique(fold):
        train, test = fold != number, np.flatnonzero(fold == number)
        ratio = good_log_likelihood_ratio(total - sums[number], material.category_good, kind)
        words, bias = fit_word_weights(estimator, rows[train], good[train], weights[train], ratio)
        raw_scores[test] = rows[test] @ words + bias
        shown = [material.titles[i] for i in material.drawn[test]]
        of_titles[test] = score_short_texts(material.vocabulary, words, shown)
    return raw_scores, of_titles


def good_log_likelihood_ratio(sums: ClassSums, category_good: BoolArray, kind: str) -> FloatArray:
    """Naive Bayes' log-likelihood ratio of the good categories to the rest, shape (V,)."""
    ours, others = (
        sums[side].sum(axis=0, dtype=np.float64) for side in (category_good, ~category_good)
    )
    return log_likelihood_ratio(ours, others, kind)


def _average_precision(raw_scores: FloatArray, material: TrainingData) -> float:
    return float(
        average_precision_score(
            material.drawn_good, raw_scores, sample_weight=material.drawn_weights
        )
    )


def _compare_taxonomies(
    material: TrainingData, sums: ClassSums, sizes: FloatArray, fold: NDArray[np.intp]
) -> tuple[tuple[tuple[str, str, float], ...], FloatArray]:
    """The share of left-out samples named rightly by kind and shape, and plain soft focus."""
    truth, weights = material.category[material.drawn], material.drawn_weights
    total, all_sizes = sums.sum(axis=0), sizes.sum(axis=0)
    right = dict.fromkeys(_TAXONOMY_CHOICES, 0.0)
    plain = np.zeros(len(truth))
    for number in np.unique(fold):
        test = np.flatnonzero(fold == number)
        for choice in _TAXONOMY_CHOICES:
            fitted = fit_training_taxonomy(
                material, total - sums[number], all_sizes - sizes[number], choice
            )
            if choice[1] != "flat" and all(above == ROOT_NODE for above in fitted.parents):
                continue  # there is no tree to go down
            posteriors = fitted.log_posteriors(material.rows[test])
            right[choice] += weights[test][posteriors.argmax(axis=1) == truth[test]].sum()
            if choice == _TAXONOMY_CHOICES[0]:
                plain[test] = _soft_focus_posterior(posteriors, material.category_good)
    return tuple((*choice, float(n / weights.sum())) for choice, n in right.items()), plain


def fit_training_taxonomy(
    material: TrainingData, sums: ClassSums, sizes: FloatArray, choice: tuple[str, str]
) -> Taxonomy:
    """The taxonomy of a kind and shape, from sums of shape (C, V) and weights of shape (C,)."""
    good = material.category_good.tolist()
    return fit_taxonomy(material.categories, good, sums, sizes, *choice)


def _soft_focus_posterior(log_posteriors: FloatArray, good: BoolArray) -> FloatArray:
    """The posterior of the good categories, summed, shape (n,)."""
    ours, others = (np.logaddexp.reduce(log_posteriors[:, side], axis=1) for side in (good, ~good))
    return expit(ours - others)


N_FOLDS = 5
# Balancing sides over folds takes time by hosts; so many even out by themselves.
_MAX_STRATIFIED_HOSTS = 2_000


def make_host_folds(good: BoolArray, hosts: Sequence[str], seed: int) -> NDArray[np.intp] | None:
    """Each sample's fold, shape (n,), with hosts kept whole.

    None where that cannot be: good or other samples come from one host, or a
    fold's training part would lack a side.
    """
    names = np.array(hosts)
    sides = [len(set(names[good])), len(set(names[~good]))]
    if min(sides) < 2:
        return None
    folds = _assign_hosts(good, names, min(N_FOLDS, *sides), seed)
    for fold in np.unique(folds):
        if not 0 < good[folds != fold].sum() < (folds != fold).sum():
            return None
    return folds


def _assign_hosts(
    good: BoolArray, names: NDArray[np.str_], count: int, seed: int
) -> NDArray[np.intp]:
    unique, host = np.unique(names, return_inverse=True)
    if len(unique) > _MAX_STRATIFIED_HOSTS:
        return np.asarray(np.random.default_rng(seed).permutation(len(unique))[host] % count)
    splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    return _fold_numbers(splitter.split(names, good, names), len(names))


def make_page_folds(good: BoolArray, seed: int) -> NDArray[np.intp]:
    """Each sample's fold, shape (n,), pages dealt out one by one."""
    count = int(min(N_FOLDS, good.sum(), (~good).sum()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    return _fold_numbers(splitter.split(good, good), len(good))


def _fold_numbers(
    splits: Iterable[tuple[object, NDArray[np.intp]]], count: int
) -> NDArray[np.intp]:
    folds = np.zeros(count, dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        folds[test] = number
    return folds


_PRIOR_RANGE = (0.02, 0.5)
# Measured (docs/explanation/classifier.md): pages of the samples' language have a larger share of
# known words but for one in a hundred, those of other languages hardly ever.
_FOREIGN_QUANTILE, _FOREIGN_PART = 0.02, 0.65
_KNOWN_SHARE_RANGE = (0.05, 0.5)


def calibrate_estimator(
    material: TrainingData, known_share: FloatArray, plan: TrainingOptions
) -> tuple[Calibration, OutOfFoldPredictions, ValidationReport]:
    """Try the estimator out and calibrate on what it said of left-out samples.

    ``known_share`` is of each own sample's words. Raises
    :class:`TrainingError` when left-out samples are not told apart.
    """
    good, weights = material.drawn_good, material.drawn_weights
    seen, host_auc = validate_estimator(material, plan.estimator, plan.seed)
    curve = fit_calibration_curve(seen.raw_scores, good, weights)
    if curve.slope <= 0:
        raise TrainingError(
            "training.good: cross-validation finds no difference between the good samples and "
            "the rest; give more samples of more hosts, or check that the categories are right"
        )
    share = float(np.average(good, weights=weights))
    prior = clip_prior(share) if plan.prior is None else plan.prior
    shift = logit(prior) - logit(share)
    relevance = cross_fit_probabilities(seen.raw_scores, good, seen.fold, weights)
    # A precision holds at the prior only; the best F1 was always that of the samples.
    at_prior = (
        weights
        if plan.threshold_target == ThresholdTarget()
        else _reweight_to_prior(weights, good, prior)
    )
    threshold = choose_threshold(relevance, good, at_prior, plan.threshold_target)
    calibration = Calibration(
        curve=curve,
        shift=shift,
        verdict_slope=max(fit_platt_scaling(seen.title_scores, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=choose_min_known_share(known_share),
    )
    return (
        calibration,
        seen,
        make_validation_report(
            seen, host_auc, good, at_prior, relevance, threshold, plan.threshold_target
        ),
    )


def make_validation_report(
    seen: OutOfFoldPredictions,
    host_auc: float | None,
    good: BoolArray,
    weights: FloatArray,
    relevance: FloatArray,
    threshold: ChosenThreshold,
    threshold_target: ThresholdTarget,
) -> ValidationReport:
    """The figures of a trial; ``weights`` and ``relevance`` are of the m drawn samples."""
    before = expit(seen.raw_scores)
    return ValidationReport(
        by_host=host_auc is not None and host_auc >= MIN_HOST_AUC,
        host_auc=host_auc,
        folds=len(np.unique(seen.fold)) if np.ptp(seen.fold) else 0,
        naive_bayes=compute_metrics(seen.naive_bayes, good, 0.5, weights),
        uncalibrated=compute_metrics(before, good, 0.5, weights),
        calibrated=compute_metrics(relevance, good, threshold.relevance, weights),
        bins_before=tuple(reliability_bins(before, good, weights)),
        bins_after=tuple(reliability_bins(relevance, good, weights)),
        kind=seen.kind,
        taxonomy=seen.taxonomy,
        named=seen.named,
        wish=str(threshold_target),
        granted=threshold.granted,
    )


def _reweight_to_prior(weights: FloatArray, good: BoolArray, prior: float) -> FloatArray:
    """Weights under which the good samples' share is ``prior``."""
    result = weights.copy()
    for side, share in ((good, prior), (~good, 1.0 - prior)):
        result[side] *= share * weights.sum() / weights[side].sum()
    return result


def clip_prior(share: float) -> float:
    """A share of good pages, held within what a crawl may meet."""
    return float(np.clip(share, *_PRIOR_RANGE))


def choose_min_known_share(known_share: FloatArray) -> float:
    """The share of known words below which a page is foreign, by that of the samples."""
    usual = float(np.quantile(known_share, _FOREIGN_QUANTILE))
    return float(np.clip(_FOREIGN_PART * usual, *_KNOWN_SHARE_RANGE))
