"""Compares a new model with the current one on held-out labelled pages.

Differences are paired by page. The measure is the Brier score, the mean squared error of the
relevance (Brier 1950, "Verification of forecasts expressed in terms of probability"), with a
bootstrap interval over pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np
from scipy.stats import bootstrap

from focused.classifier.calibration import FloatArray
from focused.classifier.topic_classifier import TopicClassifier, likeliest_category
from focused.classifier.training_report import TrainedModel, markdown_table
from focused.web.page import Classification, Page

MIN_COMPARED_PAGES = 10
"""With fewer held-out pages there is no verdict."""

_CONFIDENCE = 0.95
_RESAMPLES = 2_000


class ComparisonVerdict(StrEnum):
    """Result of comparing the new model with the old one."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    TOO_FEW = "too few"


@dataclass(frozen=True, slots=True)
class HeldOutPages:
    """Pages that no model was trained on; ``on_topic[i]`` is the label of page i."""

    pages: tuple[Page, ...]
    on_topic: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ModelResult:
    """Confusion matrix of one model, and its Brier score in [0, 1], lower is better."""

    n_correct: int
    false_positives: int
    false_negatives: int
    true_positives: int
    brier: float

    @property
    def precision(self) -> float | None:
        """Share of on-topic pages among those classified as such; None if there are none."""
        called = self.true_positives + self.false_positives
        return self.true_positives / called if called else None

    @property
    def recall(self) -> float | None:
        """Share of on-topic pages classified as such; None if there are none."""
        there = self.true_positives + self.false_negatives
        return self.true_positives / there if there else None


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Old and new model on the same held-out pages.

    ``gain`` is the decrease of the Brier score, ``low`` and ``high`` its 95% interval.
    ``neighbours`` are categories with the numbers of false positives of either model.
    """

    pages: int
    old: ModelResult
    new: ModelResult
    gain: float
    low: float
    high: float
    neighbours: tuple[tuple[str, int, int], ...]

    @property
    def verdict(self) -> ComparisonVerdict:
        """Better or worse by the estimate; alike if both models agree on every page."""
        if self.pages < MIN_COMPARED_PAGES:
            return ComparisonVerdict.TOO_FEW
        if self.gain == 0.0:
            return ComparisonVerdict.ALIKE
        return ComparisonVerdict.BETTER if self.gain > 0.0 else ComparisonVerdict.WORSE

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0


def compare_classifiers(
    old: TopicClassifier, new: TopicClassifier, held_out: HeldOutPages, rng: np.random.Generator
) -> ModelComparison:
    """Classify the held-out pages with both models; at least one page."""
    truth = np.array(held_out.on_topic, dtype=bool)
    before = [old.classify(page) for page in held_out.pages]
    after = [new.classify(page) for page in held_out.pages]
    gains = _squared_errors(before, truth) - _squared_errors(after, truth)
    low, high = _bootstrap_interval(gains, rng)
    return ModelComparison(
        pages=len(truth),
        old=_make_result(before, truth),
        new=_make_result(after, truth),
        gain=float(gains.mean()),
        low=low,
        high=high,
        neighbours=_join_counts(
            _false_positives_by_category(old, held_out, before),
            _false_positives_by_category(new, held_out, after),
        ),
    )


def _squared_errors(classifications: Sequence[Classification], truth: np.ndarray) -> FloatArray:
    relevance = np.array([one.relevance for one in classifications])
    return np.asarray((relevance - truth) ** 2)


def _bootstrap_interval(gains: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    if len(gains) < 2 or np.ptp(gains) == 0.0:
        return float(gains.min()), float(gains.max())
    drawn = bootstrap(
        (gains,), np.mean, n_resamples=_RESAMPLES, confidence_level=_CONFIDENCE,
        method="percentile", rng=rng,
    )  # fmt: skip
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def _make_result(classifications: Sequence[Classification], truth: np.ndarray) -> ModelResult:
    called = np.array([one.on_topic for one in classifications], dtype=bool)
    return ModelResult(
        n_correct=int((called == truth).sum()),
        false_positives=int((called & ~truth).sum()),
        false_negatives=int((~called & truth).sum()),
        true_positives=int((called & truth).sum()),
        brier=float(_squared_errors(classifications, truth).mean()),
    )


def _false_positives_by_category(
    classifier: TopicClassifier, held_out: HeldOutPages, found: Sequence[Classification]
) -> Counter[str]:
    """Count false positives by their most likely category."""
    return Counter(
        likeliest_category(classifier, page)
        for page, good, one in zip(held_out.pages, held_out.on_topic, found, strict=True)
        if one.on_topic and not good
    )


def _join_counts(old: Counter[str], new: Counter[str]) -> tuple[tuple[str, int, int], ...]:
    """Return the counts by name, most frequent first."""
    names = sorted({*old, *new}, key=lambda name: (-old[name] - new[name], name))
    return tuple((name, old[name], new[name]) for name in names)


def are_equivalent(old: TrainedModel, new: TrainedModel) -> bool:
    """Whether both models classify every page alike: same words, weights and threshold."""
    one, other = old.classifier, new.classifier
    return (
        one.vocabulary.words == other.vocabulary.words
        and one.calibration == other.calibration
        and np.array_equal(one.weights, other.weights)
        and old.report.samples.categories == new.report.samples.categories
    )


@dataclass(frozen=True, slots=True)
class WordChanges:
    """Words gained and lost among the most important ones."""

    gained: tuple[str, ...]
    lost: tuple[str, ...]


def word_changes(old: TrainedModel, new: TrainedModel) -> WordChanges:
    """Return words that only one of the models lists, most important first."""
    before = [word for word, _ in old.report.top_words]
    after = [word for word, _ in new.report.top_words]
    return WordChanges(
        gained=tuple(word for word in after if word not in set(before)),
        lost=tuple(word for word in before if word not in set(after)),
    )


_MAX_SHOWN_WORDS = 15
_MAX_SHOWN_NEIGHBOURS = 8


def render_comparison(
    title: str, at: float, comparison: ModelComparison | None, words: WordChanges
) -> str:
    """Render one changelog entry; ``at`` is in seconds since the epoch."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"## {title}, {when}"]
    if comparison is None:
        parts.append("No pages were held out: there is no verdict on which model is better.")
    else:
        parts += [
            _verdict_sentence(comparison),
            _result_table(comparison),
            _neighbour_table(comparison),
        ]
    parts.append(_word_change_lines(words))
    return "\n\n".join(part for part in parts if part)


def _verdict_sentence(one: ModelComparison) -> str:
    interval = f"{one.gain:+.3f} in Brier score, 95% interval {one.low:+.3f} to {one.high:+.3f}"
    pages = f"{one.pages} labelled pages that neither model was trained on"
    sentence = {
        ComparisonVerdict.BETTER: f"The new model is better on {pages} ({interval})",
        ComparisonVerdict.WORSE: f"The old model is better on {pages} ({interval})",
        ComparisonVerdict.ALIKE: f"Both models agree on {pages}",
        ComparisonVerdict.TOO_FEW: f"Only {pages} ({interval}): too few for a verdict",
    }[one.verdict]
    shown = (
        one.verdict in (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE)
        and not one.is_significant
    )
    return sentence + ("; that may be chance." if shown else ".")


def _result_table(one: ModelComparison) -> str:
    columns = _RESULT_NAMES, _result_row(one.old), _result_row(one.new)
    return markdown_table(("", "old", "new"), list(zip(*columns, strict=True)))


_RESULT_NAMES = (
    "correct",
    "false positives",
    "false negatives",
    "precision",
    "recall",
    "Brier score",
)


def _result_row(one: ModelResult) -> tuple[str, ...]:
    counts = (str(one.n_correct), str(one.false_positives), str(one.false_negatives))
    return (*counts, _format_share(one.precision), _format_share(one.recall), f"{one.brier:.3f}")


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _neighbour_table(one: ModelComparison) -> str:
    if not one.neighbours:
        return ""
    rows = [
        (name or "no category", str(old), str(new))
        for name, old, new in one.neighbours[:_MAX_SHOWN_NEIGHBOURS]
    ]
    return markdown_table(("mistaken for the topic, nearest to", "old", "new"), rows)


def _word_change_lines(words: WordChanges) -> str:
    gained, lost = (", ".join(each[:_MAX_SHOWN_WORDS]) for each in (words.gained, words.lost))
    lines = [f"Words gained: {gained}." if gained else "", f"Words lost: {lost}." if lost else ""]
    return "\n".join(line for line in lines if line) or "The weightiest words are the same."
