"""Calibration of link scores: compare predicted scores with the share of pages on topic.

Of the pages fetched with a score near 0.8, four in five should be on topic. Ten bins of equal width
are easy to name (0.8 to 0.9), and their counts can be added up over crawls, unlike quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from focused.reports.metrics import harvest_pages

BIN_COUNT = 10

MIN_BIN_PAGES = 20
"""Bins with fewer pages are not interpreted: of 19 pages the share is known to about ±0.2."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Sum = Annotated[float, msgspec.Meta(ge=0)]


class BinCount(NamedTuple):
    """Counts of one bin, summable over crawls.

    ``place`` is the bin: 0 for scores below 0.1, 9 from 0.9 on. ``score_sum`` adds up the pages'
    scores, ``squared_error`` the squares of score minus outcome (1 or 0).
    """

    place: Annotated[int, msgspec.Meta(ge=0, lt=BIN_COUNT)]
    pages: _Count
    on_topic: _Count
    score_sum: _Sum
    squared_error: _Sum


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """Pages with a predicted score in [``low``, ``high``), the last bin closed.

    ``score`` and ``relevance`` are means over the ``pages``; ``on_topic`` is the share on topic by
    the classifier. Of the ``labelled`` pages ``label_score`` is the mean score and ``by_labels``
    the share on topic, None without any. All are in [0, 1].
    """

    low: float
    high: float
    pages: int
    score: float
    relevance: float
    on_topic: float
    labelled: int
    label_score: float | None
    by_labels: float | None


@dataclass(frozen=True, slots=True)
class ScoreErrors:
    """Errors of scores against outcomes, each in [0, 1], 0 is best.

    ``calibration_error`` is the expected one (Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated
    Probabilities Using Bayesian Binning, AAAI 2015), ``brier`` the mean squared error (Brier:
    Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 78, 1950;
    binary form, half of Brier's sum). ``brier_reference`` is that of a constant prediction, the
    share on topic: worse scores are useless.
    """

    calibration_error: float
    brier: float
    brier_reference: float


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    """The bins of a crawl's scores, empty ones left out, with errors by classifier and by
    labels.
    """

    pages: int
    bins: tuple[ScoreBin, ...]
    by_classifier: ScoreErrors
    by_labels: ScoreErrors | None

    def bin_of(self, score: float) -> ScoreBin | None:
        """The bin of ``score``; None when it is empty."""
        low, _ = bin_edges(int(bin_indices([score])[0]))
        return next((each for each in self.bins if each.low == low), None)


def scored_pages(pages: pd.DataFrame) -> pd.DataFrame:
    """Select the pages with a predicted score that count.

    Training samples, duplicates and pages of depth 0 (seeds, feeds and their entries, with
    redirects) are left out.
    """
    counted = harvest_pages(pages)
    known = counted[["parent", "score", "relevance"]].notna().all(axis=1)
    return counted[known & (counted["depth"] > 0) & counted["duplicate_of"].isna()]


def reliability(
    pages: pd.DataFrame, labels: Mapping[str, bool] | None = None
) -> ReliabilityTable | None:
    """Bin the scores of ``pages`` (columns of :data:`PAGES_SCHEMA`); None without any.

    ``labels`` tell by URL whether a page is on topic; pages without a label count by the classifier
    only.
    """
    counted = scored_pages(pages)
    if counted.empty:
        return None
    scores = counted["score"].to_numpy(dtype=np.float64)
    on_topic = counted["on_topic"].to_numpy(dtype=bool)
    frame = counted[["score", "relevance", "on_topic"]].assign(
        label=counted["url"].map(labels or {}).astype(float)
    )
    known = frame["label"].notna().to_numpy()
    by_labels = None
    if known.any():
        by_labels = score_errors(count_bins(scores[known], frame["label"].eq(1).to_numpy()[known]))
    return ReliabilityTable(
        pages=len(counted),
        bins=tuple(_score_bin(place, frame[inside]) for place, inside in _iterate_bins(scores)),
        by_classifier=score_errors(count_bins(scores, on_topic)),
        by_labels=by_labels,
    )


def _score_bin(place: int, pages: pd.DataFrame) -> ScoreBin:
    labelled = pages[pages["label"].notna()]
    return ScoreBin(
        *bin_edges(place),
        pages=len(pages),
        score=float(pages["score"].mean()),
        relevance=float(pages["relevance"].mean()),
        on_topic=float(pages["on_topic"].mean()),
        labelled=len(labelled),
        label_score=float(labelled["score"].mean()) if len(labelled) else None,
        by_labels=float(labelled["label"].mean()) if len(labelled) else None,
    )


def bin_indices(scores: ArrayLike) -> NDArray[np.int64]:
    """The bin of each score in [0, 1], shape (n,): 0 to 9."""
    tenths = np.asarray(scores, dtype=np.float64) * BIN_COUNT
    return np.clip(tenths.astype(np.int64), 0, BIN_COUNT - 1)


def bin_edges(place: int) -> tuple[float, float]:
    """Lower and upper edge of a bin."""
    return place / BIN_COUNT, (place + 1) / BIN_COUNT


def count_bins(scores: NDArray[np.float64], on_topic: NDArray[np.bool_]) -> list[BinCount]:
    """Count ``scores`` and ``on_topic``, shapes (n,), by bin; sums rounded to a millionth."""
    errors = (scores - on_topic) ** 2
    return [
        BinCount(
            place,
            int(inside.sum()),
            int(on_topic[inside].sum()),
            round(float(scores[inside].sum()), 6),
            round(float(errors[inside].sum()), 6),
        )
        for place, inside in _iterate_bins(scores)
    ]


def score_errors(counts: Sequence[BinCount]) -> ScoreErrors:
    """Calibration error and Brier scores of ``counts``; 0 without pages."""
    pages = max(sum(each.pages for each in counts), 1)
    rate = sum(each.on_topic for each in counts) / pages
    return ScoreErrors(
        calibration_error=sum(abs(each.score_sum - each.on_topic) for each in counts) / pages,
        brier=sum(each.squared_error for each in counts) / pages,
        brier_reference=rate * (1 - rate),
    )


def _iterate_bins(scores: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Iterate over the non-empty bins with a mask of their scores, shape (n,)."""
    where = bin_indices(scores)
    return ((int(place), where == place) for place in np.unique(where))
