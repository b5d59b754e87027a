"""What one run was worth: the row that an examination keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.evaluation.examination.plan import Trial
from focused.evaluation.examination.referee import Referee
from focused.evaluation.metrics import cumulative_harvest, harvest_pages, harvest_rate, thinned
from focused.evaluation.reliability import bin_counts, predicted_pages
from focused.policies.probabilities import predicts_probabilities

Row = dict[str, Any]
"""One run as JSON-able data; :class:`focused.evaluation.findings.runs.Run` has the fields."""

_CURVE_POINTS = 100


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run cost; None: not measured. ``simulated_s`` passed on a simulated clock."""

    simulated_s: float | None
    cpu_s: float | None
    peak_mb: float | None


def row_of(
    trial: Trial, referee: Referee, pages: pd.DataFrame, ended_because: str, spent: Spent
) -> Row:
    """Judge a run. ``pages`` has the archive's columns, in the order of settling."""
    verdicts = referee.verdicts(pages)
    found, relevant = int(verdicts.sum()), referee.to_find
    return {
        "web": trial.web,
        "topic": trial.topic,
        "policy": trial.policy,
        "seeds": trial.seeds,
        "repeat": trial.repeat,
        "budget": trial.budget,
        "host_cap": trial.host_cap,
        "fetched": int(verdicts.size),
        "on_topic": found,
        "relevant": relevant,
        "harvest": harvest_rate(verdicts),
        "recall": found / relevant,
        "area": area_under(verdicts, trial.budget),
        "hosts": referee.hosts(pages),
        "crawl_and_stop": found / min(trial.budget, relevant),
        "crawl_and_stop_threshold": hot_share(referee, pages),
        "half_recall_pages": pages_to_half(verdicts, relevant),
        **judges_own(referee, pages),
        "score_bins": score_bins(trial.policy, referee, pages),
        "ended_because": ended_because,
        "simulated_s": spent.simulated_s,
        "cpu_s": spent.cpu_s,
        "peak_mb": spent.peak_mb,
        "curve": curve(verdicts),
    }


def area_under(verdicts: NDArray[np.bool_], budget: int) -> float:
    """Mean over n = 1..budget of the share on topic of the first n pages, in [0, 1].

    What a run left of its budget counts as pages off topic.
    """
    padded = np.zeros(budget, dtype=bool)
    padded[: verdicts.size] = verdicts[:budget]
    return float(cumulative_harvest(padded).mean())


def pages_to_half(verdicts: NDArray[np.bool_], relevant: int) -> int | None:
    """How many pages were fetched when half of the ``relevant`` ones were found, if ever."""
    reached = np.flatnonzero(np.cumsum(verdicts) * 2 >= relevant)
    return int(reached[0]) + 1 if reached.size and relevant else None


def hot_share(referee: Referee, pages: pd.DataFrame) -> float | None:
    """The share of the topic's hot pages that was fetched; None of no hot page.

    Crawl and stop with threshold (Cho, Garcia-Molina, Page 1998, section 4).
    """
    hot = referee.hot
    ends = {referee.end_of(url) for url in harvest_pages(pages)["url"]}
    return len(hot & ends) / len(hot) if hot else None


def judges_own(referee: Referee, pages: pd.DataFrame) -> dict[str, float | None]:
    """What the topic's classifier makes of the pages that count.

    ``judge_harvest`` is the share it calls on topic, content once as with
    labels; ``judge_precision`` the share of those that labels agree with;
    ``judge_recall`` the share it finds of those that labels call on topic.
    None where nothing is called so.
    """
    counted = harvest_pages(pages)
    counted = counted[counted["duplicate_of"].isna()]
    judged = counted["on_topic"].to_numpy(dtype=bool)
    labelled = np.fromiter((referee.is_relevant(url) for url in counted["url"]), dtype=bool)
    both, fetched = int((judged & labelled).sum()), len(harvest_pages(pages))
    return {
        "judge_harvest": _share(int(judged.sum()), fetched),
        "judge_precision": _share(both, int(judged.sum())),
        "judge_recall": _share(both, int(labelled.sum())),
    }


def score_bins(policy: str, referee: Referee, pages: pd.DataFrame) -> list[list[float]] | None:
    """Scores before the fetch against labels, ten counts at most; None: they are no probabilities.

    Each is a :class:`focused.evaluation.reliability.BinCount`. Seeds, feeds,
    training pages and copies have no part.
    """
    if not predicts_probabilities(policy):
        return None
    counted = predicted_pages(pages)
    labelled = np.fromiter((referee.is_relevant(url) for url in counted["url"]), dtype=bool)
    return [list(each) for each in bin_counts(counted["score"].to_numpy(np.float64), labelled)]


def curve(verdicts: NDArray[np.bool_]) -> list[list[int]]:
    """At most 100 pairs (fetched, on topic), the last one at the end."""
    found = np.cumsum(verdicts)
    shown = thinned(verdicts.size, _CURVE_POINTS)
    return [[int(place) + 1, int(found[place])] for place in shown]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
