"""The spam classifier: learned from good pages alone, applied to text of its own subject."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.spam.spam_classifier import (
    MAX_EVIDENCE,
    SIGNALS,
    PopularWords,
    SpamClassifier,
    body_text,
    content_signals,
)
from focused.spam.spam_training import (
    MIN_SAMPLES,
    TRAINING_FAMILIES,
    fit_spam_classifier,
    generate_text,
)
from focused.web.page import Link, Page
from tests.support.prose import prose_pages


@pytest.fixture(scope="module")
def classifier() -> SpamClassifier:
    fitted = fit_spam_classifier(prose_pages()[::2], seed=1)
    assert fitted is not None
    return fitted


def mean_evidence(classifier: SpamClassifier, pages: list[Page]) -> float:
    found = [classifier.evidence(page) for page in pages]
    return float(np.mean([one for one in found if one is not None]))


def test_good_pages_that_were_no_samples_score_as_held_out_samples_did(classifier):
    good = mean_evidence(classifier, list(prose_pages()[1::2]))
    middle = (classifier.good_mean + classifier.spam_mean) / 2
    assert classifier.good_mean - 0.5 < good < middle


@pytest.mark.parametrize("family", TRAINING_FAMILIES)
def test_text_made_of_good_pages_scores_as_spam(classifier, family):
    rng, texts = random.Random(3), [page.text for page in prose_pages()[1::2]]
    made = [
        Page("http://s.test/", text=TRAINING_FAMILIES[family](rng.sample(texts, 6), 200, rng))
        for _ in range(20)
    ]
    assert mean_evidence(classifier, made) > (classifier.good_mean + classifier.spam_mean) / 2


def test_a_way_of_making_text_that_was_not_trained_on_scores_above_good_pages(classifier):
    rng, texts = random.Random(3), [page.text for page in prose_pages()[1::2]]
    made = [
        Page("http://s.test/", text=generate_text(rng.sample(texts, 6), 200, rng, order=1))
        for _ in range(20)
    ]
    assert (
        mean_evidence(classifier, made) > mean_evidence(classifier, list(prose_pages()[1::2])) + 1
    )


def test_pages_labelled_spam_raise_the_evidence_of_pages_like_them():
    rng, texts = random.Random(3), [page.text for page in prose_pages()[1::2]]
    made = [
        Page("http://s.test/", text=generate_text(rng.sample(texts, 6), 200, rng, order=1))
        for _ in range(40)
    ]
    without, with_labels = (
        fit_spam_classifier(prose_pages()[::2], 1, labelled) for labelled in ((), made[:20])
    )
    assert without is not None
    assert with_labels is not None

    def gap(classifier: SpamClassifier) -> float:
        good = mean_evidence(classifier, list(prose_pages()[1::2]))
        return mean_evidence(classifier, made[20:]) - good

    assert gap(with_labels) > gap(without) + 0.5


def test_the_same_pages_and_seed_give_the_same_classifier(classifier):
    again = fit_spam_classifier(prose_pages()[::2], seed=1)
    assert again is not None
    assert np.array_equal(again.values, classifier.values)
    assert again.popular.words == classifier.popular.words


def test_few_samples_give_no_classifier():
    assert fit_spam_classifier(prose_pages()[: MIN_SAMPLES - 1], seed=0) is None


def test_a_short_text_gives_no_evidence(classifier):
    assert classifier.evidence(Page("http://a.test/", text="Too few words to tell.")) is None


def test_the_anchors_of_links_are_not_measured():
    menu = "Download the latest release"
    page = Page(
        "http://a.test/", text=f"{menu} Whales sing.", links=(Link("http://a.test/d", menu),)
    )
    assert body_text(page).split() == ["Whales", "sing."]


@given(st.text(max_size=3_000), st.lists(st.text(max_size=20), max_size=5))
def test_any_text_gives_finite_signals_and_bounded_evidence(classifier, text, anchors):
    links = tuple(Link(f"http://a.test/{i}", anchor) for i, anchor in enumerate(anchors))
    page = Page("http://a.test/", text=text + " whale" * 30, links=links)
    signals = content_signals(page, classifier.popular)
    if signals is not None:
        assert signals.shape == (len(SIGNALS),)
        assert np.isfinite(signals).all()
        assert abs(classifier.evidence_of(signals)) <= MAX_EVIDENCE


def test_pairs_of_popular_words_in_their_usual_order_are_likelier():
    popular = PopularWords.count(["the whale of the sea and the song of the whale"] * 5)
    order = {word: place for place, word in enumerate(popular.words)}
    scores = popular.pair_scores
    assert scores[order["of"], order["the"]] > scores[order["of"], order["of"]]
