"""Word counts on disk, read back as vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier import sample_words as sample_words_module
from focused.classifier.estimators import fit_word_weights
from focused.classifier.sample_words import SampleWords
from focused.classifier.taxonomy import NAIVE_BAYES_KINDS, log_likelihood_ratio
from focused.text.documents import page_words
from focused.topic import ESTIMATORS
from tests.support.made_up_topic import CHEESE, GARDEN, page

WORDS = st.lists(
    st.sampled_from(["brie", "curd", "soil", "seed", "the", "Ärger", "饭"]), max_size=12
)


def filled(documents, hosts=None, **options) -> SampleWords:
    sample_words = SampleWords(**options)
    for number, (text, head) in enumerate(documents):
        sample_words.add(text, head, hosts[number] if hosts else "one")
    return sample_words


def rows_of(sample_words, vocabulary):
    return np.vstack([batch.rows.toarray() for batch in sample_words.batches(vocabulary)])


def test_a_word_must_occur_in_two_documents_and_not_in_all():
    with filled(
        [(["all", "two", "one"], []), (["all"], ["two"]), (["all"], []), (["all"], [])]
    ) as sample_words:
        assert sample_words.vocabulary().words == ("two",)


def test_a_word_of_a_single_host_is_not_learnt_where_hosts_are_many():
    documents = [(["shared", f"name{n % 10}", f"name{n % 10}"], []) for n in range(40)]
    documents += [(["rare"], []) for _ in range(40)]
    with filled(documents, [f"host{n % 10}" for n in range(80)]) as sample_words:
        assert sample_words.vocabulary().words == ("rare", "shared")


@given(
    documents=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30), batch=st.integers(1, 7)
)
def test_rows_equal_the_vectors_of_the_vocabulary(documents, batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_words_module, "_BATCH_DOCUMENTS", batch)
        patch.setattr(sample_words_module, "_IN_MEMORY_BYTES", 100)
        with filled(documents) as sample_words:
            vocabulary = sample_words.vocabulary()
            rows = rows_of(sample_words, vocabulary)
            assert np.array_equal(rows, rows_of(sample_words, vocabulary))
    for row, document in zip(rows, documents, strict=True):
        vector = vocabulary.vector(*document)
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
    with filled(documents) as sample_words:
        share = next(sample_words.batches(sample_words.vocabulary())).known_share
    assert share.tolist() == pytest.approx([2 / 3, 1.0, 1.0, 0.0, 0.0])


def test_where_words_are_too_many_the_frequent_ones_are_kept(monkeypatch):
    monkeypatch.setattr(sample_words_module, "_BATCH_DOCUMENTS", 10)
    documents = [
        (["often" if n % 3 else "seldom", f"once{n}", f"again{n}"], []) for n in range(300)
    ]
    with filled(documents, max_words_counted=50) as sample_words:
        vocabulary = sample_words.vocabulary()
        assert {"often", "seldom"} <= {*vocabulary.words}
        assert len(sample_words) == len(rows_of(sample_words, vocabulary)) == 300
        counted = np.exp(-vocabulary.idf[vocabulary.index["often"]]) * 300 - 1
    assert counted == pytest.approx(200, abs=0.1)


@pytest.mark.parametrize("kind", NAIVE_BAYES_KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_are_positive_for_the_topics_words_and_negative_for_the_others(estimator, kind):
    pages = [page("cheese", n) for n in range(20)] + [page("garden", n) for n in range(60)]
    with filled(map(page_words, pages)) as sample_words:
        vocabulary = sample_words.vocabulary()
        rows = next(sample_words.batches(vocabulary)).rows
    good = np.array([True] * 20 + [False] * 60)
    ratio = log_likelihood_ratio(
        *(np.asarray(rows[side].sum(axis=0)).ravel() for side in (good, ~good)), kind
    )
    weights, _ = fit_word_weights(estimator, rows, good, np.ones(80), ratio)
    place = vocabulary.index
    # The first three words of each kind occur in the pages of the other kind, too.
    assert all(weights[place[word]] > 0 for word in CHEESE[3:])
    assert all(weights[place[word]] < 0 for word in GARDEN[3:])
