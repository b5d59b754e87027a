"""The semantic scorer rates texts by what their words mean, not by the samples' words."""

import pickle

import numpy as np
import pytest

from focused.classifier.estimators import fit_semantic_scorer
from focused.classifier.semantic_scorer import MAX_SEMANTIC_SCORE, SemanticScorer
from focused.text.static_embedding import load_embedding, split_word
from focused.text.word_hashes import LazyHashedTexts
from tests.support.counting import count_calls

GOOD = ("violin concerto", "piano sonata", "string quartet", "opera singer", "brass band")
OTHER = (
    *("tax law", "criminal court", "steel bridge", "sodium chloride", "prime minister"),
    *("football club", "mountain lake", "family dinner", "motor engine", "garden plants"),
)


def fitted(good=GOOD, other=OTHER, seed=0) -> SemanticScorer:
    texts = [*good, *other]
    embedding = load_embedding()
    assert embedding is not None
    return fit_semantic_scorer(
        embedding,
        texts,
        texts,
        np.arange(len(texts)) < len(good),
        np.ones(len(texts)),
        np.arange(len(texts)) % 5,
    )


@pytest.fixture(scope="module")
def scorer() -> SemanticScorer:
    return fitted()


def _suffixes(count: int) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [letters[i % 26] + letters[i // 26] for i in range(count)]


def test_words_that_no_sample_has_are_rated_by_their_meaning(scorer):
    on_topic = scorer.score_texts(["cello", "orchestra", "symphony"])
    others = scorer.score_texts(["aluminium", "parliament", "tennis"])
    assert on_topic.min() > 0 > others.max()


def test_texts_without_known_words_say_nothing(scorer):
    assert scorer.score_texts(["", "1984", "音楽"]).tolist() == [0.0, 0.0, 0.0]


def test_a_text_has_the_same_score_in_any_company(scorer):
    texts = ["cello lessons", "court", "", "choir"]
    together = scorer.score_texts(texts)
    alone = [float(fitted().score_texts([text])[0]) for text in texts]
    assert together == pytest.approx(alone)


def test_texts_that_are_hashed_already_have_the_same_scores(scorer):
    texts = ["cello lessons", "Opera House"]
    assert scorer.score_texts(LazyHashedTexts(texts)).tolist() == scorer.score_texts(texts).tolist()


def test_scores_are_bounded(scorer):
    assert np.abs(scorer.score_texts(["violin piano " * 50])).max() <= MAX_SEMANTIC_SCORE


def test_samples_that_meaning_does_not_separate_give_scores_near_zero():
    """The slope is that of titles left out: chance gives none."""
    rng = np.random.default_rng(3)
    words = [word for text in (*GOOD, *OTHER) for word in text.split()]
    texts = [" ".join(rng.choice(words, 2)) for _ in range(80)]
    confused = fitted(texts[:40], texts[40:])
    assert confused.slope < fitted().slope / 3


def test_a_language_without_known_words_gives_no_scores():
    foreign = fitted(["音楽", "楽器", "歌手"], ["法律", "裁判", "自動車"])
    assert foreign.slope == pytest.approx(0.0, abs=1e-6)


def test_words_that_are_forgotten_keep_their_scores(scorer, monkeypatch):
    texts = ["cello", "court", "choirs", "tennisplayers", "operatic", "metalwork"] * 2
    expected = scorer.score_texts(texts).tolist()
    monkeypatch.setattr("focused.classifier.semantic_scorer.MAX_SPLIT_WORDS", 0)
    forgetful = fitted()
    assert forgetful.score_texts(texts).tolist() == expected
    assert forgetful.score_texts(texts[::-1]).tolist() == expected[::-1]


def test_a_word_is_split_into_pieces_once(monkeypatch):
    fresh = fitted()
    splits = count_calls(monkeypatch, split_word)
    for text in ("operatics operatics", "OPERATICS", "operatics cello"):
        fresh.score_texts([text])
    assert splits.calls == 1


def test_a_copy_in_another_process_gives_the_same_scores(scorer):
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.score_texts(["cello"]).tolist() == scorer.score_texts(["cello"]).tolist()
