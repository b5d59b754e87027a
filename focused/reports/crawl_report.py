"""Build the report of one crawl as data, with warnings when the classifier drifts off topic.

A crawl follows its classifier, errors included, so the harvest that the classifier counts can stay
high while the true one falls. People label a random sample of pages
(:mod:`focused.labels.label_file`); :mod:`focused.labels.precision_estimate` estimates the harvest,
stratified by the classifier's verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from focused.crawl.crawl_stats import Stage
from focused.errors import StateError
from focused.installed_features import installed_features
from focused.labels.label_file import Label, evaluation_labels, read_labels, role_of
from focused.labels.precision_estimate import (
    MIN_ANSWERS,
    ShareEstimate,
    Stratum,
    estimate_share,
    estimate_stratified_share,
)
from focused.orderings.policy_names import has_probability_scores
from focused.reports import metrics
from focused.reports.crawl_folder import CrawlFolder
from focused.reports.freshness_report import measure_freshness
from focused.reports.reliability import ReliabilityTable, reliability
from focused.web.page import UNRECORDED_HOST

CategoryLabels = Mapping[str, Collection[str]]
"""URL to categories, as in a recorded web's ``labels.tsv``."""

CrawlReport = dict[str, Any]
"""The figures of one crawl by the keys of ``report.json``, see :func:`build_report`."""

_TOP_HOSTS, _BEST_PAGES, _CURVE_POINTS = 10, 10, 200


def report_to_dict(report: CrawlReport) -> dict[str, Any]:
    """Convert the report to plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    return plain


def build_report(crawl: CrawlFolder, labels: CategoryLabels | None = None) -> CrawlReport:
    """Compute the report of one crawl.

    Rates are in [0, 1]; None means unknown. All harvest figures leave out training samples. Links
    count each time they are met. ``labels`` are ground truth.
    """
    labels = usable_labels(crawl, labels)
    pages, stats = crawl.pages, crawl.stats
    counted = metrics.harvest_pages(pages)
    on_topic = counted["on_topic"].to_numpy(dtype=bool)
    so_far, rolling = metrics.cumulative_harvest(on_topic), metrics.rolling_harvest(on_topic)
    outcomes = pages["outcome"].value_counts()
    failures, unrecorded_hosts = _failure_counts(crawl)
    robots_failures = failures.pop("robots", 0)
    duration_s = _duration_s(crawl)
    return {
        "folder": str(crawl.path),
        "topic": str(crawl.topic.get("name", crawl.path.name)),
        "policy": policy_name(crawl),
        "fetched": len(counted),
        "on_topic": int(on_topic.sum()),
        "harvest_rate": metrics.harvest_rate(on_topic),
        "recent_harvest": metrics.harvest_rate(on_topic[-metrics.ROLLING_WINDOW :]),
        "pages_since_on_topic": metrics.count_since_relevant(on_topic),
        "training": int((pages["training"] & (pages["outcome"] == "fetched")).sum()),
        "redirected": int(outcomes.get("redirected", 0)),
        "failures": failures,
        # Links to hosts outside the recorded web; they are no failures.
        "unrecorded_hosts": unrecorded_hosts,
        "hosts": int(counted["host"].nunique()),
        "duplicates": metrics.count_duplicates(pages),
        "near_duplicates": metrics.count_duplicates(pages, kind="near"),
        # A site to the preferred site with the same pages.
        "mirrors": dict(stats.get("mirrors", {})),
        # Crawl-delays above an hour of hosts with links left.
        "long_crawl_delays_s": dict(stats.get("long_crawl_delays", {})),
        "robots_excluded": max(robots_failures, _total(stats, "robots_excluded") or 0),
        "noindex": int(outcomes.get("noindex", 0)),
        "spam": _total(stats, "spam") or 0,
        "nofollow": _total(stats, "nofollow") or 0,
        "links_over_limit": _total(stats, "links_over_limit") or 0,
        # Events of rendering, and the pages of hosts that show nothing without JavaScript.
        "javascript": _most_first(stats.get("javascript", {})),
        "javascript_hosts": _most_first(stats.get("javascript_hosts", {})),
        "out_of_scope": _total(stats, "out_of_scope") or 0,
        "out_of_scope_by": _most_first(stats.get("out_of_scope", {})),
        "frontier": _total(stats, "frontier"),
        "bytes": int(pages["bytes"].fillna(0).sum()),
        "duration_s": duration_s,
        "pages_per_s": len(counted) / duration_s if duration_s > 0 else 0.0,
        "end_reason": str(stats.get("end_reason", "")),
        "by_labels": None
        if labels is None
        else metrics.measure_label_harvest(pages, labels, topic_categories(crawl)),
        "top_hosts": metrics.rank_hosts_by_harvest(pages).head(_TOP_HOSTS).to_dict("records"),
        "best_pages": _most_relevant_pages(counted),
        # Pages fetched from a kind of trap on a host, or on *. and a domain, and links refused.
        "traps": [
            {**each, "kind": each["kind"].removeprefix("trap: ")} for each in stats.get("traps", [])
        ],
        "reliability": _crawl_reliability(crawl, labels),
        "drift": measure_drift(pages, _human_labels(crawl)),
        "freshness": None if crawl.visits.empty else measure_freshness(crawl),
        # Of the last session; None unless it ended normally.
        "time_profile": read_time_profile(stats),
        # Pages fetched, cumulative and rolling harvest rate.
        "curve": [
            (int(i) + 1, round(float(so_far[i]), 4), round(float(rolling[i]), 4))
            for i in metrics.sample_indices(on_topic.size, _CURVE_POINTS)
        ],
        "features": [
            line
            for name, feature in installed_features().items()
            if feature.report is not None and isinstance(found := stats.get(name), dict)
            for line in feature.report(found)
        ],
    }


def policy_name(crawl: CrawlFolder) -> str:
    """The policy that ordered the crawl, from its settings or else its pages."""
    policy = crawl.settings.get("policy")
    if policy:
        return str(policy)
    used = crawl.pages["policy"].dropna()
    return str(used.iloc[-1]) if len(used) else ""


def topic_categories(crawl: CrawlFolder) -> list[str]:
    """The topic's own good categories. Raises :class:`StateError` without any."""
    good = crawl.topic.get("training", {}).get("good")
    if not good:
        raise StateError(
            f"{crawl.path / 'settings.json'}: topic.training.good is missing; labels cannot be "
            "used without the categories that are the topic"
        )
    return list(good)


def usable_labels(crawl: CrawlFolder, labels: CategoryLabels | None) -> CategoryLabels | None:
    """Return ``labels``, or None when none is of a good category: they belong to other topics."""
    if not labels or not metrics.select_relevant_urls(labels, topic_categories(crawl)):
        return None
    return labels


def _crawl_reliability(
    crawl: CrawlFolder, labels: CategoryLabels | None
) -> ReliabilityTable | None:
    """None where no page was scored or the policy's scores are no probabilities."""
    if not has_probability_scores(policy_name(crawl)):
        return None
    if labels is None:
        return reliability(crawl.pages)
    relevant = metrics.select_relevant_urls(labels, topic_categories(crawl))
    return reliability(crawl.pages, {url: url in relevant for url in labels})


def _human_labels(crawl: CrawlFolder) -> tuple[Any, ...]:
    path = crawl.topic.get("training", {}).get("labels")
    return read_labels(Path(path)) if path else ()


def _most_relevant_pages(counted: pd.DataFrame) -> list[dict[Any, Any]]:
    first = counted[counted["relevance"].notna() & counted["duplicate_of"].isna()]
    best = first.sort_values("relevance", ascending=False, kind="stable").head(_BEST_PAGES)
    rows: list[dict[Any, Any]] = (
        best[["url", "title", "relevance"]].fillna({"title": ""}).to_dict("records")
    )
    return rows


def _failure_counts(crawl: CrawlFolder) -> tuple[dict[str, int], int]:
    """Count failed URLs by kind, most frequent first, and links that leave the recorded web.

    Links refused before a request are counted without rows, and the counters of a killed crawl are
    behind its rows: the larger of both counts.
    """
    rows, counts = metrics.count_failures(crawl.pages), crawl.stats.get("failures", {})
    both = {kind: max(rows.get(kind, 0), counts.get(kind, 0)) for kind in [*rows, *counts]}
    outside = 0
    if crawl.settings.get("replay"):
        outside = max(both.pop(UNRECORDED_HOST, 0), _total(crawl.stats, "unrecorded_hosts") or 0)
    return _most_first(both), outside


def _duration_s(crawl: CrawlFolder) -> float:
    """Running time over all sessions, else from start to end, else between first and last page."""
    stats = crawl.stats
    if "active_s" in stats:
        return float(stats["active_s"])
    if "started_at" in stats and "ended_at" in stats:
        return max(float(stats["ended_at"] - stats["started_at"]), 0.0)
    fetched_at = crawl.pages["fetched_at"].dropna()
    return float(fetched_at.max() - fetched_at.min()) if len(fetched_at) else 0.0


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def _total(stats: Mapping[str, Any], counter: str) -> int | None:
    """A counter of ``stats.json``, summed over its reasons if it has any."""
    value = stats.get(counter)
    if value is None:
        return None
    return sum(value.values()) if isinstance(value, dict) else int(value)


OTHER_STAGES = "Scrapy, HTTP, the rest"
_BUSY_SHARE = 0.7
_PARSING_STAGES = (Stage.PARSING, Stage.CLASSIFYING, Stage.DEDUPLICATING)


def read_time_profile(stats: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the profile of ``stats.json``, slowest stage first.

    None without pages, and for a profile of another version. ``busy`` is the share of the time
    that the crawl's process used a core, ``parsed_elsewhere`` the share of pages parsed by other
    ``processes``, both in [0, 1]. ``blocked_s`` is the longest time the reactor was blocked,
    ``blocked_count`` how often it was for more than ``blocked_threshold_s``.
    """
    profile = stats.get("profile")
    try:
        if not profile or not profile["pages"] or not profile["elapsed_s"] > 0:
            return None
        pages, blocked = int(profile["pages"]), profile["reactor_blocked"]
        seconds = pd.Series(profile["stages"], dtype=float)
        in_this_process = seconds.sum() - profile["parser_process_s"]
        seconds[OTHER_STAGES] = max(0.0, profile["cpu_s"] - in_this_process)
        seconds = seconds.sort_values(ascending=False, kind="stable")
        busy = min(1.0, profile["cpu_s"] / profile["elapsed_s"])
        return {
            "pages": pages,
            "busy": busy,
            "stages": [
                {
                    "stage": stage,
                    "ms_per_page": 1000 * took / pages,
                    "share": took / (float(seconds.sum()) or 1.0),
                }
                for stage, took in seconds.items()
            ],
            "processes": int(profile["parser_processes"]),
            "parsed_elsewhere": profile["pages_parsed_in_processes"] / pages,
            "blocked_s": blocked["longest_s"],
            "blocked_count": blocked["times"],
            "blocked_threshold_s": blocked["threshold_s"],
            "bottleneck": _bottleneck(busy, seconds),
        }
    except (KeyError, TypeError):
        return None


def _bottleneck(busy: float, seconds: pd.Series[float]) -> str:
    if busy < _BUSY_SHARE:
        return "the network and the hosts' delays"
    is_parsing = np.isin(seconds.index, _PARSING_STAGES)
    work = seconds.groupby(np.where(is_parsing, "parsing pages", seconds.index)).sum()
    return f"the CPU: {work.idxmax()} takes most"


_SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ClassifierDrift:
    """The harvest according to human labels beside the classifier's own.

    ``sampled`` pages belong to the evaluation set, ``labelled`` of them have a label.
    ``harvest_by_classifier`` in [0, 1] leaves duplicates out. ``harvest`` and ``precision`` come
    from labels, None without enough of them. ``precision_by_half`` holds (good, labelled) counts of
    the pages called on topic in the first and in the second half of the crawl. ``warnings`` are
    sentences.
    """

    sampled: int
    labelled: int
    harvest_by_classifier: float
    harvest: ShareEstimate | None
    precision: ShareEstimate | None
    precision_by_half: tuple[tuple[int, int], tuple[int, int]]
    warnings: tuple[str, ...]


def measure_drift(pages: pd.DataFrame, labels: Iterable[Label]) -> ClassifierDrift | None:
    """Compare ``pages``, in the order they were settled, with ``labels``; None without classified
    pages.

    ``pages`` has the columns of :data:`focused.archive.parquet.PAGES_SCHEMA`. Training samples,
    duplicates and unclassified pages are ignored, and so are labels outside the evaluation set.
    """
    is_classified = (pages["outcome"] == "fetched") & pages["relevance"].notna()
    classified = pages[is_classified & ~pages["training"] & pages["duplicate_of"].isna()]
    if classified.empty:
        return None
    is_good = {label.url: label.verdict == "yes" for label in evaluation_labels(labels)}
    frame = pd.DataFrame(
        {
            "on_topic": classified["on_topic"].to_numpy(dtype=bool),
            "drawn": [role_of(url) == "evaluation" for url in classified["url"]],
            "good": [is_good.get(url) for url in classified["url"]],
        }
    )
    on_topic, off_topic = (
        _stratum_of(frame[frame["on_topic"]]),
        _stratum_of(frame[~frame["on_topic"]]),
    )
    middle = len(frame) // 2
    precision_by_half = _precision_counts(frame[:middle]), _precision_counts(frame[middle:])
    harvest_by_classifier = float(frame["on_topic"].mean())
    harvest = estimate_stratified_share([on_topic, off_topic])
    return ClassifierDrift(
        sampled=int(frame["drawn"].sum()),
        labelled=on_topic.drawn + off_topic.drawn,
        harvest_by_classifier=harvest_by_classifier,
        harvest=harvest,
        precision=estimate_share(on_topic),
        precision_by_half=precision_by_half,
        warnings=tuple(_drift_warnings(harvest_by_classifier, harvest, precision_by_half)),
    )


def _stratum_of(part: pd.DataFrame) -> Stratum:
    labelled = part["good"].dropna()
    return Stratum(len(part), len(labelled), int(labelled.sum()))


def _precision_counts(part: pd.DataFrame) -> tuple[int, int]:
    called = _stratum_of(part[part["on_topic"]])
    return called.good, called.drawn


def _drift_warnings(
    harvest_by_classifier: float,
    harvest: ShareEstimate | None,
    precision_by_half: Sequence[tuple[int, int]],
) -> Iterable[str]:
    if harvest is not None and harvest.drawn >= MIN_ANSWERS:
        if harvest_by_classifier > harvest.high:
            yield (
                f"the classifier calls {harvest_by_classifier:.0%} of the pages on topic, people "
                "at most "
                f"{harvest.high:.0%}: it accepts pages off topic"
            )
        if harvest_by_classifier < harvest.low:
            yield (
                f"the classifier calls {harvest_by_classifier:.0%} of the pages on topic, people "
                "at least "
                f"{harvest.low:.0%}: it misses pages on topic"
            )
    (early, early_of), (late, late_of) = precision_by_half
    if early_of + late_of < MIN_ANSWERS or not early_of or not late_of:
        return
    from scipy.stats import fisher_exact  # slow to import and rarely needed

    table = [[early, early_of - early], [late, late_of - late]]
    if fisher_exact(table, alternative="greater").pvalue < _SIGNIFICANCE_LEVEL:
        yield (
            f"of the pages called on topic {early}/{early_of} were on topic in the crawl's first "
            "half, "
            f"{late}/{late_of} in its second: the crawl is drifting away from the topic"
        )
