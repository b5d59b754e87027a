"""Build the report of one crawl as data."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.crawl.crawl_stats import Stage
from focused.errors import StateError
from focused.files import write_atomically
from focused.installed_features import installed_features
from focused.labels.label_file import Label, read_labels
from focused.orderings.policy_names import has_probability_scores
from focused.reports import metrics
from focused.reports.classifier_drift import ClassifierDrift, measure_drift
from focused.reports.crawl_folder import CrawlFolder, read_crawl
from focused.reports.freshness_report import FreshnessReport, measure_freshness
from focused.reports.reliability import ReliabilityTable, reliability
from focused.web.page import UNRECORDED_HOST

if TYPE_CHECKING:
    from focused.link_graph.measures import LinkReport

CategoryLabels = Mapping[str, Collection[str]]
"""URL to categories, as in a recorded web's ``labels.tsv``."""

_TOP_HOSTS, _BEST_PAGES, _CURVE_POINTS = 10, 10, 200


@dataclass(frozen=True, slots=True)
class BestPage:
    """A page with a high relevance, in [0, 1]."""

    url: str
    title: str
    relevance: float


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """The figures of one crawl. Rates are in [0, 1]; None means unknown.

    All harvest figures leave out training samples, which ``training`` counts. ``unrecorded_hosts``
    counts links to hosts outside the recorded web, which are no ``failures``. ``by_labels`` is the
    harvest by ground-truth labels, if given. ``noindex`` pages were fetched and dropped as they
    ask, ``spam`` pages are probably spam, ``nofollow`` links not followed, ``links_over_limit``
    exceed the links taken of a page; links count each time they are met. ``javascript`` counts the
    events of rendering, ``javascript_hosts`` the pages of hosts that show nothing without
    JavaScript. ``long_crawl_delays_s`` lists crawl-delays above an hour of hosts with links left.
    ``mirrors`` maps a site to the preferred site with the same pages. ``reliability`` is None where
    no page was scored or the policy's scores are no probabilities. ``freshness`` is None where no
    page was visited again, ``links`` without a link graph. ``drift`` is None where no page was
    classified, ``time_profile`` (of the last session) where the crawl did not end normally.
    ``curve`` has rows of pages fetched, cumulative and rolling harvest rate. ``features`` has the
    names and values that installed features tell of their statistics.
    """

    folder: str
    topic: str
    policy: str
    fetched: int
    on_topic: int
    harvest_rate: float
    recent_harvest: float
    pages_since_on_topic: int
    training: int
    redirected: int
    failures: Mapping[str, int]
    unrecorded_hosts: int
    hosts: int
    duplicates: int
    near_duplicates: int
    mirrors: Mapping[str, str]
    long_crawl_delays_s: Mapping[str, float]
    robots_excluded: int
    noindex: int
    spam: int
    nofollow: int
    links_over_limit: int
    javascript: Mapping[str, int]
    javascript_hosts: Mapping[str, int]
    out_of_scope: int
    out_of_scope_by: Mapping[str, int]
    frontier: int | None
    bytes: int
    duration_s: float
    pages_per_s: float
    end_reason: str
    by_labels: metrics.LabelHarvest | None
    top_hosts: list[metrics.HostHarvest] = field(default_factory=list)
    best_pages: list[BestPage] = field(default_factory=list)
    traps: list[TrapLosses] = field(default_factory=list)
    reliability: ReliabilityTable | None = None
    drift: ClassifierDrift | None = None
    freshness: FreshnessReport | None = None
    links: LinkReport | None = None
    time_profile: TimeProfile | None = None
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    features: list[tuple[str, str]] = field(default_factory=list)


def report_as_dict(
    folder: Path, labels: CategoryLabels | None = None, good: Collection[str] | None = None
) -> dict[str, Any]:
    """Read the crawl in ``folder`` and return its report as JSON-serialisable data.

    ``good`` overrides the topic's own good categories. Raises :class:`StateError` when the folder
    is missing, foreign or damaged.
    """
    return report_to_dict(build_report(read_crawl(folder), labels, good))


def report_to_dict(report: CrawlReport) -> dict[str, Any]:
    """Convert the report to plain data."""
    plain: dict[str, Any] = asdict(report)
    return plain


def write_report(report: CrawlReport, path: Path) -> None:
    """Write the report as JSON. Raises OSError."""
    write_atomically(
        path, f"{json.dumps(report_to_dict(report), indent=1, allow_nan=False)}\n".encode()
    )


def build_report(
    crawl: CrawlFolder, labels: CategoryLabels | None = None, good: Collection[str] | None = None
) -> CrawlReport:
    """Compute the report of one crawl."""
    labels = usable_labels(crawl, labels, good)
    pages = crawl.pages
    counted = metrics.harvest_pages(pages)
    on_topic = counted["on_topic"].to_numpy(dtype=bool)
    failures, unrecorded_hosts = _failure_counts(crawl)
    duration_s = _duration_s(crawl)
    return CrawlReport(
        folder=str(crawl.path),
        topic=str(crawl.topic.get("name", crawl.path.name)),
        policy=policy_name(crawl),
        fetched=len(counted),
        on_topic=int(on_topic.sum()),
        harvest_rate=metrics.harvest_rate(on_topic),
        recent_harvest=metrics.harvest_rate(on_topic[-metrics.ROLLING_WINDOW :]),
        pages_since_on_topic=metrics.count_since_relevant(on_topic),
        training=int((pages["training"] & (pages["outcome"] == "fetched")).sum()),
        redirected=int((pages["outcome"] == "redirected").sum()),
        failures={kind: count for kind, count in failures.items() if kind != "robots"},
        unrecorded_hosts=unrecorded_hosts,
        hosts=int(counted["host"].nunique()),
        duplicates=metrics.count_duplicates(pages),
        near_duplicates=metrics.count_duplicates(pages, kind="near"),
        mirrors=_mirror_pairs(crawl),
        long_crawl_delays_s=_long_delays_s(crawl),
        robots_excluded=max(
            failures.get("robots", 0), _counter_total(crawl, "robots_excluded") or 0
        ),
        noindex=int((pages["outcome"] == "noindex").sum()),
        spam=_counter_total(crawl, "spam") or 0,
        nofollow=_counter_total(crawl, "nofollow") or 0,
        links_over_limit=_counter_total(crawl, "links_over_limit") or 0,
        javascript=_count_by_reason(crawl, "javascript"),
        javascript_hosts=_count_by_reason(crawl, "javascript_hosts"),
        out_of_scope=_counter_total(crawl, "out_of_scope") or 0,
        out_of_scope_by=_count_by_reason(crawl, "out_of_scope"),
        frontier=_counter_total(crawl, "frontier"),
        bytes=int(pages["bytes"].fillna(0).sum()),
        duration_s=duration_s,
        pages_per_s=len(counted) / duration_s if duration_s > 0 else 0.0,
        end_reason=str(crawl.stats.get("end_reason", "")),
        by_labels=None if labels is None else _label_harvest(crawl, labels, good),
        top_hosts=metrics.rank_hosts_by_harvest(pages)[:_TOP_HOSTS],
        best_pages=_most_relevant_pages(counted),
        traps=read_trap_losses(crawl.stats),
        reliability=_crawl_reliability(crawl, labels, good),
        drift=measure_drift(pages, _human_labels(crawl)),
        freshness=None if crawl.visits.empty else measure_freshness(crawl),
        time_profile=read_time_profile(crawl.stats),
        curve=_curve_points(on_topic),
        features=_feature_lines(crawl),
    )


def _feature_lines(crawl: CrawlFolder) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, feature in installed_features().items():
        found = crawl.stats.get(name)
        if feature.report is not None and isinstance(found, dict):
            lines += feature.report(found)
    return lines


def policy_name(crawl: CrawlFolder) -> str:
    """The policy that ordered the crawl, from its settings or else its pages."""
    policy = crawl.settings.get("policy")
    if policy:
        return str(policy)
    used = crawl.pages["policy"].dropna()
    return str(used.iloc[-1]) if len(used) else ""


def topic_categories(crawl: CrawlFolder, good: Collection[str] | None = None) -> Collection[str]:
    """``good``, or the topic's own good categories. Raises :class:`StateError` without either."""
    if good is not None:
        return good
    training = crawl.topic.get("training")
    found = training.get("good") if isinstance(training, dict) else None
    if not isinstance(found, list) or not found:
        raise StateError(
            f"{crawl.path / 'settings.json'}: topic.training.good is missing; labels cannot be "
            "used without the categories that are the topic"
        )
    return [str(category) for category in found]


def usable_labels(
    crawl: CrawlFolder, labels: CategoryLabels | None, good: Collection[str] | None = None
) -> CategoryLabels | None:
    """Return ``labels``, or None when none is of a good category: they belong to other topics."""
    if not labels or not metrics.select_relevant_urls(labels, topic_categories(crawl, good)):
        return None
    return labels


def _label_harvest(
    crawl: CrawlFolder, labels: CategoryLabels, good: Collection[str] | None
) -> metrics.LabelHarvest:
    return metrics.measure_label_harvest(crawl.pages, labels, topic_categories(crawl, good))


def _crawl_reliability(
    crawl: CrawlFolder, labels: CategoryLabels | None, good: Collection[str] | None
) -> ReliabilityTable | None:
    if not has_probability_scores(policy_name(crawl)):
        return None
    if labels is None:
        return reliability(crawl.pages)
    relevant = metrics.select_relevant_urls(labels, topic_categories(crawl, good))
    return reliability(crawl.pages, {url: url in relevant for url in labels})


def _human_labels(crawl: CrawlFolder) -> tuple[Label, ...]:
    training = crawl.topic.get("training")
    path = training.get("labels") if isinstance(training, dict) else None
    return read_labels(Path(path)) if isinstance(path, str) else ()


def _most_relevant_pages(counted: pd.DataFrame) -> list[BestPage]:
    first = counted[counted["relevance"].notna() & counted["duplicate_of"].isna()]
    best = first.sort_values("relevance", ascending=False, kind="stable").head(_BEST_PAGES)
    return [
        BestPage(str(url), title if isinstance(title, str) else "", float(relevance))
        for url, title, relevance in best[["url", "title", "relevance"]].itertuples(
            index=False, name=None
        )
    ]


def _curve_points(on_topic: NDArray[np.bool_]) -> list[tuple[int, float, float]]:
    so_far, last = metrics.cumulative_harvest(on_topic), metrics.rolling_harvest(on_topic)
    places = metrics.sample_indices(on_topic.size, _CURVE_POINTS)
    return [(int(i) + 1, round(float(so_far[i]), 4), round(float(last[i]), 4)) for i in places]


def _failure_counts(crawl: CrawlFolder) -> tuple[dict[str, int], int]:
    """Count failed URLs by kind, most frequent first, and links that leave the recorded web.

    Links refused before a request are counted without rows, and the counters of a killed crawl are
    behind its rows: the larger of both counts.
    """
    rows = metrics.count_failures(crawl.pages)
    found = crawl.stats.get("failures")
    counted = found.items() if isinstance(found, dict) else ()
    counts = {kind: count for kind, count in counted if isinstance(count, int)}
    both = {kind: max(rows.get(kind, 0), counts.get(kind, 0)) for kind in [*rows, *counts]}
    outside = 0
    if crawl.settings.get("replay"):
        outside = max(both.pop(UNRECORDED_HOST, 0), _counter_total(crawl, "unrecorded_hosts") or 0)
    return dict(sorted(both.items(), key=lambda each: -each[1])), outside


def _mirror_pairs(crawl: CrawlFolder) -> dict[str, str]:
    found = crawl.stats.get("mirrors")
    pairs = found.items() if isinstance(found, dict) else ()
    return {site: preferred for site, preferred in pairs if isinstance(preferred, str)}


def _long_delays_s(crawl: CrawlFolder) -> dict[str, float]:
    found = crawl.stats.get("long_crawl_delays")
    pairs = found.items() if isinstance(found, dict) else ()
    return {host: delay_s for host, delay_s in pairs if isinstance(delay_s, int | float)}


def _duration_s(crawl: CrawlFolder) -> float:
    """Running time over all sessions, else from start to end, else between first and last page."""
    stats = crawl.stats
    if isinstance(elapsed := stats.get("active_s"), int | float):
        return float(elapsed)
    started, ended = stats.get("started_at"), stats.get("ended_at")
    if isinstance(started, int | float) and isinstance(ended, int | float):
        return max(float(ended - started), 0.0)
    fetched_at = crawl.pages["fetched_at"].dropna()
    return float(fetched_at.max() - fetched_at.min()) if len(fetched_at) else 0.0


def _count_by_reason(crawl: CrawlFolder, counter: str) -> dict[str, int]:
    """A counter that counts by reason, most frequent first."""
    value = crawl.stats.get(counter)
    counted = value.items() if isinstance(value, dict) else ()
    counts = {reason: count for reason, count in counted if isinstance(count, int)}
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def _counter_total(crawl: CrawlFolder, counter: str) -> int | None:
    """A counter of ``stats.json``, summed over its reasons if it has any."""
    value = crawl.stats.get(counter)
    if isinstance(value, dict):
        return sum(count for count in value.values() if isinstance(count, int))
    return value if isinstance(value, int) else None


@dataclass(frozen=True, slots=True)
class TrapLosses:
    """Pages fetched from a kind of trap on ``site``, and links to it that were refused.

    ``site`` is a host, or ``*.`` and a domain.
    """

    site: str
    kind: str
    pages: int
    links: int


def read_trap_losses(stats: Mapping[str, Any]) -> list[TrapLosses]:
    """Read the trap losses of ``stats.json``, most pages first; skip malformed entries."""
    entries = stats.get("traps")
    if not isinstance(entries, list):
        return []
    return [
        TrapLosses(each["site"], each["kind"].removeprefix("trap: "), each["pages"], each["links"])
        for each in entries
        if isinstance(each, dict)
        and all(isinstance(each.get(key), str) for key in ("site", "kind"))
        and all(isinstance(each.get(key), int) for key in ("pages", "links"))
    ]


OTHER_STAGES = "Scrapy, HTTP, the rest"
_BUSY_SHARE = 0.7
_PARSING_STAGES = (Stage.PARSING, Stage.CLASSIFYING, Stage.DEDUPLICATING)


@dataclass(frozen=True, slots=True)
class StageTime:
    """Milliseconds per page of one stage, and its share of the total, in [0, 1]."""

    stage: str
    ms_per_page: float
    share: float


@dataclass(frozen=True, slots=True)
class TimeProfile:
    """The profile of a crawl's last session, slowest stage first.

    ``busy`` is the share of the time that the crawl's process used a core, ``parsed_elsewhere`` the
    share of pages parsed by other ``processes``, both in [0, 1]. ``blocked_s`` is the longest time
    the reactor was blocked, ``blocked_count`` how often it was for more than
    ``blocked_threshold_s``.
    """

    pages: int
    busy: float
    stages: list[StageTime]
    processes: int
    parsed_elsewhere: float
    blocked_s: float
    blocked_count: int
    blocked_threshold_s: float
    bottleneck: str


def read_time_profile(stats: Mapping[str, Any]) -> TimeProfile | None:
    """Read the profile of ``stats.json``; None without pages or with unknown fields."""
    profile = stats.get("profile")
    try:
        return (
            _time_profile(profile)
            if profile and profile["pages"] and profile["elapsed_s"] > 0
            else None
        )
    except (KeyError, TypeError):
        return None


def _time_profile(profile: Mapping[str, Any]) -> TimeProfile:
    pages, blocked = int(profile["pages"]), profile["reactor_blocked"]
    seconds = {str(stage): float(took) for stage, took in profile["stages"].items()}
    in_this_process = sum(seconds.values()) - profile["parser_process_s"]
    seconds[OTHER_STAGES] = max(0.0, profile["cpu_s"] - in_this_process)
    total = sum(seconds.values()) or 1.0
    stages = [
        StageTime(stage, 1000 * took / pages, took / total)
        for stage, took in sorted(seconds.items(), key=lambda each: -each[1])
    ]
    busy = min(1.0, profile["cpu_s"] / profile["elapsed_s"])
    return TimeProfile(
        pages=pages,
        busy=busy,
        stages=stages,
        processes=int(profile["parser_processes"]),
        parsed_elsewhere=profile["pages_parsed_in_processes"] / pages,
        blocked_s=blocked["longest_s"],
        blocked_count=blocked["times"],
        blocked_threshold_s=blocked["threshold_s"],
        bottleneck=_bottleneck(busy, seconds),
    )


def _bottleneck(busy: float, seconds: Mapping[str, float]) -> str:
    if busy < _BUSY_SHARE:
        return "the network and the hosts' delays"
    parsing = sum(seconds.get(stage, 0.0) for stage in _PARSING_STAGES)
    work = {
        "parsing pages": parsing,
        **{stage: took for stage, took in seconds.items() if stage not in _PARSING_STAGES},
    }
    most = max(work, key=lambda stage: work[stage])
    return f"the CPU: {most} takes most"
