"""Which category a page is likeliest of: naive Bayes down the tree of categories, or flat.

Down the tree, the posterior of a category is the product of the posteriors
along the path from the root, each node judged among its siblings alone
(Chakrabarti, Dom, Agrawal, Raghavan 1998, "Scalable feature selection,
classification and signature generation for organizing large text databases
into hierarchical topic taxonomies"). Flat, all categories are siblings. What a
good node has is summed in soft focus (Chakrabarti, van den Berg, Dom 1999).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import FloatArray
from focused.directory.sample_set import is_in_category
from focused.text.documents import DocumentVector

if TYPE_CHECKING:
    import scipy.sparse as sp

ROOT_NODE = -1
TAXONOMY_SHAPES = ("flat", "tree")


@dataclass(frozen=True)
class Taxonomy:
    """Naive Bayes over the nodes of a tree, N of them; the first C are the categories.

    ``categories`` and ``good`` have C members. ``parents[i]`` is the node
    above node i, or -1 below the root; it comes after its children.
    ``log_prior`` has shape (N,), ``log_likelihood`` shape (N, V).
    """

    categories: tuple[str, ...]
    good: tuple[bool, ...]
    parents: tuple[int, ...]
    log_prior: NDArray[np.float32]
    log_likelihood: NDArray[np.float32]

    def likeliest(self, vector: DocumentVector) -> str:
        """The likeliest category of all, good or not."""
        joint = self.log_likelihood[:, vector.ids] @ vector.values + self.log_prior
        # Flat, all are held against the same sum: it makes no one likelier.
        posterior = (
            joint if len(self._children_by_parent) == 1 else self._propagate(joint[:, None])[:, 0]
        )
        return self.categories[int(np.argmax(posterior[: len(self.categories)]))]

    def log_posteriors(self, rows: sp.csr_matrix) -> FloatArray:
        """Log posterior of each category for each row, shape (n, C)."""
        joint = np.asarray(rows @ self.log_likelihood.T.astype(np.float64) + self.log_prior)
        return self._propagate(joint.T).T

    @cached_property
    def _children_by_parent(self) -> tuple[tuple[int, NDArray[np.intp]], ...]:
        """Each parent with its children, from the root on."""
        above = np.array(self.parents)
        return tuple(
            (int(one), np.flatnonzero(above == one)) for one in _inner_nodes_top_down(above)
        )

    def _propagate(self, joint: FloatArray) -> FloatArray:
        """Log posteriors of the categories, shape (C, n), from ``joint`` of shape (N, n)."""
        posterior = np.empty(joint.shape)
        for parent, children in self._children_by_parent:
            among = joint[children]
            posterior[children] = among - np.logaddexp.reduce(among, axis=0)
            if parent != ROOT_NODE:
                posterior[children] += posterior[parent]
        return posterior[: len(self.categories)]


def _inner_nodes_top_down(parents: NDArray[np.intp]) -> list[int]:
    """The nodes with children, each after the one above it: numbers fall along every path down."""
    inner = sorted({*parents.tolist()} - {ROOT_NODE}, reverse=True)
    return [ROOT_NODE, *inner]


def fit_taxonomy(
    categories: Sequence[str],
    good: Sequence[bool],
    sums: NDArray[np.floating[Any]],
    sizes: FloatArray,
    kind: str,
    shape: str,
) -> Taxonomy:
    """Fit on the categories' summed vectors, shape (C, V), and weights of samples, shape (C,).

    ``kind`` is one of :data:`focused.classifier.taxonomy.NAIVE_BAYES_KINDS`, ``shape`` of
    :data:`SHAPES`. Down the tree a category that has others below it is
    judged among them, as a child of itself.
    """
    parents = _build_tree(categories) if shape == "tree" else [ROOT_NODE] * len(categories)
    of_nodes, weight_of = _sum_subtrees(sums, sizes, parents)
    likelihood = np.empty(of_nodes.shape)
    prior = np.zeros(len(parents))
    for parent in {*parents}:
        children = [node for node, above in enumerate(parents) if above == parent]
        likelihood[children] = (
            class_log_likelihoods(of_nodes[children], kind) if len(children) > 1 else 0.0
        )
        if kind == "multinomial":  # complement naive Bayes does better without
            weights = np.maximum(weight_of[children], 1e-9)
            prior[children] = np.log(weights / weights.sum())
    return Taxonomy(
        tuple(categories),
        tuple(good),
        tuple(parents),
        prior.astype(np.float32),
        likelihood.astype(np.float32),
    )


def _build_tree(categories: Sequence[str]) -> list[int]:
    """Parents of the categories and of the nodes above them that part two or more."""
    paths = [tuple(name.split("/")) for name in categories]
    kids: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in paths:
        # The mark makes a category that has others below it a leaf beside them.
        for depth in range(len(path) + 1):
            kids.setdefault(path[:depth], set()).add((*path, "")[: depth + 1])
    forks = sorted((path for path, below in kids.items() if len(below) > 1), key=len, reverse=True)
    inner = forks[:-1]  # the last is above all others: it stands for the root
    number = {path: len(paths) + place for place, path in enumerate(inner)}
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
    """Sums and weights of all nodes; a node's are those of the categories below it."""
    extra = len(parents) - len(sums)
    nodes = np.vstack([sums, np.zeros((extra, sums.shape[1]))])
    weights = np.concatenate([sizes, np.zeros(extra)])
    for node, above in enumerate(parents):
        if above != ROOT_NODE:
            nodes[above] += nodes[node]
            weights[above] += weights[node]
    return nodes, weights


NAIVE_BAYES_KINDS = ("multinomial", "complement")

# Chosen on hosts left out of nine topics of two builds of the documentation web, some 60 good
# and 540 other samples each; flat around this value (docs/explanation/classifier.md).
SMOOTHING = 0.05
"""Added to each word's count."""


def class_log_likelihoods(sums: FloatArray, kind: str) -> FloatArray:
    """What each word says for each class, shape (C, V), in nats but for a shift by class.

    ``sums``, shape (C, V), has the words' summed values by class; ``kind`` is
    one of :data:`KINDS`.
    """
    if kind == "multinomial":
        return _smoothed_log_shares(sums)
    return -_smoothed_log_shares(sums.sum(axis=0) - sums)


def log_likelihood_ratio(good: FloatArray, other: FloatArray, kind: str) -> FloatArray:
    """The words' log-likelihood ratio, shape (V,), from their sums on either side.

    Of two classes each is the other's complement: there the kinds differ in
    that complement gives both sides the same total weight.
    """
    ours, theirs = _smoothed_log_shares(np.stack([good, other]))
    if kind == "multinomial":
        return np.asarray(ours - theirs)
    mean = (np.abs(ours).sum() + np.abs(theirs).sum()) / 2
    return np.asarray((ours / np.abs(ours).sum() - theirs / np.abs(theirs).sum()) * mean)


def _smoothed_log_shares(sums: FloatArray) -> FloatArray:
    counts = np.maximum(sums, 0.0) + SMOOTHING  # differences of sums may fall short of 0
    return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))


MIN_CATEGORY_SAMPLES = 5
MAX_CATEGORIES = 48


def merge_small_categories(categories: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Each sample's class: its category, or the nearest one above that is large enough.

    A class is good or not as a whole: where a good and another sample would
    meet in one category, the other's class gets a ``(other)`` to its name.
    At most :data:`MAX_CATEGORIES` classes a side: where more are left, what
    counts as large enough is doubled.
    """
    result = [""] * len(categories)
    for side in (True, False):
        places = [i for i, is_good in enumerate(good) if is_good == side]
        merged = _merge_until_few([categories[i] for i in places])
        for place, name in zip(places, merged, strict=True):
            result[place] = name
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
    """The deepest category that all of ``categories`` are or lie below."""
    paths = [name.split("/") for name in categories]
    first, last = min(paths), max(paths)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return "/".join(first[:shared])
