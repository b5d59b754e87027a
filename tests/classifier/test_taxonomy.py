"""Naive Bayes over categories, flat and down the tree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.taxonomy import NAIVE_BAYES_KINDS, TAXONOMY_SHAPES, fit_taxonomy
from focused.classifier.topic_classifier import ROOT_NODE
from focused.text.documents import DocumentVector

NAMES = ("Top/Arts/Film", "Top/Arts/Music", "Top/Food", "Top/Food/Cheese")


def fitted(names=NAMES, kind="multinomial", shape="tree", words=6, seed=0):
    sums = np.random.default_rng(seed).gamma(0.5, 4.0, (len(names), words))
    good = [name.startswith("Top/Food") for name in names]
    return fit_taxonomy(names, good, sums, np.arange(1.0, len(names) + 1), kind, shape)


def test_a_category_with_subcategories_competes_with_them():
    tree = fitted()
    assert tree.parents[0] == tree.parents[1] != tree.parents[2] == tree.parents[3]
    assert {tree.parents[node] for node in (4, 5)} == {ROOT_NODE}
    assert len(tree.parents) == 6


def test_flat_all_categories_are_siblings():
    assert fitted(shape="flat").parents == (ROOT_NODE,) * 4


def test_levels_where_nothing_parts_are_no_nodes():
    names = ("Top/A/B/C/One", "Top/A/B/C/Two", "Top/A/B/C/Two/Deep")
    tree = fitted(names)
    assert tree.parents == (ROOT_NODE, 3, 3, ROOT_NODE)


def test_the_posterior_of_a_category_is_the_product_along_its_path():
    tree = fitted()
    row = np.array([[0.2, 0.0, 0.5, 0.1, 0.0, 0.9]])
    joint = row @ tree.log_likelihood.T.astype(np.float64) + tree.log_prior

    def among(node: int) -> float:
        siblings = [i for i, above in enumerate(tree.parents) if above == tree.parents[node]]
        return float(np.exp(joint[0, node]) / np.exp(joint[0, siblings]).sum())

    found = np.exp(tree.log_posteriors(sp.csr_matrix(row)))[0]
    for leaf in range(4):
        assert found[leaf] == pytest.approx(among(leaf) * among(tree.parents[leaf]))


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@given(
    names=st.lists(PATHS, min_size=1, max_size=12, unique=True),
    kind=st.sampled_from(NAIVE_BAYES_KINDS),
    shape=st.sampled_from(TAXONOMY_SHAPES),
)
def test_posteriors_of_all_categories_sum_to_one(names, kind, shape):
    taxonomy = fitted(tuple(names), kind, shape)
    rows = sp.csr_matrix(np.random.default_rng(1).random((3, 6)))
    posteriors = np.exp(taxonomy.log_posteriors(rows))
    assert posteriors.shape == (3, len(names))
    assert posteriors.sum(axis=1) == pytest.approx(np.ones(3))


@pytest.mark.parametrize("kind", NAIVE_BAYES_KINDS)
@pytest.mark.parametrize("shape", TAXONOMY_SHAPES)
def test_the_words_of_a_category_name_it(kind, shape):
    sums = np.full((4, 4), 0.2) + np.eye(4) * 5
    taxonomy = fit_taxonomy(NAMES, [False, False, True, True], sums, np.ones(4), kind, shape)
    for place, name in enumerate(NAMES):
        vector = DocumentVector(np.array([place]), np.array([1.0]))
        assert taxonomy.likeliest(vector) == name
