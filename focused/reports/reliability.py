"""Were the scores right? What links promised, held against what their pages were.

Of the pages that were fetched with a score near 0.8, four in five should be on
topic. Scores are put into tenths of equal width, the same for every crawl: a
tenth has a name that people understand (0.8 to 0.9), and counts of several
crawls can be added up, which quantiles do not allow.

The diagram is DeGroot's and Fienberg's (The Comparison and Evaluation of
Forecasters, The Statistician 32, 1983), as Niculescu-Mizil and Caruana draw it
(Predicting Good Probabilities with Supervised Learning, ICML 2005).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from focused.reports.metrics import harvest_pages

BIN_COUNT = 10

MIN_BIN_PAGES = 20
"""Pages below which a bin tells nothing: of 19 the share is known to about ±0.2."""

_Z_95 = NormalDist().inv_cdf(0.975)

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Sum = Annotated[float, msgspec.Meta(ge=0)]


class BinCount(NamedTuple):
    """The pages whose score lay in one tenth; counts of several crawls may be added up.

    ``place`` is 0 for scores below 0.1 and 9 for those from 0.9. ``on_topic``
    of the ``pages`` were on topic; ``score_sum`` adds up their scores and
    ``squared_error`` the squares of score less verdict (1 or 0).
    """

    place: Annotated[int, msgspec.Meta(ge=0, lt=BIN_COUNT)]
    pages: _Count
    on_topic: _Count
    score_sum: _Sum
    squared_error: _Sum


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """Pages whose predicted score lay in [``low``, ``high``), the last bin closed.

    ``score`` and ``relevance`` are means over the bin's ``pages``, ``on_topic``
    is the share that the classifier judged on topic, ``by_labels`` the share
    that labels call so (None without labels); all in [0, 1].
    """

    low: float
    high: float
    pages: int
    score: float
    relevance: float
    on_topic: float
    by_labels: float | None


@dataclass(frozen=True, slots=True)
class ScoreErrors:
    """How well scores foretold one classifier's verdicts, each figure in [0, 1], 0 the best.

    ``brier_reference`` is the Brier score of somebody who knew nothing but the
    share on topic and gave it to every link: scores worse than that are no use.
    """

    calibration_error: float
    brier: float
    brier_reference: float


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    """The table of a crawl's scores; empty bins are left out. ``by_labels``: given labels."""

    pages: int
    bins: tuple[ScoreBin, ...]
    judged: ScoreErrors
    by_labels: ScoreErrors | None

    def bin_of(self, score: float) -> ScoreBin | None:
        """The bin that holds ``score``; None when no page was fetched with such a one."""
        low, _ = bin_edges(int(bin_indices([score])[0]))
        return next((each for each in self.bins if each.low == low), None)


def scored_pages(pages: pd.DataFrame) -> pd.DataFrame:
    """The pages that somebody predicted and that count.

    Left out are training samples, copies, and what begins a crawl (depth 0):
    seeds, feeds and what they list, and where their redirects lead.
    """
    counted = harvest_pages(pages)
    told = counted[["parent", "score", "relevance"]].notna().all(axis=1)
    return counted[told & (counted["depth"] > 0) & counted["duplicate_of"].isna()]


def reliability(
    pages: pd.DataFrame, relevant: Collection[str] | None = None
) -> ReliabilityTable | None:
    """The table of the scores in ``pages`` (:data:`PAGES_SCHEMA`'s columns); None without any.

    ``relevant`` are the URLs that labels call on topic: a page without a label is off topic.
    """
    counted = scored_pages(pages)
    if counted.empty:
        return None
    score = counted["score"].to_numpy(dtype=np.float64)
    on_topic = counted["on_topic"].to_numpy(dtype=bool)
    labels = None if relevant is None else counted["url"].isin(list(relevant)).to_numpy(dtype=bool)
    relevance = counted["relevance"].to_numpy(dtype=np.float64)
    bins = tuple(
        ScoreBin(
            *bin_edges(place),
            pages=int(inside.sum()),
            score=float(score[inside].mean()),
            relevance=float(relevance[inside].mean()),
            on_topic=float(on_topic[inside].mean()),
            by_labels=None if labels is None else float(labels[inside].mean()),
        )
        for place, inside in _iterate_bins(score)
    )
    return ReliabilityTable(
        pages=len(counted),
        bins=bins,
        judged=score_errors(count_bins(score, on_topic)),
        by_labels=None if labels is None else score_errors(count_bins(score, labels)),
    )


def bin_indices(scores: ArrayLike) -> NDArray[np.int64]:
    """The bin of each score in [0, 1], shape (n,): 0 to 9."""
    tenths = np.asarray(scores, dtype=np.float64) * BIN_COUNT
    return np.clip(tenths.astype(np.int64), 0, BIN_COUNT - 1)


def bin_edges(place: int) -> tuple[float, float]:
    """Where a bin begins and ends."""
    return place / BIN_COUNT, (place + 1) / BIN_COUNT


def count_bins(scores: NDArray[np.float64], verdicts: NDArray[np.bool_]) -> list[BinCount]:
    """What a run keeps of its scores: ten counts at most, sums to a millionth; shapes (n,)."""
    errors = (scores - verdicts) ** 2
    return [
        BinCount(
            place,
            int(inside.sum()),
            int(verdicts[inside].sum()),
            round(float(scores[inside].sum()), 6),
            round(float(errors[inside].sum()), 6),
        )
        for place, inside in _iterate_bins(scores)
    ]


def score_errors(counts: Sequence[BinCount]) -> ScoreErrors:
    """Calibration error and Brier score of all that was counted; 0 of nothing."""
    pages = max(sum(each.pages for each in counts), 1)
    rate = sum(each.on_topic for each in counts) / pages
    return ScoreErrors(calibration_error(counts), mean_brier_score(counts), rate * (1 - rate))


def calibration_error(counts: Sequence[BinCount]) -> float:
    """The mean distance of score from share on topic, bins weighed by pages, in [0, 1].

    The expected calibration error: Naeini, Cooper, Hauskrecht: Obtaining Well
    Calibrated Probabilities Using Bayesian Binning, AAAI 2015.
    """
    pages = sum(each.pages for each in counts)
    return sum(abs(each.score_sum - each.on_topic) for each in counts) / max(pages, 1)


def mean_brier_score(counts: Sequence[BinCount]) -> float:
    """The mean square of score less verdict (1 or 0), in [0, 1].

    Brier: Verification of Forecasts Expressed in Terms of Probability, Monthly
    Weather Review 78, 1950 (its binary form, half of Brier's own sum).
    """
    pages = sum(each.pages for each in counts)
    return sum(each.squared_error for each in counts) / max(pages, 1)


def _iterate_bins(scores: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Each bin that is not empty, and which scores are in it, shape (n,)."""
    where = bin_indices(scores)
    return ((int(place), where == place) for place in np.unique(where))


def wilson_interval(on_topic: int, pages: int) -> tuple[float, float]:
    """The 95% interval of a share, as Wilson has it (JASA 22, 1927); ``pages`` above 0."""
    # As scipy.stats has it, too, whose import takes most of a second.
    share, doubt = on_topic / pages, _Z_95**2 / pages
    middle = share + doubt / 2.0
    spread = math.sqrt(doubt * (share * (1.0 - share) + doubt / 4.0))
    low, high = ((middle + side) / (1.0 + doubt) for side in (-spread, spread))
    return max(low, 0.0), min(high, 1.0)
