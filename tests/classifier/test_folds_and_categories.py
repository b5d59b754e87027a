"""Small categories are merged; folds keep hosts whole."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.taxonomy import MAX_CATEGORIES, merge_small_categories
from focused.classifier.validation import make_host_folds, make_page_folds


def test_small_categories_join_the_one_above():
    names = ["Top/Food/Cheese/Soft"] * 3 + ["Top/Food/Cheese"] * 4 + ["Top/Food/Bread"] * 6
    merged = Counter(merge_small_categories(names, [True] * 13))
    assert merged == {"Top/Food/Cheese": 7, "Top/Food/Bread": 6}


def test_good_and_other_samples_never_share_a_class():
    names = ["Top/Food/Cheese"] * 2 + ["Top/Food/Bread"] * 2 + ["Top/Food"] * 5
    good = [True] * 2 + [False] * 2 + [True] * 5
    merged = merge_small_categories(names, good)
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
    merged = merge_small_categories(names, good)
    assert len({*zip(merged, good, strict=True)}) == len(set(merged))
    for name, above in zip(names, merged, strict=True):
        stem = above.removesuffix(" (other)")
        assert stem == "(all)" or name == stem or name.startswith(stem + "/")


def test_thousands_of_categories_become_few():
    names = [f"Top/{n % 10}/{n % 100}/{n}" for n in range(3000)]
    assert len(set(merge_small_categories(names, [False] * 3000))) <= MAX_CATEGORIES


def test_folds_keep_hosts_whole():
    hosts = [f"h{n % 8}" for n in range(80)]
    good = np.array([n % 8 < 3 for n in range(80)])
    folds = make_host_folds(good, hosts, seed=1)
    assert folds is not None
    assert len({*zip(hosts, folds.tolist(), strict=True)}) == 8


@pytest.mark.parametrize("hosts", [["one"] * 20, ["a"] * 10 + ["b", "c"] * 5])
def test_one_host_a_side_leaves_no_host_to_hold_out(hosts):
    assert make_host_folds(np.array([True] * 10 + [False] * 10), hosts, seed=1) is None


def test_page_folds_share_out_both_sides():
    good = np.array([True] * 10 + [False] * 40)
    folds = make_page_folds(good, seed=1)
    assert [int(good[folds == fold].sum()) for fold in range(5)] == [2] * 5
