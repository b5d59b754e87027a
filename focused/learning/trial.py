"""Trying a topic classifier out on samples that it has not seen, and choosing by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from focused.learning.bayes import KINDS, word_ratio
from focused.learning.calibration import Bools, Floats, expit, ranking_quality
from focused.learning.documents import Vocabulary
from focused.learning.estimators import fit_weights
from focused.learning.folds import host_folds, page_folds
from focused.learning.taxonomy import ROOT, SHAPES, Taxonomy, fit_taxonomy
from focused.learning.topic_classifier import short_text_evidence

MIN_HOST_AUC = 0.75
"""Below this on left-out hosts, the model is calibrated on left-out pages."""

Sums = NDArray[np.floating[Any]]
"""Single precision does: they are of numbers up to some ten."""

_TAXONOMIES = tuple((kind, shape) for shape in SHAPES for kind in KINDS)
# Choices by less are chance: of three topics where complement naive Bayes was ahead by 0.01 to
# 0.05 on left-out hosts, it was behind on the pages of the whole web on two.
_KIND_MARGIN = 0.05
_NAMING_MARGIN = 0.01


@dataclass(frozen=True)
class Material:
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
    category_good: Bools
    weights: Floats
    hosts: Sequence[str]
    titles: Sequence[str]
    vocabulary: Vocabulary

    @property
    def good(self) -> Bools:
        """The side of each of the n samples."""
        return np.asarray(self.category_good[self.category])

    @property
    def drawn_good(self) -> Bools:
        """The side of each of the m samples drawn."""
        return np.asarray(self.good[self.drawn])

    @property
    def drawn_weights(self) -> Floats:
        """Weights of the m samples drawn; each side keeps its weight in all n."""
        good, weights = self.good, self.weights[self.drawn].copy()
        for side in (True, False):
            mine = self.drawn_good == side
            weights[mine] *= self.weights[good == side].sum() / weights[mine].sum()
        return weights

    def sums(self, folds: NDArray[np.intp]) -> tuple[Sums, Floats]:
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
class OutOfFold:
    """What models said of samples they had not seen, arrays of shape (m,).

    ``title_evidence`` is of the sample's title alone, as
    :func:`short_text_evidence` gives it; ``naive_bayes`` the plain soft-focus
    posterior, for comparison; ``fold`` the part each sample was left out with.
    ``kind`` is of :data:`focused.learning.bayes.KINDS`, what weighed the words;
    ``taxonomy`` the kind and shape that named most samples' categories rightly,
    ``named`` the share of samples by kind and shape.
    """

    evidence: Floats
    title_evidence: Floats
    naive_bayes: Floats
    fold: NDArray[np.intp]
    kind: str
    taxonomy: tuple[str, str]
    named: tuple[tuple[str, str, float], ...]


def try_out(material: Material, estimator: str, seed: int) -> tuple[OutOfFold, float | None]:
    """The trial to calibrate on, and the AUC on left-out hosts where that was tried.

    Left-out hosts are the honest trial. But a topic that lives on few hosts,
    each with a vocabulary of its own, leaves too little to learn from when one
    is taken away; a calibration on that would call every page doubtful.
    """
    good = material.good
    folds, auc = host_folds(good, material.hosts, seed), None
    if folds is not None and _all_sides(folds[material.drawn], material.drawn_good):
        seen = cross_validate(material, folds, estimator)
        auc = ranking_quality(seen.evidence, material.drawn_good, material.drawn_weights)
        if auc >= MIN_HOST_AUC:
            return seen, auc
    return cross_validate(material, page_folds(good, seed), estimator), auc


def _all_sides(folds: NDArray[np.intp], good: Bools) -> bool:
    """Whether both sides are left when any one fold is taken away."""
    rests = [good[folds != fold] for fold in np.unique(folds)]
    return all(0 < rest.sum() < len(rest) for rest in rests)


def cross_validate(material: Material, folds: NDArray[np.intp], estimator: str) -> OutOfFold:
    """Fit on all folds but one, speak about that one, for each fold; choose by what comes out.

    ``folds``, shape (n,), counts from 0. ``estimator`` is one of
    :data:`focused.topic.ESTIMATORS`; the kind of naive Bayes that weighs the
    words is multinomial unless the other ranks clearly better.
    """
    sums, sizes = material.sums(folds)
    fold = folds[material.drawn]
    said = [_said(material, sums, fold, estimator, KINDS[0])]
    if estimator == "naive-bayes":
        said.append(_said(material, sums, fold, estimator, KINDS[1]))
    worth = [_average_precision(one[0], material) for one in said]
    best = 1 if worth[-1] > worth[0] + _KIND_MARGIN else 0
    named, plain = _taxonomies(material, sums, sizes, fold)
    kind, shape, share = named[0]
    for other in named[1:]:
        if other[2] > share + _NAMING_MARGIN:
            kind, shape, share = other
    return OutOfFold(*said[best], plain, fold, KINDS[best], (kind, shape), named)


def _said(
    material: Material, sums: Sums, fold: NDArray[np.intp], estimator: str, kind: str
) -> tuple[Floats, Floats]:
    """Evidence of the left-out samples and of their titles, shape (m,) each."""
    rows, good, weights = material.rows, material.drawn_good, material.drawn_weights
    evidence, of_titles = np.zeros(len(good)), np.zeros(len(good))
    total = sums.sum(axis=0)
    for number in np.unique(fold):
        train, test = fold != number, np.flatnonzero(fold == number)
        ratio = good_ratio(total - sums[number], material.category_good, kind)
        words, bias = fit_weights(estimator, rows[train], good[train], weights[train], ratio)
        evidence[test] = rows[test] @ words + bias
        shown = [material.titles[i] for i in material.drawn[test]]
        of_titles[test] = short_text_evidence(material.vocabulary, words, shown)
    return evidence, of_titles


def good_ratio(sums: Sums, category_good: Bools, kind: str) -> Floats:
    """Naive Bayes' log-likelihood ratio of the good categories to the rest, shape (V,)."""
    ours, others = (
        sums[side].sum(axis=0, dtype=np.float64) for side in (category_good, ~category_good)
    )
    return word_ratio(ours, others, kind)


def _average_precision(evidence: Floats, material: Material) -> float:
    return float(
        average_precision_score(material.drawn_good, evidence, sample_weight=material.drawn_weights)
    )


def _taxonomies(
    material: Material, sums: Sums, sizes: Floats, fold: NDArray[np.intp]
) -> tuple[tuple[tuple[str, str, float], ...], Floats]:
    """The share of left-out samples named rightly by kind and shape, and plain soft focus."""
    truth, weights = material.category[material.drawn], material.drawn_weights
    total, all_sizes = sums.sum(axis=0), sizes.sum(axis=0)
    right = dict.fromkeys(_TAXONOMIES, 0.0)
    plain = np.zeros(len(truth))
    for number in np.unique(fold):
        test = np.flatnonzero(fold == number)
        for choice in _TAXONOMIES:
            fitted = taxonomy_of(material, total - sums[number], all_sizes - sizes[number], choice)
            if choice[1] != "flat" and all(above == ROOT for above in fitted.parents):
                continue  # there is no tree to go down
            posteriors = fitted.log_posteriors(material.rows[test])
            right[choice] += weights[test][posteriors.argmax(axis=1) == truth[test]].sum()
            if choice == _TAXONOMIES[0]:
                plain[test] = _soft_focus(posteriors, material.category_good)
    return tuple((*choice, float(n / weights.sum())) for choice, n in right.items()), plain


def taxonomy_of(material: Material, sums: Sums, sizes: Floats, choice: tuple[str, str]) -> Taxonomy:
    """The taxonomy of a kind and shape, from sums of shape (C, V) and weights of shape (C,)."""
    good = material.category_good.tolist()
    return fit_taxonomy(material.categories, good, sums, sizes, *choice)


def _soft_focus(log_posteriors: Floats, good: Bools) -> Floats:
    """The posterior of the good categories, summed, shape (n,)."""
    ours, others = (np.logaddexp.reduce(log_posteriors[:, side], axis=1) for side in (good, ~good))
    return expit(ours - others)
