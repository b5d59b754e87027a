"""Which category a page is likeliest of: naive Bayes down the tree of categories, or flat.

Down the tree, the posterior of a category is the product of the posteriors
along the path from the root, each node judged among its siblings alone
(Chakrabarti, Dom, Agrawal, Raghavan 1998, "Scalable feature selection,
classification and signature generation for organizing large text databases
into hierarchical topic taxonomies"). Flat, all categories are siblings. What a
good node has is summed in soft focus (Chakrabarti, van den Berg, Dom 1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.bayes import class_words
from focused.learning.calibration import Floats
from focused.learning.documents import DocumentVector

if TYPE_CHECKING:
    import scipy.sparse as sp

ROOT = -1
SHAPES = ("flat", "tree")


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
        posterior = joint if len(self._families) == 1 else self._down(joint[:, None])[:, 0]
        return self.categories[int(np.argmax(posterior[: len(self.categories)]))]

    def log_posteriors(self, rows: sp.csr_matrix) -> Floats:
        """Log posterior of each category for each row, shape (n, C)."""
        joint = np.asarray(rows @ self.log_likelihood.T.astype(np.float64) + self.log_prior)
        return self._down(joint.T).T

    @cached_property
    def _families(self) -> tuple[tuple[int, NDArray[np.intp]], ...]:
        """Each parent with its children, from the root on."""
        above = np.array(self.parents)
        return tuple((int(one), np.flatnonzero(above == one)) for one in _root_first(above))

    def _down(self, joint: Floats) -> Floats:
        """Log posteriors of the categories, shape (C, n), from ``joint`` of shape (N, n)."""
        posterior = np.empty(joint.shape)
        for parent, children in self._families:
            among = joint[children]
            posterior[children] = among - np.logaddexp.reduce(among, axis=0)
            if parent != ROOT:
                posterior[children] += posterior[parent]
        return posterior[: len(self.categories)]


def _root_first(parents: NDArray[np.intp]) -> list[int]:
    """The nodes with children, each after the one above it: numbers fall along every path down."""
    inner = sorted({*parents.tolist()} - {ROOT}, reverse=True)
    return [ROOT, *inner]


def fit_taxonomy(
    categories: Sequence[str],
    good: Sequence[bool],
    sums: NDArray[np.floating[Any]],
    sizes: Floats,
    kind: str,
    shape: str,
) -> Taxonomy:
    """Fit on the categories' summed vectors, shape (C, V), and weights of samples, shape (C,).

    ``kind`` is one of :data:`focused.learning.bayes.KINDS`, ``shape`` of
    :data:`SHAPES`. Down the tree a category that has others below it is
    judged among them, as a child of itself.
    """
    parents = _tree(categories) if shape == "tree" else [ROOT] * len(categories)
    of_nodes, weight_of = _added_up(sums, sizes, parents)
    likelihood = np.empty(of_nodes.shape)
    prior = np.zeros(len(parents))
    for parent in {*parents}:
        children = [node for node, above in enumerate(parents) if above == parent]
        likelihood[children] = class_words(of_nodes[children], kind) if len(children) > 1 else 0.0
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


def _tree(categories: Sequence[str]) -> list[int]:
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
    return [_above((*path, ""), number) for path in paths] + [
        _above(path, number) for path in inner
    ]


def _above(path: tuple[str, ...], number: dict[tuple[str, ...], int]) -> int:
    return next(
        (number[path[:n]] for n in range(len(path) - 1, -1, -1) if path[:n] in number), ROOT
    )


def _added_up(
    sums: NDArray[np.floating[Any]], sizes: Floats, parents: Sequence[int]
) -> tuple[Floats, Floats]:
    """Sums and weights of all nodes; a node's are those of the categories below it."""
    extra = len(parents) - len(sums)
    nodes = np.vstack([sums, np.zeros((extra, sums.shape[1]))])
    weights = np.concatenate([sizes, np.zeros(extra)])
    for node, above in enumerate(parents):
        if above != ROOT:
            nodes[above] += nodes[node]
            weights[above] += weights[node]
    return nodes, weights
