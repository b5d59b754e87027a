"""Fitting the topic classifier to samples, and trying it on hosts it has not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB

from focused.directory.sides import is_below
from focused.learning.calibration import Bools, Floats, expit
from focused.learning.documents import Vocabulary
from focused.learning.estimators import SMOOTHING, fit_weights
from focused.learning.topic_classifier import Taxonomy, short_text_evidence

FOLDS = 5
MIN_CATEGORY_SAMPLES = 5
MAX_CATEGORIES = 48


def fit_taxonomy(rows: sp.csr_matrix, classes: Sequence[str], good: Bools) -> Taxonomy:
    """Naive Bayes over the classes of the rows (see :func:`merged_categories`)."""
    bayes = MultinomialNB(alpha=SMOOTHING).fit(rows, np.array(classes))
    is_good = dict(zip(classes, good.tolist(), strict=True))
    names = tuple(str(name) for name in bayes.classes_)
    return Taxonomy(
        categories=names,
        good=tuple(is_good[name] for name in names),
        log_prior=bayes.class_log_prior_.astype(np.float32),
        log_likelihood=bayes.feature_log_prob_.astype(np.float32),
    )


def soft_focus(rows: sp.csr_matrix, taxonomy: Taxonomy) -> Floats:
    """Plain naive Bayes' posterior of the good categories, summed, shape (n,)."""
    joint = np.asarray(rows @ taxonomy.log_likelihood.T.astype(np.float64) + taxonomy.log_prior)
    good = np.array(taxonomy.good)
    ours = np.logaddexp.reduce(joint[:, good], axis=1)
    return expit(ours - np.logaddexp.reduce(joint[:, ~good], axis=1))


def merged_categories(categories: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Each sample's class: its category, or the nearest one above that is large enough.

    A class is good or not as a whole: where a good and another sample would
    meet in one category, the other's class gets a ``(other)`` to its name.
    At most :data:`MAX_CATEGORIES` classes a side: where more are left, what
    counts as large enough is doubled.
    """
    result = [""] * len(categories)
    for side in (True, False):
        places = [i for i, is_good in enumerate(good) if is_good == side]
        merged = _merge([categories[i] for i in places])
        for place, name in zip(places, merged, strict=True):
            result[place] = name
    taken = {name for name, is_good in zip(result, good, strict=True) if is_good}
    return [
        name if is_good or name not in taken else f"{name} (other)"
        for name, is_good in zip(result, good, strict=True)
    ]


def _merge(categories: list[str]) -> list[str]:
    minimum = MIN_CATEGORY_SAMPLES
    while True:
        merged = _merge_once(categories, minimum)
        if len(set(merged)) <= MAX_CATEGORIES:
            return merged
        if minimum > len(categories):
            return [_root(categories) or "(all)"] * len(categories)
        minimum *= 2


def _merge_once(categories: list[str], minimum: int) -> list[str]:
    if not categories:
        return []
    counts = Counter(categories)
    moved: dict[str, str] = {}
    top = _root(categories)
    for depth in range(max(name.count("/") for name in categories), 0, -1):
        for name in [name for name in counts if name.count("/") == depth]:
            parent = name.rpartition("/")[0]
            if counts[name] < minimum and (is_below(parent, top) or not top):
                moved[name] = parent
                counts[parent] += counts.pop(name)
    return [_follow(name, moved) for name in categories]


def _follow(name: str, moved: dict[str, str]) -> str:
    while name in moved:
        name = moved[name]
    return name


def _root(categories: Sequence[str]) -> str:
    """The deepest category that all of ``categories`` are or lie below."""
    paths = [name.split("/") for name in categories]
    first, last = min(paths), max(paths)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return "/".join(first[:shared])


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """What models said of samples they had not seen, arrays of shape (n,).

    ``title_evidence`` is of the sample's title alone, as
    :func:`short_text_evidence` gives it; ``naive_bayes`` the plain soft-focus
    posterior, for comparison; ``fold`` the part each sample was left out with.
    """

    evidence: Floats
    title_evidence: Floats
    naive_bayes: Floats
    fold: NDArray[np.intp]


@dataclass(frozen=True)
class LabelledRows:
    """Samples as the fits want them: ``rows`` of shape (n, V), the rest n long.

    ``classes`` are those of :func:`merged_categories`.
    """

    rows: sp.csr_matrix
    good: Bools
    classes: Sequence[str]
    hosts: Sequence[str]
    titles: Sequence[str]
    vocabulary: Vocabulary


def cross_validate(samples: LabelledRows, folds: NDArray[np.intp], estimator: str) -> OutOfFold:
    """Fit on all folds but one, speak about that one, for each fold.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`.
    """
    rows, good, classes = samples.rows, samples.good, np.array(samples.classes)
    evidence, title_evidence, plain = (np.zeros(len(good)) for _ in range(3))
    for fold in np.unique(folds):
        train, test = folds != fold, np.flatnonzero(folds == fold)
        weights, bias = fit_weights(estimator, rows[train], good[train])
        evidence[test] = rows[test] @ weights + bias
        shown = [samples.titles[i] for i in test.tolist()]
        title_evidence[test] = short_text_evidence(samples.vocabulary, weights, shown)
        taxonomy = fit_taxonomy(rows[train], classes[train].tolist(), good[train])
        plain[test] = soft_focus(rows[test], taxonomy)
    return OutOfFold(evidence, title_evidence, plain, folds)


def host_folds(good: Bools, hosts: Sequence[str], seed: int) -> NDArray[np.intp] | None:
    """Each sample's fold, shape (n,), with hosts kept whole.

    None where that cannot be: good or other samples come from one host, or a
    fold's training part would lack a side.
    """
    names = np.array(hosts)
    sides = [len(set(names[good])), len(set(names[~good]))]
    if min(sides) < 2:
        return None
    splitter = StratifiedGroupKFold(min(FOLDS, *sides), shuffle=True, random_state=seed)
    folds = _dealt(splitter.split(names, good, names), len(names))
    for fold in np.unique(folds):
        if not 0 < good[folds != fold].sum() < (folds != fold).sum():
            return None
    return folds


def page_folds(good: Bools, seed: int) -> NDArray[np.intp]:
    """Each sample's fold, shape (n,), pages dealt out one by one."""
    count = int(min(FOLDS, good.sum(), (~good).sum()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    return _dealt(splitter.split(good, good), len(good))


def _dealt(splits: Iterable[tuple[object, NDArray[np.intp]]], count: int) -> NDArray[np.intp]:
    folds = np.zeros(count, dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        folds[test] = number
    return folds
