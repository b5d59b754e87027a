"""Is a newly trained model better than the one in office? Asked of pages that taught neither.

Both judge the same held-out pages, so the differences are paired, page by page.
The measure is the Brier score, the mean squared error of the relevance: it
counts what is mistaken and how surely (Brier 1950, "Verification of forecasts
expressed in terms of probability"). The interval is a bootstrap over the pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import bootstrap

from focused.learning.calibration import Floats
from focused.learning.protocols import TopicJudge
from focused.learning.report import TrainedModel
from focused.web.page import Judgement, Page

FEW_PAGES = 10
"""With fewer pages held out nothing is said about which model is better."""

_CONFIDENCE = 0.95
_RESAMPLES = 2_000


class Finding(StrEnum):
    """What the held-out pages say of the new model against the old."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    TOO_FEW = "too few"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Pages that no model learned from, ``on_topic[i]`` what a person said of page i."""

    pages: tuple[Page, ...]
    on_topic: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """How one model did: pages by verdict and truth; its Brier score in [0, 1], less is better."""

    right: int
    false_alarms: int
    misses: int
    found: int
    brier: float

    @property
    def precision(self) -> float | None:
        """Of what it called on topic, the share that was; None when it called nothing so."""
        called = self.found + self.false_alarms
        return self.found / called if called else None

    @property
    def recall(self) -> float | None:
        """Of what was on topic, the share that it called so; None when nothing was."""
        there = self.found + self.misses
        return self.found / there if there else None


@dataclass(frozen=True, slots=True)
class Succession:
    """Old against new on the same held-out pages.

    ``gain`` is by how much the new model's Brier score is smaller, ``low`` and ``high`` its 95%
    interval. ``neighbours`` are categories with how many of their pages the old and the new
    model mistake for the topic.
    """

    pages: int
    old: Record
    new: Record
    gain: float
    low: float
    high: float
    neighbours: tuple[tuple[str, int, int], ...]

    @property
    def finding(self) -> Finding:
        """Better or worse by the estimate; alike when no page is judged otherwise."""
        if self.pages < FEW_PAGES:
            return Finding.TOO_FEW
        if self.gain == 0.0:
            return Finding.ALIKE
        return Finding.BETTER if self.gain > 0.0 else Finding.WORSE

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0.0 or self.high < 0.0


def compare_judges(
    old: TopicJudge, new: TopicJudge, held_out: HeldOut, rng: np.random.Generator
) -> Succession:
    """Let both judge the held-out pages; at least one page."""
    truth = np.array(held_out.on_topic, dtype=bool)
    before = [old.judge(page) for page in held_out.pages]
    after = [new.judge(page) for page in held_out.pages]
    gains = _squared_errors(before, truth) - _squared_errors(after, truth)
    low, high = _interval(gains, rng)
    return Succession(
        pages=len(truth),
        old=_record(before, truth),
        new=_record(after, truth),
        gain=float(gains.mean()),
        low=low,
        high=high,
        neighbours=_neighbours(before, after, truth),
    )


def _squared_errors(judgements: Sequence[Judgement], truth: np.ndarray) -> Floats:
    relevance = np.array([one.relevance for one in judgements])
    return np.asarray((relevance - truth) ** 2)


def _interval(gains: Floats, rng: np.random.Generator) -> tuple[float, float]:
    if len(gains) < 2 or np.ptp(gains) == 0.0:
        return float(gains.min()), float(gains.max())
    drawn = bootstrap(
        (gains,), np.mean, n_resamples=_RESAMPLES, confidence_level=_CONFIDENCE,
        method="percentile", rng=rng,
    )  # fmt: skip
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def _record(judgements: Sequence[Judgement], truth: np.ndarray) -> Record:
    called = np.array([one.on_topic for one in judgements], dtype=bool)
    return Record(
        right=int((called == truth).sum()),
        false_alarms=int((called & ~truth).sum()),
        misses=int((~called & truth).sum()),
        found=int((called & truth).sum()),
        brier=float(_squared_errors(judgements, truth).mean()),
    )


def _neighbours(
    before: Sequence[Judgement], after: Sequence[Judgement], truth: np.ndarray
) -> tuple[tuple[str, int, int], ...]:
    """False alarms by the category that the model thought likeliest; most of them first."""
    old, new = (
        Counter(
            one.category
            for one, good in zip(judgements, truth.tolist(), strict=True)
            if one.on_topic and not good
        )
        for judgements in (before, after)
    )
    names = sorted({*old, *new}, key=lambda name: (-old[name] - new[name], name))
    return tuple((name, old[name], new[name]) for name in names)


def says_the_same(old: TrainedModel, new: TrainedModel) -> bool:
    """Whether both judge every page alike: the same words, weights and threshold."""
    one, other = old.classifier, new.classifier
    return (
        one.vocabulary.words == other.vocabulary.words
        and one.calibration == other.calibration
        and np.array_equal(one.weights, other.weights)
        and old.report.samples.categories == new.report.samples.categories
    )


@dataclass(frozen=True, slots=True)
class WordChanges:
    """Words that began, and that ceased, to be among those that speak most for the topic."""

    gained: tuple[str, ...]
    lost: tuple[str, ...]


def word_changes(old: TrainedModel, new: TrainedModel) -> WordChanges:
    """Which of the words in either card are in one alone, the weightiest first."""
    before = [word for word, _ in old.report.top_words]
    after = [word for word, _ in new.report.top_words]
    return WordChanges(
        gained=tuple(word for word in after if word not in set(before)),
        lost=tuple(word for word in before if word not in set(after)),
    )
