"""The lead scorer rates pages by what their first words mean."""

import pickle

import numpy as np
import pytest

from focused.classifier.estimators import fit_direction
from focused.classifier.semantic_scorer import MAX_LEAD_WORDS, LeadScorer, embed_first_words
from focused.text.documents import HashedPage, hash_page
from focused.text.static_embedding import StaticEmbedding, load_embedding
from focused.web.page import Page

GOOD = ("violin concerto", "piano sonata", "string quartet", "opera singer", "brass band")
OTHER = (
    *("tax law", "criminal court", "steel bridge", "sodium chloride", "prime minister"),
    *("football club", "mountain lake", "family dinner", "motor engine", "garden plants"),
)


def hashed(text: str, title: str = "") -> HashedPage:
    return hash_page(Page("https://a.example/", title=title, text=text))


@pytest.fixture(scope="module")
def embedding() -> StaticEmbedding:
    embedding = load_embedding()
    assert embedding is not None
    return embedding


@pytest.fixture(scope="module")
def scorer(embedding) -> LeadScorer:
    texts = [*GOOD, *OTHER]
    rows = embed_first_words(embedding, [hashed(text).text for text in texts])
    good = np.arange(len(texts)) < len(GOOD)
    return LeadScorer(embedding, *fit_direction(rows, good, np.ones(len(texts))))


def test_words_that_no_sample_has_are_rated_by_their_meaning(scorer):
    assert scorer.raw_score(hashed("the cello and the orchestra")) > 0
    assert scorer.raw_score(hashed("the aluminium industry of the parliament")) < 0


def test_the_title_counts_before_the_text(scorer):
    text = "parliament " * MAX_LEAD_WORDS
    assert scorer.raw_score(hashed(text, "cello symphony")) > scorer.raw_score(hashed(text))


def test_words_after_the_first_do_not_count(scorer):
    first = "cello " * MAX_LEAD_WORDS
    assert scorer.raw_score(hashed(first + "parliament")) == scorer.raw_score(hashed(first))


def test_a_page_without_known_words_scores_zero(scorer):
    assert scorer.raw_score(hashed("音楽 1984 qqqqq")) == 0.0


def test_training_vectors_have_the_scores_of_pages(scorer, embedding):
    page = hashed("cello lessons cello", "Opera House")
    row = embed_first_words(embedding, [page.first(MAX_LEAD_WORDS)])[0]
    assert row @ scorer.direction + scorer.bias == pytest.approx(scorer.raw_score(page), rel=1e-4)


def test_a_copy_in_another_process_gives_the_same_scores(scorer):
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.raw_score(hashed("cello")) == scorer.raw_score(hashed("cello"))
