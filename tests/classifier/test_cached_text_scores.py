"""Each text is scored once, and the cache is bounded."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import CachedTextScores


class RecordingScorer:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.texts.extend(texts)
        return np.array([float(len(text)) for text in texts])


def test_each_text_is_scored_once_and_scores_keep_the_order_of_the_texts():
    score = RecordingScorer()
    cache = CachedTextScores(score)
    assert cache.get(["menu", "a", "menu"]).tolist() == [4.0, 1.0, 4.0]
    assert cache.get(["bc", "menu"]).tolist() == [2.0, 4.0]
    assert score.texts == ["menu", "a", "bc"]


def test_no_texts_have_no_scores():
    assert CachedTextScores(RecordingScorer()).get([]).shape == (0,)


def test_a_full_cache_is_cleared():
    score = RecordingScorer()
    cache = CachedTextScores(score, max_texts=2)
    for texts in (["a", "b"], ["c"], ["d"], ["a"]):
        cache.get(texts)
    assert score.texts == ["a", "b", "c", "d", "a"]
