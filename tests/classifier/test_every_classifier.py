"""The contract of every topic classifier."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from focused.classifier.sklearn_classifier import SklearnTopicClassifier, page_to_text
from focused.classifier.topic_classifier import ConstantClassifier, TopicClassifier, score_meanings
from focused.topic import ESTIMATORS
from focused.web.page import Page
from focused_lab.runner import CachingClassifier, SharedCpuTime
from tests.support.made_up_topic import page, trained, web
from tests.support.whale_models import WhaleClassifier

PAGES = list(web().values())
GOOD = ["cheese" in one.url for one in PAGES]
LEARNT, HELD_OUT = slice(0, None, 2), slice(1, None, 2)


def plain(folder: Path) -> TopicClassifier:
    """A pipeline of one's own at face value, its classes named."""
    names = ["ours" if good else "theirs" for good in GOOD]
    bayes = make_pipeline(TfidfVectorizer(), MultinomialNB(alpha=0.1))
    return SklearnTopicClassifier(
        bayes.fit([page_to_text(one) for one in PAGES], names), good="ours"
    )


def calibrated(folder: Path) -> TopicClassifier:
    """A pipeline that is far too sure of itself, set right on pages it has not seen."""
    sure = make_pipeline(CountVectorizer(), LogisticRegression(C=1000.0))
    sure.fit([page_to_text(one) for one in PAGES[LEARNT]], GOOD[LEARNT])
    return SklearnTopicClassifier.calibrated(sure, PAGES[HELD_OUT], GOOD[HELD_OUT])


CLASSIFIERS: dict[str, Callable[[Path], TopicClassifier]] = {
    **{
        name: lambda folder, name=name: trained(folder, estimator=name).classifier
        for name in ESTIMATORS
    },
    "words only": lambda folder: trained(folder, wish={"embedding": False}).classifier,
    "own pipeline": plain,
    "own pipeline, calibrated": calibrated,
    "remembering": lambda folder: CachingClassifier(trained(folder).classifier, SharedCpuTime()),
    "uninformed": lambda folder: ConstantClassifier(),
    "keyword": lambda folder: WhaleClassifier(),
}
INFORMED = sorted(CLASSIFIERS.keys() - {"uninformed", "keyword"})


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory) -> dict[str, TopicClassifier]:
    return {name: make(tmp_path_factory.mktemp("classifier")) for name, make in CLASSIFIERS.items()}


@pytest.fixture(params=CLASSIFIERS)
def classifier(request, classifiers) -> TopicClassifier:
    return classifiers[request.param]


@pytest.fixture(params=INFORMED)
def informed(request, classifiers) -> TopicClassifier:
    return classifiers[request.param]


def test_the_threshold_is_a_relevance(classifier):
    assert 0.0 <= classifier.threshold <= 1.0


@pytest.mark.parametrize("name", CLASSIFIERS)
@settings(deadline=None)  # the first question may load a library
@given(text=st.text(), title=st.text(), headings=st.lists(st.text(), max_size=3))
def test_any_page_gets_a_relevance_held_against_the_threshold(
    classifiers, name, text, title, headings
):
    address = f"http://a.example/{(text, title, headings)!a}"
    classifier = classifiers[name]
    found = classifier.classify(Page(address, title=title, headings=tuple(headings), text=text))
    assert 0.0 <= found.relevance <= 1.0
    assert found.on_topic == (found.known and found.relevance >= classifier.threshold)


def test_classification_is_independent_of_earlier_pages(classifier):
    pages = [page(kind, n) for kind in ("cheese", "garden") for n in range(700, 710)]
    first = [classifier.classify(one) for one in pages]
    assert [classifier.classify(one) for one in reversed(pages)] == first[::-1]


@pytest.mark.parametrize("name", CLASSIFIERS)
@settings(deadline=None)  # the first question may load a library
@given(texts=st.lists(st.text() | st.sampled_from(["brie", "tulip", "brie cheddar " * 90])))
def test_a_text_score_is_finite_and_independent_of_other_texts(classifiers, name, texts):
    together = classifiers[name].score_texts(texts)
    assert together.shape == (len(texts),)
    assert np.isfinite(together).all()
    alone = [float(classifiers[name].score_texts([text])[0]) for text in texts]
    assert together.tolist() == pytest.approx(alone, abs=1e-9)


def test_an_empty_text_scores_zero(classifier):
    assert classifier.score_texts([""]).tolist() == [0.0]


def test_every_classifier_gives_each_text_a_meaning_or_none(classifier):
    meanings = score_meanings(classifier, ["mozzarella", ""])
    assert meanings.shape == (2,)
    assert meanings[1] == 0.0


def test_a_classifier_can_be_pickled(classifier):
    sent = pickle.loads(pickle.dumps(classifier))
    one = page("cheese", 900)
    assert sent.classify(one) == classifier.classify(one)


def test_unseen_pages_are_separated(informed):
    ours = [informed.classify(page("cheese", n)).on_topic for n in range(1000, 1040)]
    others = [informed.classify(page("garden", n)).on_topic for n in range(1000, 1040)]
    assert sum(ours) >= 34
    assert sum(others) <= 4


def test_text_scores_have_the_right_sign_and_unknown_words_score_zero(informed):
    ours, others, strange = informed.score_texts(["brie and cheddar", "tulip hedge", "xyzzy"])
    assert ours > 0.5
    assert others < -0.3
    assert strange == 0.0


def test_a_page_without_words_is_not_known(informed):
    assert not informed.classify(Page("http://a.example/empty")).known
