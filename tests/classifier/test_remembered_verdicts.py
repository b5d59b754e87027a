"""What was said of a text is not asked again, and memory is bounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import CachedTextScores


class Asked:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.texts.extend(texts)
        return np.array([float(len(text)) for text in texts])


def test_each_text_is_asked_about_once_and_answers_stand_in_the_order_of_the_texts():
    ask = Asked()
    said = CachedTextScores(ask)
    assert said.of(["menu", "a", "menu"]).tolist() == [4.0, 1.0, 4.0]
    assert said.of(["bc", "menu"]).tolist() == [2.0, 4.0]
    assert ask.texts == ["menu", "a", "bc"]


def test_no_text_has_no_verdict():
    assert CachedTextScores(Asked()).of([]).shape == (0,)


def test_beyond_its_bound_it_forgets_and_asks_again():
    ask = Asked()
    said = CachedTextScores(ask, most=2)
    for texts in (["a", "b"], ["c"], ["d"], ["a"]):
        said.of(texts)
    assert ask.texts == ["a", "b", "c", "d", "a"]
