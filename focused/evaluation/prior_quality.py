"""How well a link prior ranks the links of a web, above all of one it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from focused.evaluation.reliability import bin_counts, calibration_error
from focused.learning.calibration import expit
from focused.learning.evidence import COLUMN
from focused.learning.link_prior import PriorFile
from focused.learning.prior_fitting import LoggedRun, log_odds, runs_with_both

Rank = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Evidence of n links, shape (n, features), to what ranks them, shape (n,), the best largest."""


@dataclass(frozen=True)
class WebQuality:
    """The figures of one web, all in [0, 1]; ``runs`` and ``examples`` were logged on it.

    ``on_topic`` is the share of the examples that was. The AUCs are means over
    runs: how often a link to a page on topic was ranked before another of the
    same run; None without a run that has both. ``left_out`` is of the prior
    fitted on the other webs, ``all_webs`` of that which knows this one;
    ``url`` and ``parent`` of these features alone. Calibration errors as in
    :mod:`focused.evaluation.reliability`, over all examples.
    """

    web: str
    topics: int
    runs: int
    examples: int
    on_topic: float
    left_out: float | None
    all_webs: float | None
    url: float | None
    parent: float | None
    left_out_error: float
    all_webs_error: float


def web_quality(runs: Sequence[LoggedRun], left_out: PriorFile, all_webs: PriorFile) -> WebQuality:
    """The figures of the web that ``runs``, at least one, were logged on."""
    labels = np.concatenate([run.on_topic for run in runs])
    return WebQuality(
        web=runs[0].web,
        topics=len({run.topic for run in runs}),
        runs=len(runs),
        examples=len(labels),
        on_topic=float(labels.mean()),
        left_out=auc_within_runs(runs, lambda rows: log_odds(left_out, rows)),
        all_webs=auc_within_runs(runs, lambda rows: log_odds(all_webs, rows)),
        url=auc_within_runs(runs, _by_feature("url")),
        parent=auc_within_runs(runs, _by_feature("parent")),
        left_out_error=_error(runs, left_out),
        all_webs_error=_error(runs, all_webs),
    )


def auc_within_runs(runs: Sequence[LoggedRun], rank: Rank) -> float | None:
    """The area under ROC, mean over runs with both kinds of links; None without such a run."""
    areas = [roc_auc_score(run.on_topic, rank(run.rows)) for run in runs_with_both(runs)]
    return float(np.mean(areas)) if areas else None


def by_web(runs: Sequence[LoggedRun]) -> Mapping[str, list[LoggedRun]]:
    """The runs of each web, in the order of their first."""
    found: dict[str, list[LoggedRun]] = {}
    for run in runs:
        found.setdefault(run.web, []).append(run)
    return found


def _by_feature(name: str) -> Rank:
    return lambda rows: rows[:, COLUMN[name]]


def _error(runs: Sequence[LoggedRun], prior: PriorFile) -> float:
    scores = np.concatenate([expit(log_odds(prior, run.rows)) for run in runs])
    labels = np.concatenate([run.on_topic for run in runs])
    return float(calibration_error(bin_counts(scores, labels)))
