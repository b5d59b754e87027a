"""Classes merged, hosts kept whole, weights that speak for the topic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.learning.documents import learn_vocabulary, matrix, page_words
from focused.learning.estimators import fit_weights
from focused.learning.fitting import (
    MAX_CATEGORIES,
    host_folds,
    merged_categories,
    page_folds,
)
from focused.topic import ESTIMATORS
from tests.learning.made_up import CHEESE, GARDEN, page


def test_small_categories_join_the_one_above():
    names = ["Top/Food/Cheese/Soft"] * 3 + ["Top/Food/Cheese"] * 4 + ["Top/Food/Bread"] * 6
    merged = Counter(merged_categories(names, [True] * 13))
    assert merged == {"Top/Food/Cheese": 7, "Top/Food/Bread": 6}


def test_good_and_other_samples_never_share_a_class():
    names = ["Top/Food/Cheese"] * 2 + ["Top/Food/Bread"] * 2 + ["Top/Food"] * 5
    good = [True] * 2 + [False] * 2 + [True] * 5
    merged = merged_categories(names, good)
    sides = {name: {g for n, g in zip(merged, good, strict=True) if n == name} for name in merged}
    assert all(len(side) == 1 for side in sides.values())


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map("/".join), st.booleans()
        ),
        min_size=1,
        max_size=80,
    )
)
def test_every_class_is_of_one_side_and_lies_above_its_samples(samples):
    names, good = [name for name, _ in samples], [side for _, side in samples]
    merged = merged_categories(names, good)
    assert len({*zip(merged, good, strict=True)}) == len(set(merged))
    for name, above in zip(names, merged, strict=True):
        stem = above.removesuffix(" (other)")
        assert stem == "(all)" or name == stem or name.startswith(stem + "/")


def test_thousands_of_categories_become_few():
    names = [f"Top/{n % 10}/{n % 100}/{n}" for n in range(3000)]
    assert len(set(merged_categories(names, [False] * 3000))) <= MAX_CATEGORIES


def test_folds_keep_hosts_whole():
    hosts = [f"h{n % 8}" for n in range(80)]
    good = np.array([n % 8 < 3 for n in range(80)])
    folds = host_folds(good, hosts, seed=1)
    assert folds is not None
    assert len({*zip(hosts, folds.tolist(), strict=True)}) == 8


@pytest.mark.parametrize("hosts", [["one"] * 20, ["a"] * 10 + ["b", "c"] * 5])
def test_one_host_a_side_leaves_no_host_to_hold_out(hosts):
    assert host_folds(np.array([True] * 10 + [False] * 10), hosts, seed=1) is None


def test_page_folds_share_out_both_sides():
    good = np.array([True] * 10 + [False] * 40)
    folds = page_folds(good, seed=1)
    assert [int(good[folds == fold].sum()) for fold in range(5)] == [2] * 5


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_are_positive_for_the_topics_words_and_negative_for_the_others(estimator):
    pages = [page("cheese", n) for n in range(20)] + [page("garden", n) for n in range(60)]
    documents = [page_words(one) for one in pages]
    vocabulary = learn_vocabulary(documents, ["h"] * len(pages))
    rows = matrix((vocabulary.vector(*pair) for pair in documents), len(vocabulary))
    weights, _ = fit_weights(estimator, rows, np.array([True] * 20 + [False] * 60))
    place = vocabulary.index
    # The first three words of each kind occur in the pages of the other kind, too.
    assert all(weights[place[word]] > 0 for word in CHEESE[3:])
    assert all(weights[place[word]] < 0 for word in GARDEN[3:])


def test_a_word_of_a_single_host_is_not_learnt_where_hosts_are_many():
    documents = [(["shared", f"name{n % 10}", f"name{n % 10}"], []) for n in range(40)]
    documents += [(["rare"], []) for _ in range(40)]
    hosts = [f"host{n % 10}" for n in range(80)]
    assert learn_vocabulary(documents, hosts).words == ("rare", "shared")
