"""Print a crawl's report as tables; write its JSON and plots; compare several crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from focused.files import write_atomically
from focused.labels.precision_estimate import format_share
from focused.orderings.policy_names import BASELINE
from focused.reports import metrics
from focused.reports.crawl_folder import CrawlFolder, read_crawl
from focused.reports.crawl_report import (
    CategoryLabels,
    CrawlReport,
    build_report,
    policy_name,
    report_to_dict,
    topic_categories,
    usable_labels,
)
from focused.reports.formatting import format_duration, print_line, single_line, text_table
from focused.reports.freshness_report import Estimate, FreshnessReport
from focused.reports.reliability import ReliabilityTable
from focused.web.page import FailureKind

_MAX_JAVASCRIPT_HOSTS = 3
_MAX_LISTED = 10
"""Mirrors, hosts with a long crawl-delay, traps, and hosts with changes."""
HARVEST_PNG = "harvest.png"
REPORT_JSON = "report.json"


def print_report(
    folder: Path,
    console: Console,
    labels: CategoryLabels | None = None,
    out: Path | None = None,
    *,
    draws: bool = True,
) -> None:
    """Print the report of the crawl in ``folder``.

    ``labels`` are ground truth. ``out`` is a folder for ``report.json`` and, if it ``draws``, for
    ``harvest.png``; a line reports if it cannot be written. Raises :class:`StateError` when the
    crawl's folder is missing, foreign or damaged.
    """
    crawl = read_crawl(folder)
    report = build_report(crawl, labels)
    labels = usable_labels(crawl, labels)
    console.print(_summary_table(report))
    for warning in _warnings(report):
        print_line(console, single_line(f"Warning: {warning}"), style="bold yellow")
    for table in _tables(report):
        console.print(table)
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(report_to_dict(report), indent=1, allow_nan=False)
        write_atomically(out / REPORT_JSON, f"{text}\n".encode())
        if draws:
            _write_plot(crawl, report, labels, out, console)
    except (OSError, ValueError) as error:  # JSON has no infinity, which a foreign table may hold
        print_line(console, f"the report could not be written into {out}: {error}")


def _warnings(report: CrawlReport) -> Iterator[str]:
    if report["drift"] is not None:
        yield from report["drift"].warnings
    if report["pages_since_on_topic"] >= metrics.ROLLING_WINDOW:
        yield (
            f"none of the last {report['pages_since_on_topic']:,} pages was on topic; the topic "
            "may be exhausted. budget.min_harvest in the topic file ends such crawls."
        )


def _write_plot(
    crawl: CrawlFolder,
    report: CrawlReport,
    labels: CategoryLabels | None,
    out: Path,
    console: Console,
) -> None:
    from focused.reports.crawl_plots import plot_harvest  # slow to import

    name = report["policy"] or "crawl"
    curves = {name: _on_topic_flags(crawl, None)}
    if labels is not None:
        curves = {
            f"{name}, by labels": _on_topic_flags(crawl, labels),
            f"{name}, by classifier": curves[name],
        }
    plot_harvest(curves, out / HARVEST_PNG, report["topic"])
    print_line(console, f"Curve: {out / HARVEST_PNG}")


def _summary_table(report: CrawlReport) -> Table:
    by = f", {single_line(report['policy'])}" if report["policy"] else ""
    columns = ["", "classifier", "labels"] if report["by_labels"] else ["", "classifier"]
    rows = ([*row, ""][: len(columns)] for row in _summary_rows(report))
    table = text_table(f"{single_line(report['topic'])}{by}", columns, (), left=[""])
    table.show_header = bool(report["by_labels"])
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _summary_rows(report: CrawlReport) -> Iterator[tuple[str, ...]]:
    """Yield name, value and, where labels tell something of it, the value by labels."""
    labels = report["by_labels"]
    harvest = (
        ("fetched", f"{report['fetched']:,}"),
        ("on topic", f"{report['on_topic']:,}"),
        ("harvest rate", f"{report['harvest_rate']:.1%}"),
        (f"  over the last {metrics.ROLLING_WINDOW}", f"{report['recent_harvest']:.1%}"),
    )
    by_labels = ("",) * 4 if labels is None else (
        f"{labels.labelled:,} labelled", f"{labels.on_topic:,}", f"{labels.rate:.1%}",
        f"{labels.rate_last:.1%}",
    )  # fmt: skip
    for (name, value), of_labels in zip(harvest, by_labels, strict=True):
        yield name, value, of_labels
    if labels is not None:
        yield "recall", "", f"{labels.recall:.1%} of {labels.relevant:,}"
        yield "classifier's precision", "", f"{labels.precision:.1%}"
    if (drift := report["drift"]) is not None:
        if drift.labelled:
            called_on_topic = sum(labelled for _, labelled in drift.precision_by_half)
            yield "harvest by people, 95%", format_share(drift.harvest, drift.labelled)
            yield "classifier's precision, 95%", format_share(drift.precision, called_on_topic)
            yield "  labelled of the evaluation set", f"{drift.labelled:,} of {drift.sampled:,}"
        else:
            waiting = f"unknown; {drift.sampled:,} pages wait: focused label"
            yield "harvest by people", waiting
    if (scores := report["reliability"]) is not None:
        errors = [each for each in (scores.by_classifier, scores.by_labels) if each is not None]
        yield "scores' calibration error", *(f"{each.calibration_error:.3f}" for each in errors)
        yield "scores' Brier score", *(f"{each.brier:.3f}" for each in errors)
        yield "  of a constant prediction", *(f"{each.brier_reference:.3f}" for each in errors)
    if report["freshness"] is not None:
        yield from _freshness_rows(report["freshness"])
    yield from _count_rows(report)
    for name, value in report["features"]:
        yield single_line(name), single_line(value)


def _freshness_rows(freshness: FreshnessReport) -> Iterator[tuple[str, str]]:
    """The state of a collection whose pages are visited again."""
    age = freshness.age_days
    visits = sum(freshness.results.values())
    yield "fresh pages, 95%", _format_percent_estimate(freshness.freshness)
    if freshness.relevant:
        yield "  on topic", _format_percent_estimate(freshness.relevant)
    yield "age in days, 95%", f"{age.value:.2f} ({age.low:.2f}–{age.high:.2f})"
    yield "pages gone", f"{freshness.gone:,}"
    yield "revisits", f"{visits:,}, {freshness.visits_per_day:,.0f} a day"
    for result, count in freshness.results.items():
        yield f"  {result}", f"{count:,}"
    yield "  changed, predicted", f"{freshness.observed:.1%}, {freshness.predicted:.1%}"


def _format_percent_estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} ({estimate.low:.1%}–{estimate.high:.1%})"


def _count_rows(report: CrawlReport) -> Iterator[tuple[str, str]]:
    """Name and value of each figure that labels do not affect."""

    def count(name: str, key: str) -> tuple[str, str]:
        return name, f"{report[key]:,}"

    yield count("hosts", "hosts")
    yield count("duplicates", "duplicates")
    yield count("  near-duplicates", "near_duplicates")
    for site, of in islice(report["mirrors"].items(), _MAX_LISTED):
        yield "  mirror", f"{single_line(site)} of {single_line(of)}"
    yield count("redirects", "redirected")
    yield count("robots-excluded", "robots_excluded")
    yield count("noindex, dropped", "noindex")
    if report["spam"]:
        yield count("probably spam", "spam")
    yield from _javascript_rows(report["javascript"], report["javascript_hosts"])
    yield count("nofollow links", "nofollow")
    if report["links_over_limit"]:
        yield count("links over the limit of a page", "links_over_limit")
    yield count("links out of scope", "out_of_scope")
    for reason, times in report["out_of_scope_by"].items():
        yield f"  {single_line(reason)}", f"{times:,}"
    if report["unrecorded_hosts"]:
        yield "outside the recorded web", f"{report['unrecorded_hosts']:,} links"
    yield "errors", f"{sum(report['failures'].values()):,}"
    for kind, times in report["failures"].items():
        is_missing = kind == FailureKind.MISSING_LIBRARY
        remedy = ": pip install 'focused-crawler[documents]'" if is_missing else ""
        yield f"  {single_line(kind)}{remedy}", f"{times:,}"
    if report["traps"]:
        yield "pages lost to traps", f"{sum(each['pages'] for each in report['traps']):,}"
        yield "  links refused", f"{sum(each['links'] for each in report['traps']):,}"
    if report["training"]:
        yield count("training samples fetched", "training")
    if report["frontier"] is not None:
        yield count("left in the frontier", "frontier")
    for host, delay_s in islice(report["long_crawl_delays_s"].items(), _MAX_LISTED):
        yield "  crawl-delay", f"{delay_s / 3600:.1f} h: {single_line(host)}"
    yield "downloaded", decimal(report["bytes"])
    yield "duration", format_duration(report["duration_s"])
    yield "pages per second", f"{report['pages_per_s']:.1f}"
    yield "ended", single_line(report["end_reason"]) or "unknown: still running, or killed"


def _javascript_rows(
    events: Mapping[str, int], hosts: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Name and value of what is known of pages that need JavaScript."""
    prefix = "failed/"
    failures = {kind: count for kind, count in events.items() if kind.startswith(prefix)}
    if events.get("needing"):
        where = f" on {len(hosts):,} host{'' if len(hosts) == 1 else 's'}" if hosts else ""
        yield "show nothing without JavaScript", f"{events['needing']:,} pages{where}"
        for host, pages in islice(hosts.items(), _MAX_JAVASCRIPT_HOSTS):
            yield f"  {single_line(host)}", f"{pages:,}"
        if not events.get("rendered") and not failures:
            yield "  to render them", 'scope.javascript = "render"'
    if events.get("rendered"):
        gained = events.get("gained", 0)
        yield "rendered by a browser", f"{events['rendered']:,}, {gained:,} with new text"
    for kind, count in failures.items():
        yield f"  not rendered: {single_line(kind.removeprefix(prefix))}", f"{count:,}"


def _tables(report: CrawlReport) -> Iterator[Table]:
    if report["top_hosts"]:
        yield text_table(
            "Hosts with most on-topic pages",
            ("host", "on topic", "fetched", "rate"),
            (
                (row["host"], f"{row['on_topic']:,}", f"{row['fetched']:,}",
                 f"{row['on_topic'] / row['fetched']:.0%}")
                for row in report["top_hosts"]
            ),
            left=["host"],
        )  # fmt: skip
    if report["best_pages"]:
        titles = (
            Text(single_line(page["title"], 80) or "(no title)").append(
                f"\n{single_line(page['url'])}", style="dim"
            )
            for page in report["best_pages"]
        )
        shown = (f"{page['relevance']:.2f}" for page in report["best_pages"])
        rows = zip(shown, titles, strict=True)
        yield text_table("Best pages", ("relevance", "page"), rows, left=["page"])
    if report["freshness"] is not None:
        yield from _freshness_tables(report["freshness"])
    if report["traps"]:
        yield text_table(
            "Traps",
            ("host", "kind", "pages lost", "links refused"),
            (
                (each["site"], each["kind"], f"{each['pages']:,}", f"{each['links']:,}")
                for each in report["traps"][:_MAX_LISTED]
            ),
            left=["host", "kind"],
        )
    if report["reliability"] is not None:
        yield _reliability_table(report["reliability"])
    if report["time_profile"] is not None:
        yield _time_table(report["time_profile"])


def _freshness_tables(freshness: FreshnessReport) -> Iterator[Table]:
    yield text_table(
        "Hosts with most changes",
        ("host", "pages", "visits", "changed", "changes a page and month", "fresh"),
        (
            (each["host"], f"{each['pages']:,}", f"{each['visits']:,}", f"{each['changes']:,}",
             f"{30 * each['change_rate']:.2f}", f"{each['freshness']:.0%}")
            for each in freshness.hosts[:_MAX_LISTED]
        ),
        left=["host"],
    )  # fmt: skip
    yield text_table(
        "What a budget buys",
        ("visits a day", "fresh pages", "changes found in a day"),
        (
            (f"{each['pages_per_day']:,.0f}", f"{each['freshness']:.1%}",
             f"{each['changes_found']:,.1f}")
            for each in freshness.budgets
        ),
    )  # fmt: skip


def _time_table(spent: Mapping[str, Any]) -> Table:
    table = text_table(
        "Time by stage",
        ("stage", "ms per page", "share"),
        (
            (each["stage"], f"{each['ms_per_page']:.2f}", f"{each['share']:.0%}")
            for each in spent["stages"]
        ),
        left=["stage"],
    )
    table.caption_justify = "left"
    table.caption = Text(
        f"The crawl waited for {spent['bottleneck']}. Its process was busy for {spent['busy']:.0%} "
        f"of the time; other processes parsed {spent['parsed_elsewhere']:.0%} of the pages. Its "
        f"reactor was blocked for {1000 * spent['blocked_s']:.0f} ms at most, "
        f"{spent['blocked_count']:,} times for more than "
        f"{1000 * spent['blocked_threshold_s']:.0f}."
    )
    return table


def _reliability_table(scores: ReliabilityTable) -> Table:
    columns = ["score", "pages", "mean score", "relevance", "on topic"]
    if scores.by_labels is not None:
        columns.append("by labels")

    def cells(row: Any) -> Iterator[str]:
        yield f"{row.low:.1f}–{row.high:.1f}"
        yield f"{row.pages:,}"
        yield f"{row.score:.2f}"
        yield f"{row.relevance:.2f}"
        yield f"{row.on_topic:.0%}"
        if scores.by_labels is not None:
            # The number of labelled pages is shown where some have no label.
            of = f" of {row.labelled:,}" if row.labelled != row.pages else ""
            yield "–" if row.by_labels is None else f"{row.by_labels:.0%}{of}"

    return text_table("Calibration of scores", columns, (tuple(cells(row)) for row in scores.bins))


@dataclass(frozen=True, slots=True)
class ComparedCrawl:
    """One crawl of a comparison.

    ``on_topic``, shape (fetched,): which pages are on topic, in the order of fetching.
    ``rate`` is the harvest rate of all of them, ``rate_at_equal`` that of the first pages, as many
    as every crawl fetched. ``ratio`` divides the latter by the baseline's; None where that is 0.
    """

    name: str
    topic: str
    on_topic: NDArray[np.bool_]
    rate: float
    rate_at_equal: float
    ratio: float | None


def compare_crawls(
    folders: Sequence[Path], labels: CategoryLabels | None = None
) -> list[ComparedCrawl]:
    """Compare crawls; the baseline, breadth-first or else the last folder, comes last.

    Labels decide what is on topic when given, otherwise each crawl's classifier. Raises
    :class:`StateError` for an unreadable folder.
    """
    # The sort is stable: the others keep their order.
    crawls = sorted(map(read_crawl, folders), key=lambda crawl: policy_name(crawl) == BASELINE)
    on_topic = [_on_topic_flags(crawl, labels) for crawl in crawls]
    equal = min(len(each) for each in on_topic)
    base = metrics.harvest_rate(on_topic[-1][:equal])
    return [
        ComparedCrawl(
            name=name,
            topic=str(crawl.topic.get("name", "")),
            on_topic=each,
            rate=metrics.harvest_rate(each),
            rate_at_equal=metrics.harvest_rate(each[:equal]),
            ratio=metrics.harvest_rate(each[:equal]) / base if base else None,
        )
        for name, crawl, each in zip(_crawl_names(crawls), crawls, on_topic, strict=True)
    ]


def print_comparison(
    folders: Sequence[Path], console: Console, picture: Path, labels: CategoryLabels | None = None
) -> None:
    """Print :func:`compare_crawls` as a table and draw the harvest curves to ``picture`` (PNG).

    Raises :class:`StateError` for an unreadable folder, OSError when ``picture`` cannot be written.
    """
    compared = compare_crawls(folders, labels)
    equal = min(len(each.on_topic) for each in compared)
    table = text_table(
        f"Harvest by {'classifier' if labels is None else 'labels'}",
        ("crawl", "fetched", "on topic", "harvest rate", f"rate of the first {equal:,}", "ratio"),
        (
            (each.name, f"{len(each.on_topic):,}", f"{int(each.on_topic.sum()):,}",
             f"{each.rate:.1%}", f"{each.rate_at_equal:.1%}",
             "–" if each.ratio is None else f"{each.ratio:.2f}")
            for each in compared
        ),
        left=["crawl"],
    )  # fmt: skip
    console.print(table)
    from focused.reports.crawl_plots import plot_harvest  # slow to import

    topics = dict.fromkeys(each.topic for each in compared if each.topic)
    plot_harvest({each.name: each.on_topic for each in compared}, picture, title=", ".join(topics))
    print_line(console, f"Curves: {picture}")


def _on_topic_flags(crawl: CrawlFolder, labels: CategoryLabels | None) -> NDArray[np.bool_]:
    """Which of the pages that harvest counts are on topic, by labels or by the classifier."""
    if labels is None:
        return metrics.harvest_pages(crawl.pages)["on_topic"].to_numpy(dtype=bool)
    relevant = metrics.select_relevant_urls(labels, topic_categories(crawl))
    return metrics.relevance_by_labels(crawl.pages, relevant)


def _crawl_names(crawls: Sequence[CrawlFolder]) -> list[str]:
    """Name crawls by policy where that is unique, otherwise by folder."""
    policies = [policy_name(crawl) for crawl in crawls]
    if all(policies) and len(set(policies)) == len(policies):
        return ["breadth-first" if policy == BASELINE else policy for policy in policies]
    names = [crawl.path.name for crawl in crawls]
    return names if len(set(names)) == len(names) else [str(crawl.path) for crawl in crawls]
