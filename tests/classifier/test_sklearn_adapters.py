"""Adapters for scikit-learn estimators, and the errors of unusable ones."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from focused.classifier.sklearn_classifier import SklearnTopicClassifier, page_to_text
from focused.errors import ConfigurationError
from focused.link_scoring.protocols import PageContext
from focused.link_scoring.sklearn_scorer import SklearnLinkScorer
from focused.web.page import Classification, Link, Page
from tests.support.made_up_topic import page
from tests.support.whale_models import WhaleScorer


class Says:
    """An estimator that answers as it is told, and keeps what it was asked."""

    def __init__(self, *shares: float, classes: tuple = (False, True)) -> None:
        self.classes_ = np.array(classes)
        self.shares = shares
        self.asked: list[list] = []

    def predict_proba(self, rows):
        self.asked.append(list(rows))
        good = np.resize(np.array(self.shares), len(rows))
        return np.column_stack([1.0 - good, good])


def many(kind: str, numbers: range) -> list[Page]:
    return [page(kind, n) for n in numbers]


def sure_pipeline():
    """Sees every word as independent, and has seen few pages."""
    pages = [*many("cheese", range(8)), *many("garden", range(8))]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression(C=1e5, max_iter=5000))
    return pipeline.fit([page_to_text(one) for one in pages], [True] * 8 + [False] * 8)


def test_a_pipelines_probability_is_the_relevance():
    classifier = SklearnTopicClassifier(Says(0.8), threshold=0.7)
    found = classifier.classify(page("cheese", 1))
    assert found.relevance == pytest.approx(0.8)
    assert found.on_topic


def test_the_threshold_that_was_given_decides():
    assert not SklearnTopicClassifier(Says(0.8), threshold=0.9).classify(page("cheese", 1)).on_topic


def test_the_pipeline_is_shown_title_description_headings_and_text():
    says = Says(0.8)
    one = Page(
        "http://a.test/",
        title="Title",
        headings=("Head",),
        description="Told",
        text="A text of words",
    )
    SklearnTopicClassifier(says).classify(one)
    assert says.asked[-1] == ["Title\nTold\nHead\nA text of words"]


def test_what_the_pipeline_is_shown_can_be_chosen():
    says = Says(0.8)
    classifier = SklearnTopicClassifier(
        says, text_of=lambda one: f"{one.title} and no more than that"
    )
    classifier.classify(Page("http://a.test/", title="T", text="X"))
    assert says.asked[-1] == ["T and no more than that"]


def test_an_answer_of_nought_or_one_is_no_certainty():
    for share in (0.0, 1.0):
        classifier = SklearnTopicClassifier(Says(share))
        assert 0.0 < classifier.classify(page("cheese", 1)).relevance < 1.0
        assert np.isfinite(classifier.score_texts(["brie"])).all()


def test_a_page_of_few_words_gets_the_relevance_of_the_empty_text():
    found = SklearnTopicClassifier(Says(0.3)).classify(Page("http://a.test/", text="two words"))
    assert found == Classification(pytest.approx(0.3), on_topic=False, known=False)


def test_repeated_texts_are_scored_once():
    says = Says(0.8)
    SklearnTopicClassifier(says).score_texts(["menu", "brie", "menu", "menu"])
    assert says.asked[-1] == ["menu", "brie"]


class TooSure(Says):
    """Takes every page that claims it for one of the topic, nearly certainly."""

    def predict_proba(self, rows):
        good = np.array([0.99 if "claims" in text else 0.01 for text in rows])
        return np.column_stack([1.0 - good, good])


def test_calibration_corrects_an_overconfident_classifier():
    """Seven of ten claims are true, and as many denials."""
    pages, truth = [], []
    for n in range(200):
        claims, honest = n % 2 == 0, n % 20 < 14
        text = f"{'claims' if claims else 'denies'} to be a page of the topic"
        pages.append(Page(f"http://a.test/{n}", title=text, text=text))
        truth.append(claims == honest)
    raw, calibrated = (
        SklearnTopicClassifier(TooSure()),
        SklearnTopicClassifier.calibrated(TooSure(), pages, truth),
    )
    assert raw.classify(pages[0]).relevance == pytest.approx(0.99)
    assert calibrated.classify(pages[0]).relevance == pytest.approx(0.7, abs=0.01)
    assert calibrated.classify(pages[1]).relevance == pytest.approx(0.3, abs=0.01)
    assert calibrated.score_texts(["claims"])[0] < raw.score_texts(["claims"])[0]


def test_calibration_needs_both_sides():
    with pytest.raises(ConfigurationError, match="on topic and pages off topic"):
        SklearnTopicClassifier.calibrated(sure_pipeline(), many("cheese", range(3)), [True] * 3)


def test_calibration_on_the_wrong_class_is_refused():
    pages = [*many("cheese", range(100, 120)), *many("garden", range(100, 120))]
    truth = [True] * 20 + [False] * 20
    with pytest.raises(ConfigurationError, match="good_class"):
        SklearnTopicClassifier.calibrated(sure_pipeline(), pages, truth, good_class=False)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearSVC(), "LinearSVC has no predict_proba.*CalibratedClassifierCV"),
        (LogisticRegression(), "has no classes_: fit it first"),
        (Says(0.5, classes=("a", "b")), r"has the classes \['a', 'b'\], not True"),
        (Says(float("nan")), "values outside 0 to 1"),
        (Says(1.5), "values outside 0 to 1"),
    ],
)
def test_an_unusable_estimator_is_refused_at_once(estimator, message):
    with pytest.raises(ConfigurationError, match=message):
        SklearnTopicClassifier(estimator)
    with pytest.raises(ConfigurationError, match=message):
        SklearnLinkScorer.over(estimator, WhaleScorer())


@pytest.mark.parametrize("threshold", [0.0, 1.0, float("nan")])
def test_a_threshold_that_decides_nothing_is_refused(threshold):
    with pytest.raises(ConfigurationError, match="threshold"):
        SklearnTopicClassifier(Says(0.5), threshold=threshold)


LINKS = [Link("http://a.test/x", anchor="whale"), Link("http://a.test/y", anchor="trade")]
VISIT = PageContext(Page("http://a.test/"), Classification(0.9, on_topic=True))


def test_all_links_of_a_page_are_one_question():
    says = Says(0.2, 0.6)
    scorer = SklearnLinkScorer.over(says, WhaleScorer())
    says.asked.clear()
    assert scorer.score(VISIT, LINKS).scores.tolist() == [0.2, 0.6]
    assert [len(rows) for rows in says.asked] == [2]


def test_features_of_another_scorer_can_be_picked_by_name():
    scorer = SklearnLinkScorer.over(Says(0.2), WhaleScorer(), ["parent"])
    assert scorer.feature_names == ("parent",)
    assert scorer.score(VISIT, LINKS).features.tolist() == [[0.9], [0.9]]


def test_an_unknown_feature_raises_an_error_that_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match="no colour; it has anchor, parent"):
        SklearnLinkScorer.over(Says(0.2), WhaleScorer(), ["colour"])


def test_an_estimator_fitted_on_other_features_is_refused_before_the_crawl():
    of_three = LogisticRegression().fit(np.eye(3), [True, False, True])
    with pytest.raises(ConfigurationError, match="rows of 2 features"):
        SklearnLinkScorer.over(of_three, WhaleScorer())
