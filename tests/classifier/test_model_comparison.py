"""A new model is compared with the old one on held-out pages."""

from collections.abc import Sequence

import numpy as np
import pytest

from focused.classifier.model_comparison import (
    MIN_COMPARED_PAGES,
    ComparisonVerdict,
    HeldOutPages,
    WordChanges,
    are_equivalent,
    compare_classifiers,
    render_comparison,
)
from focused.classifier.model_file import load_model, save_model
from focused.web.page import Classification, Page
from tests.support.made_up_topic import trained, web

AT = 1_700_000_000.0


class Says:
    """Classifies a page by the number in its title: relevance per page, as listed."""

    threshold = 0.5

    def __init__(self, relevance: Sequence[float], category: str = "") -> None:
        self._relevance = relevance
        self._category = category

    def classify(self, page: Page) -> Classification:
        relevance = self._relevance[int(page.title)]
        return Classification(relevance, relevance >= self.threshold)

    def likeliest_category(self, page: Page) -> str:
        return self._category

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.zeros(len(texts))


def held_out(*on_topic: bool) -> HeldOutPages:
    pages = tuple(Page(f"http://a.test/{n}", title=str(n)) for n in range(len(on_topic)))
    return HeldOutPages(pages, on_topic)


def compared(old: Says, new: Says, *on_topic: bool):
    return compare_classifiers(old, new, held_out(*on_topic), np.random.default_rng(0))


TRUTH = (True, True, False, False) * 5
RIGHT = [0.9 if good else 0.1 for good in TRUTH]
WRONG = [1.0 - each for each in RIGHT]


def test_a_right_model_is_significantly_better_than_a_wrong_one():
    found = compared(Says(WRONG), Says(RIGHT), *TRUTH)
    assert found.verdict is ComparisonVerdict.BETTER and found.is_significant
    assert (found.old.n_correct, found.new.n_correct) == (0, 20)
    assert found.gain == pytest.approx(0.81 - 0.01)


def test_the_same_models_the_other_way_round_are_worse_by_as_much():
    there = compared(Says(WRONG), Says(RIGHT), *TRUTH)
    back = compared(Says(RIGHT), Says(WRONG), *TRUTH)
    assert back.verdict is ComparisonVerdict.WORSE
    assert back.gain == pytest.approx(-there.gain)


def test_equal_models_are_neither_better_nor_worse():
    found = compared(Says(RIGHT), Says(RIGHT), *TRUTH)
    assert found.verdict is ComparisonVerdict.ALIKE
    assert (found.gain, found.low, found.high) == (0.0, 0.0, 0.0)


def test_a_difference_on_one_page_of_twenty_is_not_sure():
    one_better = [0.9, *RIGHT[1:]]
    found = compared(Says([0.6, *RIGHT[1:]]), Says(one_better), *TRUTH)
    assert found.verdict is ComparisonVerdict.BETTER and not found.is_significant
    assert "may be chance" in render_comparison("2", AT, found, WordChanges((), ()))


def test_of_fewer_than_ten_pages_nothing_is_concluded():
    few = TRUTH[: MIN_COMPARED_PAGES - 1]
    assert compared(Says(WRONG), Says(RIGHT), *few).verdict is ComparisonVerdict.TOO_FEW


def test_precision_and_recall_use_classes_not_probabilities():
    found = compared(Says([0.6, 0.4, 0.6, 0.1]), Says(RIGHT), *TRUTH[:4])
    assert (found.old.precision, found.old.recall) == (0.5, 0.5)
    assert (found.new.precision, found.new.recall) == (1.0, 1.0)


def test_a_model_that_calls_nothing_on_topic_has_no_precision():
    found = compared(Says([0.1] * 4), Says(RIGHT), False, False, False, False)
    assert found.old.precision is None and found.old.recall is None


def test_neighbours_are_the_categories_of_false_alarms_before_and_after():
    found = compared(Says(WRONG, "Top/Boats"), Says([0.6, 0.6, 0.6, 0.1] * 5, "Top/Fish"), *TRUTH)
    assert found.neighbours == (("Top/Boats", 10, 0), ("Top/Fish", 0, 5))


def test_the_same_pages_and_seed_give_the_same_interval():
    first, second = (compared(Says(WRONG), Says([0.4] * 20), *TRUTH) for _ in range(2))
    assert first == second


def test_the_text_names_words_that_came_and_went():
    text = render_comparison("Version 2", AT, None, WordChanges(("krill",), ("boat",)))
    assert "krill" in text.partition("Words lost")[0] and "boat" in text.partition("Words lost")[2]
    assert "2023-11-14" in text


def test_a_model_retrained_on_the_same_samples_is_equivalent_to_its_file(tmp_path):
    save_model(trained(tmp_path), tmp_path / "old.joblib")
    old = load_model(tmp_path / "old.joblib")
    assert are_equivalent(old, trained(tmp_path))
    assert not are_equivalent(old, trained(tmp_path, web(cheese=29)))
    assert not are_equivalent(old, trained(tmp_path, estimator="linear-svm"))
