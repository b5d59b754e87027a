"""Cross-validation and calibration of a topic classifier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from focused.classifier.calibration import BoolArray, FloatArray, ThresholdTarget, expit, logit
from focused.classifier.calibration_fitting import (
    ChosenThreshold,
    choose_threshold,
    compute_metrics,
    cross_fit_probabilities,
    fit_calibration_curve,
    fit_platt_scaling,
    reliability_bins,
    roc_auc,
)
from focused.classifier.estimators import (
    ScoreCombination,
    TrainingOptions,
    fit_combination,
    fit_word_weights,
    score_left_out,
)
from focused.classifier.taxonomy import (
    NAIVE_BAYES_KINDS,
    TAXONOMY_SHAPES,
    fit_taxonomy,
    log_likelihood_ratio,
)
from focused.classifier.topic_classifier import (
    ROOT_NODE,
    Calibration,
    Taxonomy,
    score_short_texts,
)
from focused.classifier.training_report import ValidationReport
from focused.errors import TrainingError
from focused.text.documents import Vocabulary
from focused.topic import ESTIMATORS

MIN_HOST_AUC = 0.75
"""Below this AUC on left-out hosts, calibration uses left-out pages instead."""

ClassSums = NDArray[np.floating[Any]]
"""Single precision suffices: values are small."""

_TAXONOMY_CHOICES = tuple((kind, shape) for shape in TAXONOMY_SHAPES for kind in NAIVE_BAYES_KINDS)
# Smaller differences are noise: of three topics where complement naive Bayes led by 0.01 to 0.05
# on left-out hosts, it was worse on the whole web on two.
_KIND_MARGIN = 0.05
_TAXONOMY_MARGIN = 0.01


@dataclass(frozen=True)
class TrainingData:
    """n samples, of which m are ``drawn`` for regression and validation.

    Naive Bayes uses ``all_rows``, shape (n, V); ``rows``, shape (m, V), are those of the drawn
    samples. ``category`` is each sample's index in the C
    ``categories``; ``category_good`` their classes. ``weights``, ``hosts``, ``titles`` and
    ``leads`` are of all n samples. ``lead_vectors``, shape (m, d), are what the first words of
    the drawn samples mean; None without an embedding.
    """

    all_rows: sp.csr_matrix
    rows: sp.csr_matrix
    drawn: NDArray[np.intp]
    category: NDArray[np.intp]
    categories: tuple[str, ...]
    category_good: BoolArray
    weights: FloatArray
    hosts: Sequence[str]
    titles: Sequence[str]
    leads: Sequence[str]
    vocabulary: Vocabulary
    lead_vectors: NDArray[np.float32] | None = None

    @property
    def good(self) -> BoolArray:
        """The class of each of the n samples."""
        return np.asarray(self.category_good[self.category])

    @property
    def drawn_good(self) -> BoolArray:
        """The class of each of the m drawn samples."""
        return np.asarray(self.good[self.drawn])

    @property
    def drawn_weights(self) -> FloatArray:
        """Weights of the m drawn samples; each class keeps its total weight."""
        good, weights = self.good, self.weights[self.drawn].copy()
        for of_class in (True, False):
            mine = self.drawn_good == of_class
            weights[mine] *= self.weights[good == of_class].sum() / weights[mine].sum()
        return weights

    def sums(self, folds: NDArray[np.intp]) -> tuple[ClassSums, FloatArray]:
        """Return weighted sums per fold and category, shape (F, C, V), and weights, (F, C)."""
        groups, width = int(folds.max()) + 1, len(self.categories)
        index = folds * width + self.category
        places = (index, np.arange(len(index)))
        assignment = sp.csr_matrix(
            (self.weights, places), shape=(groups * width, len(self.weights))
        )
        total = (assignment @ self.all_rows).toarray().astype(np.float32)
        sizes = np.bincount(index, self.weights, minlength=len(total))
        return total.reshape(groups, width, -1), np.asarray(
            sizes.reshape(groups, width), dtype=np.float64
        )


@dataclass(frozen=True, slots=True)
class OutOfFoldPredictions:
    """Predictions for samples left out of training, arrays of shape (m,).

    ``title_scores`` are scores of the titles alone; ``naive_bayes`` is the soft-focus posterior
    of plain naive Bayes, for comparison; ``fold`` is each sample's fold. ``kind`` is the naive
    Bayes variant of the word weights; ``taxonomy`` the variant and shape that named most
    categories correctly, ``named`` the accuracy of all. ``combination`` is that of the parts of
    the raw scores, None without an embedding; ``parts`` has each part's name, share of the score
    and average precision on its own.
    """

    raw_scores: FloatArray
    title_scores: FloatArray
    naive_bayes: FloatArray
    fold: NDArray[np.intp]
    kind: str
    taxonomy: tuple[str, str]
    named: tuple[tuple[str, str, float], ...]
    combination: ScoreCombination | None = None
    parts: tuple[tuple[str, float, float], ...] = ()


def validate_estimator(
    data: TrainingData, estimator: str, seed: int
) -> tuple[OutOfFoldPredictions, float | None]:
    """Return out-of-fold predictions for calibration, and the AUC on left-out hosts, if tried.

    Leaving out hosts is the honest validation. But if a topic has few hosts with different
    vocabularies, too little remains to train on: then single pages are left out.
    """
    good = data.good
    folds, auc = make_host_folds(good, data.hosts, seed), None
    if folds is not None and _each_fold_leaves_both_classes(folds[data.drawn], data.drawn_good):
        predictions = cross_validate(data, folds, estimator)
        auc = roc_auc(predictions.raw_scores, data.drawn_good, data.drawn_weights)
        if auc >= MIN_HOST_AUC:
            return predictions, auc
    return cross_validate(data, make_page_folds(good, seed), estimator), auc


def _each_fold_leaves_both_classes(folds: NDArray[np.intp], good: BoolArray) -> bool:
    """Whether both classes remain without any one fold."""
    rests = [good[folds != fold] for fold in np.unique(folds)]
    return all(0 < rest.sum() < len(rest) for rest in rests)


def cross_validate(
    data: TrainingData, folds: NDArray[np.intp], estimator: str
) -> OutOfFoldPredictions:
    """Predict each fold with a model of the other folds, and choose the naive Bayes variant.

    ``folds``, shape (n,), counts from 0. ``estimator`` is one of
    :data:`focused.topic.ESTIMATORS`. The variant is multinomial unless complement ranks clearly
    better.
    """
    sums, sizes = data.sums(folds)
    fold = folds[data.drawn]
    candidates = [_predict_left_out(data, sums, fold, estimator, NAIVE_BAYES_KINDS[0])]
    if estimator == "naive-bayes":
        candidates.append(_predict_left_out(data, sums, fold, estimator, NAIVE_BAYES_KINDS[1]))
    precisions = [_average_precision(one[0], data) for one in candidates]
    best = 1 if precisions[-1] > precisions[0] + _KIND_MARGIN else 0
    named, plain = _compare_taxonomies(data, sums, sizes, fold)
    kind, shape, share = named[0]
    for other in named[1:]:
        if other[2] > share + _TAXONOMY_MARGIN:
            kind, shape, share = other
    predictions = OutOfFoldPredictions(
        *candidates[best], plain, fold, NAIVE_BAYES_KINDS[best], (kind, shape), named
    )
    if data.lead_vectors is None:
        return predictions
    return _combine_parts(data, sums, predictions, estimator)


MEANING_PART = "meaning of the first words"
"""Name of the part that is no estimator of word weights."""


def word_parts(estimator: str) -> tuple[str, ...]:
    """Return the estimators of word weights that are combined, ``estimator`` first.

    Logistic regression makes up for the independence that naive Bayes assumes of words.
    """
    return tuple(dict.fromkeys((estimator, ESTIMATORS[1])))


def _combine_parts(
    data: TrainingData, sums: ClassSums, base: OutOfFoldPredictions, estimator: str
) -> OutOfFoldPredictions:
    """Return predictions by all parts.

    All folds have one combination: its few coefficients add hardly any optimism, and those of
    single folds would differ in scale.
    """
    assert data.lead_vectors is not None, "there is an embedding"
    vectors, fold = data.lead_vectors, base.fold
    good, weights = data.drawn_good, data.drawn_weights
    raw_scores, title_scores = [base.raw_scores], [base.title_scores]
    for part in word_parts(estimator)[1:]:
        raw, titles = _predict_left_out(data, sums, fold, part, base.kind)
        raw_scores.append(raw)
        title_scores.append(titles)
    by_meaning = score_left_out(vectors, vectors, good, weights, fold)
    scores = np.column_stack((*raw_scores, by_meaning))
    combination = fit_combination(scores, good, weights)
    names = (*word_parts(estimator), MEANING_PART)
    precisions = [_average_precision(column, data) for column in scores.T]
    return replace(
        base,
        raw_scores=combination.apply(scores),
        title_scores=np.transpose(title_scores) @ combination.coefficients[:-1],
        combination=combination,
        parts=tuple(zip(names, combination.shares, precisions, strict=True)),
    )


def _predict_left_out(
    data: TrainingData, sums: ClassSums, fold: NDArray[np.intp], estimator: str, kind: str
) -> tuple[FloatArray, FloatArray]:
    """Return raw scores of the left-out samples and of their titles, shape (m,) each."""
    rows, good, weights = data.rows, data.drawn_good, data.drawn_weights
    raw_scores, title_scores = np.zeros(len(good)), np.zeros(len(good))
    total = sums.sum(axis=0)
    for number in np.unique(fold):
        train, test = fold != number, np.flatnonzero(fold == number)
        ratio = good_log_likelihood_ratio(total - sums[number], data.category_good, kind)
        words, bias = fit_word_weights(estimator, rows[train], good[train], weights[train], ratio)
        raw_scores[test] = rows[test] @ words + bias
        titles = [data.titles[i] for i in data.drawn[test]]
        title_scores[test] = score_short_texts(data.vocabulary, words, titles)
    return raw_scores, title_scores


def good_log_likelihood_ratio(sums: ClassSums, category_good: BoolArray, kind: str) -> FloatArray:
    """Return the log-likelihood ratio of good categories against the rest, shape (V,)."""
    ours, others = (
        sums[of_class].sum(axis=0, dtype=np.float64) for of_class in (category_good, ~category_good)
    )
    return log_likelihood_ratio(ours, others, kind)


def _average_precision(raw_scores: FloatArray, data: TrainingData) -> float:
    return float(
        average_precision_score(data.drawn_good, raw_scores, sample_weight=data.drawn_weights)
    )


def _compare_taxonomies(
    data: TrainingData, sums: ClassSums, sizes: FloatArray, fold: NDArray[np.intp]
) -> tuple[tuple[tuple[str, str, float], ...], FloatArray]:
    """Return the accuracy of each taxonomy variant, and the plain soft-focus posterior."""
    truth, weights = data.category[data.drawn], data.drawn_weights
    total, all_sizes = sums.sum(axis=0), sizes.sum(axis=0)
    right = dict.fromkeys(_TAXONOMY_CHOICES, 0.0)
    plain = np.zeros(len(truth))
    for number in np.unique(fold):
        test = np.flatnonzero(fold == number)
        for choice in _TAXONOMY_CHOICES:
            fitted = fit_training_taxonomy(
                data, total - sums[number], all_sizes - sizes[number], choice
            )
            if choice[1] != "flat" and all(above == ROOT_NODE for above in fitted.parents):
                continue  # the tree is flat
            posteriors = fitted.log_posteriors(data.rows[test])
            right[choice] += weights[test][posteriors.argmax(axis=1) == truth[test]].sum()
            if choice == _TAXONOMY_CHOICES[0]:
                plain[test] = _soft_focus_posterior(posteriors, data.category_good)
    return tuple((*choice, float(n / weights.sum())) for choice, n in right.items()), plain


def fit_training_taxonomy(
    data: TrainingData, sums: ClassSums, sizes: FloatArray, choice: tuple[str, str]
) -> Taxonomy:
    """Fit a taxonomy to class sums, shape (C, V), and weights, shape (C,)."""
    good = data.category_good.tolist()
    return fit_taxonomy(data.categories, good, sums, sizes, *choice)


def _soft_focus_posterior(log_posteriors: FloatArray, good: BoolArray) -> FloatArray:
    """Return the summed posterior of the good categories, shape (n,)."""
    ours, others = (
        np.logaddexp.reduce(log_posteriors[:, of_class], axis=1) for of_class in (good, ~good)
    )
    return expit(ours - others)


N_FOLDS = 5
# Stratifying by host is slow; with this many hosts random folds are balanced.
_MAX_STRATIFIED_HOSTS = 2_000


def make_host_folds(good: BoolArray, hosts: Sequence[str], seed: int) -> NDArray[np.intp] | None:
    """Return each sample's fold, shape (n,), keeping hosts whole.

    None if a class has a single host, or a fold's complement would lack a class.
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
    """Return each sample's fold, shape (n,), stratified by class."""
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
    data: TrainingData, known_share: FloatArray, options: TrainingOptions
) -> tuple[Calibration, OutOfFoldPredictions, ValidationReport]:
    """Validate the estimator and calibrate on its out-of-fold predictions.

    ``known_share`` is of each sample outside the background. Raises :class:`TrainingError` when
    held-out samples are not separated.
    """
    good, weights = data.drawn_good, data.drawn_weights
    predictions, host_auc = validate_estimator(data, options.estimator, options.seed)
    curve = fit_calibration_curve(predictions.raw_scores, good, weights)
    if curve.slope <= 0:
        raise TrainingError(
            "training.good: cross-validation finds no difference between the good samples and "
            "the rest; give more samples of more hosts, or check that the categories are right"
        )
    share = float(np.average(good, weights=weights))
    prior = clip_prior(share) if options.prior is None else options.prior
    shift = logit(prior) - logit(share)
    relevance = cross_fit_probabilities(predictions.raw_scores, good, predictions.fold, weights)
    # A precision depends on the prior; the best F1 is that of the samples.
    at_prior = (
        weights if options.target == ThresholdTarget() else _reweight_to_prior(weights, good, prior)
    )
    threshold = choose_threshold(relevance, good, at_prior, options.target)
    calibration = Calibration(
        curve=curve,
        shift=shift,
        verdict_slope=max(fit_platt_scaling(predictions.title_scores, good, weights)[0], 0.0),
        prior=prior,
        threshold=float(expit(np.array(logit(threshold.relevance) + shift))),
        min_known_share=choose_min_known_share(known_share),
    )
    return (
        calibration,
        predictions,
        make_validation_report(
            predictions, host_auc, good, at_prior, relevance, threshold, options.target
        ),
    )


def make_validation_report(
    predictions: OutOfFoldPredictions,
    host_auc: float | None,
    good: BoolArray,
    weights: FloatArray,
    relevance: FloatArray,
    threshold: ChosenThreshold,
    target: ThresholdTarget,
) -> ValidationReport:
    """Compute the metrics of a validation; ``weights`` and ``relevance`` are of drawn samples."""
    before = expit(predictions.raw_scores)
    return ValidationReport(
        by_host=host_auc is not None and host_auc >= MIN_HOST_AUC,
        host_auc=host_auc,
        folds=len(np.unique(predictions.fold)) if np.ptp(predictions.fold) else 0,
        naive_bayes=compute_metrics(predictions.naive_bayes, good, 0.5, weights),
        uncalibrated=compute_metrics(before, good, 0.5, weights),
        calibrated=compute_metrics(relevance, good, threshold.relevance, weights),
        bins_before=tuple(reliability_bins(before, good, weights)),
        bins_after=tuple(reliability_bins(relevance, good, weights)),
        kind=predictions.kind,
        taxonomy=predictions.taxonomy,
        named=predictions.named,
        parts=predictions.parts,
        wish=str(target),
        granted=threshold.granted,
    )


def _reweight_to_prior(weights: FloatArray, good: BoolArray, prior: float) -> FloatArray:
    """Return weights under which the share of good samples is ``prior``."""
    result = weights.copy()
    for of_class, share in ((good, prior), (~good, 1.0 - prior)):
        result[of_class] *= share * weights.sum() / weights[of_class].sum()
    return result


def clip_prior(share: float) -> float:
    """Clip a share of good pages to the range that crawls meet."""
    return float(np.clip(share, *_PRIOR_RANGE))


def choose_min_known_share(known_share: FloatArray) -> float:
    """Return the share of known words below which a page is in another language."""
    usual = float(np.quantile(known_share, _FOREIGN_QUANTILE))
    return float(np.clip(_FOREIGN_PART * usual, *_KNOWN_SHARE_RANGE))
