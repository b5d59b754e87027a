"""Measure one run: the record that an experiment keeps of it."""

from __future__ import annotations

import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.orderings.policy_names import has_probability_scores
from focused.reports.metrics import cumulative_harvest, harvest_pages, harvest_rate, sample_indices
from focused.reports.reliability import count_bins, scored_pages
from focused_lab.experiment_plan import Trial
from focused_lab.ground_truth import GroundTruth

RunRecord = dict[str, Any]
"""A run as JSON data, fields as in :class:`focused_lab.analysis.comparison_runs.Run`."""

_CURVE_POINTS = 100


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The costs of a run, None if not measured. ``simulated_s`` passed on the simulated clock."""

    simulated_s: float | None
    cpu_s: float | None
    peak_mb: float | None


def make_run_record(
    trial: Trial, ground_truth: GroundTruth, pages: pd.DataFrame, end_reason: str, spent: RunCosts
) -> RunRecord:
    """Evaluate a run. ``pages`` has the archive's columns, in the order they were settled."""
    is_relevant = ground_truth.relevance_of(pages)
    found, relevant = int(is_relevant.sum()), ground_truth.relevant_count
    return {
        **{name: value for name, value in asdict(trial).items() if name != "start"},
        "fetched": int(is_relevant.size),
        "on_topic": found,
        "relevant": relevant,
        "reachable": ground_truth.count_reachable(trial.start),
        "harvest": harvest_rate(is_relevant),
        "recall": found / relevant,
        "area": area_under_harvest(is_relevant, trial.budget),
        "hosts": ground_truth.count_hosts(pages),
        "crawl_and_stop": found / min(trial.budget, relevant),
        "crawl_and_stop_threshold": hot_page_recall(ground_truth, pages),
        "half_recall_pages": pages_to_half_recall(is_relevant, relevant),
        **classifier_measures(ground_truth, pages),
        "score_bins": bin_scores(trial.policy, ground_truth, pages),
        "end_reason": end_reason,
        **asdict(spent),
        "curve": harvest_curve(is_relevant),
    }


def area_under_harvest(is_relevant: NDArray[np.bool_], budget: int) -> float:
    """Mean harvest rate of the first n pages over n = 1..budget, in [0, 1].

    An unspent budget counts as off topic.
    """
    padded = np.zeros(budget, dtype=bool)
    padded[: is_relevant.size] = is_relevant[:budget]
    return float(cumulative_harvest(padded).mean())


def pages_to_half_recall(is_relevant: NDArray[np.bool_], relevant: int) -> int | None:
    """Pages fetched until half of the ``relevant`` ones were found; None if never."""
    reached = np.flatnonzero(np.cumsum(is_relevant) * 2 >= relevant)
    return int(reached[0]) + 1 if reached.size and relevant else None


def hot_page_recall(ground_truth: GroundTruth, pages: pd.DataFrame) -> float | None:
    """Fetched share of the topic's hot pages; None without any.

    Crawl and stop with threshold (Cho, Garcia-Molina, Page 1998, section 4).
    """
    hot = ground_truth.hot_pages
    ends = {ground_truth.resolve_url(url) for url in harvest_pages(pages)["url"]}
    return len(hot & ends) / len(hot) if hot else None


def classifier_measures(ground_truth: GroundTruth, pages: pd.DataFrame) -> dict[str, float | None]:
    """The classifier's own harvest, precision and recall on the counted pages.

    ``classifier_harvest`` is the share it calls on topic, each content once;
    ``classifier_precision`` and ``classifier_recall`` are against labels. None where undefined.
    """
    counted = harvest_pages(pages)
    counted = counted[counted["duplicate_of"].isna()]
    called_on_topic = counted["on_topic"].to_numpy(dtype=bool)
    relevant = np.fromiter((ground_truth.is_relevant(url) for url in counted["url"]), dtype=bool)
    both, fetched = int((called_on_topic & relevant).sum()), len(harvest_pages(pages))
    return {
        "classifier_harvest": _ratio(int(called_on_topic.sum()), fetched),
        "classifier_precision": _ratio(both, int(called_on_topic.sum())),
        "classifier_recall": _ratio(both, int(relevant.sum())),
    }


def bin_scores(
    policy: str, ground_truth: GroundTruth, pages: pd.DataFrame
) -> list[list[float]] | None:
    """Count scores before the fetch against labels by bin; None if they are no probabilities.

    Each item is a :class:`focused.reports.reliability.BinCount`. Seeds, feeds, training pages,
    duplicates and pages without a label are left out: labels miss pages, so a page without one
    says nothing about its score.
    """
    if not has_probability_scores(policy):
        return None
    counted = scored_pages(pages)
    relevance = [ground_truth.known_relevance(url) for url in counted["url"]]
    is_labelled = np.array([each is not None for each in relevance], dtype=bool)
    scores = counted["score"].to_numpy(np.float64)[is_labelled]
    relevant = np.array([each for each in relevance if each is not None], dtype=bool)
    return [list(each) for each in count_bins(scores, relevant)]


def harvest_curve(is_relevant: NDArray[np.bool_]) -> list[list[int]]:
    """At most 100 pairs (fetched, on topic), the last one at the end."""
    found = np.cumsum(is_relevant)
    shown = sample_indices(is_relevant.size, _CURVE_POINTS)
    return [[int(place) + 1, int(found[place])] for place in shown]


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"


def reset_peak() -> None:
    """Reset the peak, where the system can."""
    try:
        (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return


def peak_mb(process: Path = _PROCESS) -> float | None:
    """Peak resident memory in MB (10**6 bytes) since the reset, or since the process started.

    ``process`` is a folder of procfs; None for another process without one.
    """
    try:
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    if process != _PROCESS:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
