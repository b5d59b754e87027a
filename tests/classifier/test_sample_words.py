"""Vocabulary and vectors of training documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.estimators import fit_word_weights
from focused.classifier.sample_texts import SampleWords
from focused.classifier.taxonomy import NAIVE_BAYES_KINDS, log_likelihood_ratio
from focused.text.documents import HashedPage, page_words
from focused.text.word_hashes import hash_texts
from focused.topic import ESTIMATORS
from tests.support.made_up_topic import CHEESE, GARDEN, page

WORDS = st.lists(
    st.sampled_from(["brie", "curd", "soil", "seed", "the", "Ärger", "饭"]), max_size=12
)


def filled(documents, hosts=None) -> SampleWords:
    sample_words = SampleWords()
    for number, (text, head) in enumerate(documents):
        sample_words.add(text, head, hosts[number] if hosts else "one")
    return sample_words


def test_a_word_must_occur_in_two_documents_and_not_in_all():
    documents = [(["all", "two", "one"], []), (["all"], ["two"]), (["all"], []), (["all"], [])]
    assert filled(documents).vocabulary().words == ("two",)


def test_a_word_of_text_and_head_is_in_one_document():
    documents = [(["once"], ["once"]), (["other"], []), ([], ["other"]), ([], [])]
    assert filled(documents).vocabulary().words == ("other",)


def test_a_word_of_a_single_host_is_not_learnt_where_hosts_are_many():
    documents = [(["shared", f"name{n % 10}", f"name{n % 10}"], []) for n in range(40)]
    documents += [(["rare"], []) for _ in range(40)]
    sample_words = filled(documents, [f"host{n % 10}" for n in range(80)])
    assert sample_words.vocabulary().words == ("rare", "shared")


def test_a_document_that_is_not_own_adds_no_words():
    sample_words = filled([(["ours"], []), ([], []), ([], []), ([], [])])
    for _ in range(2):
        sample_words.add(["ours", "theirs"], [], "two", own=False)
    assert sample_words.vocabulary().words == ("ours",)


@given(documents=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30))
def test_rows_equal_the_vectors_of_pages(documents):
    sample_words = filled(documents)
    vocabulary = sample_words.vocabulary()
    rows = sample_words.rows(vocabulary).toarray()
    for row, document in zip(rows, documents, strict=True):
        vector = vocabulary.vectorize_page(HashedPage(*(hash_texts(w).hashes for w in document)))
        assert np.flatnonzero(row).tolist() == vector.ids.tolist()
        assert np.allclose(row[vector.ids], vector.values, atol=1e-6)


def test_the_known_share_is_what_the_others_would_know():
    documents = [
        (["common", "common", "own"], []),
        (["common"], []),
        (["common"], []),
        ([], ["xx"]),
        ([], ["yy"]),
    ]
    sample_words = filled(documents)
    share = sample_words.known_shares(sample_words.vocabulary())
    assert share.tolist() == pytest.approx([2 / 3, 1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("kind", NAIVE_BAYES_KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_are_positive_for_the_topics_words_and_negative_for_the_others(estimator, kind):
    pages = [page("cheese", n) for n in range(20)] + [page("garden", n) for n in range(60)]
    sample_words = filled(map(page_words, pages))
    vocabulary = sample_words.vocabulary()
    rows = sample_words.rows(vocabulary)
    good = np.array([True] * 20 + [False] * 60)
    ratio = log_likelihood_ratio(
        *(np.asarray(rows[side].sum(axis=0)).ravel() for side in (good, ~good)), kind
    )
    weights, _ = fit_word_weights(estimator, rows, good, np.ones(80), ratio)
    place = vocabulary.index
    # The first three words of each kind occur in the pages of the other kind, too.
    assert all(weights[place[word]] > 0 for word in CHEESE[3:])
    assert all(weights[place[word]] < 0 for word in GARDEN[3:])
