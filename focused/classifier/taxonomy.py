"""Fit naive Bayes over the taxonomy, down the tree of categories or flat.

Down the tree, the posterior of a category is the product of the posteriors along its path
from the root (Chakrabarti, Dom, Agrawal, Raghavan 1998, "Scalable feature selection,
classification and signature generation for organizing large text databases into
hierarchical topic taxonomies"). Flat, all categories are siblings. Summing the posteriors
of the good categories is the soft focus of Chakrabarti, van den Berg, Dom 1999.

Multinomial naive Bayes estimates a class's words from its own samples; complement naive
Bayes from all other samples (Rennie, Shih, Teevan, Karger 2003, "Tackling the poor
assumptions of naive Bayes text classifiers"). Validation selects the variant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import FloatArray
from focused.classifier.topic_classifier import ROOT_NODE, Taxonomy
from focused.directory import is_in_category

TAXONOMY_SHAPES = ("flat", "tree")


def fit_taxonomy(
    categories: Sequence[str],
    good: Sequence[bool],
    sums: NDArray[np.floating[Any]],
    sizes: FloatArray,
    kind: str,
    shape: str,
) -> Taxonomy:
    """Fit on the categories' summed vectors, shape (C, V), and sample weights, shape (C,).

    ``kind`` is one of :data:`NAIVE_BAYES_KINDS`, ``shape`` of :data:`TAXONOMY_SHAPES`. In a
    tree, a category with subcategories is also a child of itself.
    """
    parents = _build_tree(categories) if shape == "tree" else [ROOT_NODE] * len(categories)
    node_sums, node_weights = _sum_subtrees(sums, sizes, parents)
    likelihood = np.empty(node_sums.shape)
    prior = np.zeros(len(parents))
    for parent in {*parents}:
        children = [node for node, above in enumerate(parents) if above == parent]
        likelihood[children] = (
            class_log_likelihoods(node_sums[children], kind) if len(children) > 1 else 0.0
        )
        if kind == "multinomial":  # complement naive Bayes is better without a prior
            weights = np.maximum(node_weights[children], 1e-9)
            prior[children] = np.log(weights / weights.sum())
    return Taxonomy(
        tuple(categories),
        tuple(good),
        tuple(parents),
        prior.astype(np.float32),
        likelihood.astype(np.float32),
    )


def _build_tree(categories: Sequence[str]) -> list[int]:
    """Return parents of the categories and of the inner nodes that split two or more."""
    paths = [tuple(name.split("/")) for name in categories]
    kids: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in paths:
        # The empty part makes a category with subcategories a leaf beside them.
        for depth in range(len(path) + 1):
            kids.setdefault(path[:depth], set()).add((*path, "")[: depth + 1])
    forks = sorted((path for path, below in kids.items() if len(below) > 1), key=len, reverse=True)
    inner = forks[:-1]  # the last contains all others: it is the root
    number = {path: len(paths) + index for index, path in enumerate(inner)}
    return [_nearest_ancestor((*path, ""), number) for path in paths] + [
        _nearest_ancestor(path, number) for path in inner
    ]


def _nearest_ancestor(path: tuple[str, ...], number: dict[tuple[str, ...], int]) -> int:
    return next(
        (number[path[:n]] for n in range(len(path) - 1, -1, -1) if path[:n] in number), ROOT_NODE
    )


def _sum_subtrees(
    sums: NDArray[np.floating[Any]], sizes: FloatArray, parents: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return sums and weights of all nodes; a node's are those of the categories below it."""
    extra = len(parents) - len(sums)
    nodes = np.vstack([sums, np.zeros((extra, sums.shape[1]))])
    weights = np.concatenate([sizes, np.zeros(extra)])
    for node, above in enumerate(parents):
        if above != ROOT_NODE:
            nodes[above] += nodes[node]
            weights[above] += weights[node]
    return nodes, weights


NAIVE_BAYES_KINDS = ("multinomial", "complement")

# Chosen by cross-validation over hosts on nine topics; see docs/explanation/classifier.md.
SMOOTHING = 0.05
"""Added to each word's count."""


def class_log_likelihoods(sums: FloatArray, kind: str) -> FloatArray:
    """Return each word's log-likelihood per class, shape (C, V), up to a constant per class.

    ``sums``, shape (C, V), are the words' summed values per class; ``kind`` is one of
    :data:`NAIVE_BAYES_KINDS`.
    """
    if kind == "multinomial":
        return _smoothed_log_shares(sums)
    return -_smoothed_log_shares(sums.sum(axis=0) - sums)


def log_likelihood_ratio(good: FloatArray, other: FloatArray, kind: str) -> FloatArray:
    """Return the words' log-likelihood ratio, shape (V,), from their sums in either class.

    With two classes each is the other's complement: the complement variant differs only by
    giving both classes the same total weight.
    """
    ours, theirs = _smoothed_log_shares(np.stack([good, other]))
    if kind == "multinomial":
        return np.asarray(ours - theirs)
    mean = (np.abs(ours).sum() + np.abs(theirs).sum()) / 2
    return np.asarray((ours / np.abs(ours).sum() - theirs / np.abs(theirs).sum()) * mean)


def _smoothed_log_shares(sums: FloatArray) -> FloatArray:
    counts = np.maximum(sums, 0.0) + SMOOTHING  # differences may be slightly negative
    return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))


MIN_CATEGORY_SAMPLES = 5
MAX_CATEGORIES = 48


def merge_small_categories(categories: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Return each sample's class: its category, or the nearest large enough ancestor.

    Good and other samples never share a class: if they would, the others' class is renamed
    with ``(other)``. At most :data:`MAX_CATEGORIES` classes for good samples, and for others;
    the minimum size doubles until they fit.
    """
    result = [""] * len(categories)
    for side in (True, False):
        indices = [i for i, is_good in enumerate(good) if is_good == side]
        merged = _merge_until_few([categories[i] for i in indices])
        for index, name in zip(indices, merged, strict=True):
            result[index] = name
    taken = {name for name, is_good in zip(result, good, strict=True) if is_good}
    return [
        name if is_good or name not in taken else f"{name} (other)"
        for name, is_good in zip(result, good, strict=True)
    ]


def _merge_until_few(categories: list[str]) -> list[str]:
    minimum = MIN_CATEGORY_SAMPLES
    while True:
        merged = _merge_once(categories, minimum)
        if len(set(merged)) <= MAX_CATEGORIES:
            return merged
        if minimum > len(categories):
            return [_common_ancestor(categories) or "(all)"] * len(categories)
        minimum *= 2


def _merge_once(categories: list[str], minimum: int) -> list[str]:
    if not categories:
        return []
    counts = Counter(categories)
    moved: dict[str, str] = {}
    top = _common_ancestor(categories)
    for depth in range(max(name.count("/") for name in categories), 0, -1):
        for name in [name for name in counts if name.count("/") == depth]:
            parent = name.rpartition("/")[0]
            if counts[name] < minimum and (is_in_category(parent, top) or not top):
                moved[name] = parent
                counts[parent] += counts.pop(name)
    return [_merge_target(name, moved) for name in categories]


def _merge_target(name: str, moved: dict[str, str]) -> str:
    while name in moved:
        name = moved[name]
    return name


def _common_ancestor(categories: Sequence[str]) -> str:
    """Return the deepest category that contains all ``categories``."""
    paths = [name.split("/") for name in categories]
    first, last = min(paths), max(paths)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return "/".join(first[:shared])
