"""Print a crawl's report as tables; write its JSON and plots; compare several crawls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.errors import escape_control_characters
from focused.labels.precision_estimate import format_share
from focused.orderings.policy_names import BASELINE
from focused.reports import metrics
from focused.reports.classifier_drift import ClassifierDrift
from focused.reports.crawl_folder import CrawlFolder, read_crawl
from focused.reports.crawl_report import (
    CategoryLabels,
    CrawlReport,
    TimeProfile,
    TrapLosses,
    build_report,
    policy_name,
    topic_categories,
    usable_labels,
    write_report,
)
from focused.reports.formatting import (
    format_bytes,
    format_duration,
    format_percent,
    single_line,
)
from focused.reports.freshness_report import Estimate, FreshnessReport
from focused.reports.reliability import ReliabilityTable, ScoreBin
from focused.web.page import FailureKind

if TYPE_CHECKING:
    from focused.link_graph.measures import LinkedPage

_MAX_JAVASCRIPT_HOSTS = 3
_MAX_MIRRORS = 10
_MAX_LONG_DELAYS = 10
_MAX_TRAPS = 10
_MAX_CHANGING_HOSTS = 10
HARVEST_PNG, RELIABILITY_PNG = "harvest.png", "reliability.png"
REPORT_JSON = "report.json"


def print_report(
    folder: Path,
    console: Console,
    labels: CategoryLabels | None = None,
    good: Collection[str] | None = None,
    out: Path | None = None,
    graph: Path | None = None,
    *,
    draws: bool = True,
) -> None:
    """Print the report of the crawl in ``folder``.

    ``graph`` is the folder of the crawl's link graph, which adds hubs and authorities.

    ``out`` is a folder for ``report.json`` and, if it ``draws``, for ``harvest.png`` and, where
    scores are probabilities, ``reliability.png``; a line reports if it cannot be written.
    ``labels`` and ``good`` as in :func:`focused.reports.crawl_report.report_as_dict`. Raises
    :class:`StateError` when the crawl's folder is missing, foreign or damaged.
    """
    crawl = read_crawl(folder)
    labels = usable_labels(crawl, labels, good)
    report = build_report(crawl, labels, good)
    if graph is not None:
        from focused.link_graph.measures import build_link_report  # slow to import

        report = replace(report, links=build_link_report(graph))
    console.print(_summary_table(report))
    for warning in _warnings(report):
        console.print(Text(single_line(f"Warning: {warning}")), style="bold yellow", soft_wrap=True)
    _print_tables(report, console)
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_report(report, out / REPORT_JSON)
        if draws:
            _write_plots(_harvest_curves(crawl, report, labels, good), report, out, console)
    except OSError as error:
        console.print(
            Text(escape_control_characters(f"the report could not be written into {out}: {error}"))
        )


def _warnings(report: CrawlReport) -> Iterator[str]:
    if report.drift is not None:
        yield from report.drift.warnings
    if report.pages_since_on_topic >= metrics.ROLLING_WINDOW:
        yield (
            f"none of the last {report.pages_since_on_topic:,} pages was on topic; the topic may "
            "be exhausted. budget.min_harvest in the topic file ends such crawls."
        )


def _write_plots(
    curves: dict[str, Sequence[bool]], report: CrawlReport, out: Path, console: Console
) -> None:
    from focused.reports.crawl_plots import plot_crawl_reliability, plot_harvest  # slow to import

    plot_harvest(curves, out / HARVEST_PNG, report.topic)
    console.print(Text(escape_control_characters(f"Curve: {out / HARVEST_PNG}")), soft_wrap=True)
    if report.reliability is not None:
        plot_crawl_reliability(report.reliability, out / RELIABILITY_PNG, report.topic)
        console.print(
            Text(escape_control_characters(f"Scores: {out / RELIABILITY_PNG}")), soft_wrap=True
        )


def _harvest_curves(
    crawl: CrawlFolder,
    report: CrawlReport,
    labels: CategoryLabels | None,
    good: Collection[str] | None,
) -> dict[str, Sequence[bool]]:
    counted = metrics.harvest_pages(crawl.pages)
    name = report.policy or "crawl"
    if labels is None:
        return {name: counted["on_topic"].tolist()}
    relevant = metrics.select_relevant_urls(labels, topic_categories(crawl, good))
    return {
        f"{name}, by labels": metrics.relevance_by_labels(crawl.pages, relevant).tolist(),
        f"{name}, by classifier": counted["on_topic"].tolist(),
    }


def _summary_table(report: CrawlReport) -> Table:
    labels = report.by_labels
    table = Table(title=Text(_title(report)), title_justify="left", show_header=labels is not None)
    table.add_column("")
    table.add_column("classifier", justify="right")
    if labels is not None:
        table.add_column("labels", justify="right")

    def add(name: str, value: str, by_labels: str = "") -> None:
        table.add_row(name, value, *([by_labels] if labels is not None else []))

    add("fetched", f"{report.fetched:,}", f"{labels.labelled:,} labelled" if labels else "")
    add("on topic", f"{report.on_topic:,}", f"{labels.on_topic:,}" if labels else "")
    add("harvest rate", f"{report.harvest_rate:.1%}", f"{labels.rate:.1%}" if labels else "")
    add(
        f"  over the last {metrics.ROLLING_WINDOW}",
        f"{report.recent_harvest:.1%}",
        f"{labels.rate_last:.1%}" if labels else "",
    )
    if labels is not None:
        add("recall", "", f"{labels.recall:.1%} of {labels.relevant:,}")
        add("classifier's precision", "", f"{labels.precision:.1%}")
    for name, value in _drift_rows(report.drift):
        add(name, value)
    for name, *values in _score_rows(report):
        add(name, *values)
    for name, value in _freshness_rows(report.freshness):
        add(name, value)
    for name, value in _count_rows(report):
        add(name, value)
    for name, value in report.features:
        add(single_line(name), single_line(value))
    return table


def _title(report: CrawlReport) -> str:
    by = f", {single_line(report.policy)}" if report.policy else ""
    return f"{single_line(report.topic)}{by}"


def _drift_rows(drift: ClassifierDrift | None) -> list[tuple[str, str]]:
    """Estimates from human labels, or how many pages wait to be labelled."""
    if drift is None:
        return []
    if not drift.labelled:
        return [("harvest by people", f"unknown; {drift.sampled:,} pages wait: focused label")]
    called_on_topic = sum(labelled for _, labelled in drift.precision_by_half)
    return [
        ("harvest by people, 95%", format_share(drift.harvest, drift.labelled)),
        ("classifier's precision, 95%", format_share(drift.precision, called_on_topic)),
        ("  labelled of the evaluation set", f"{drift.labelled:,} of {drift.sampled:,}"),
    ]


def _score_rows(report: CrawlReport) -> list[tuple[str, str, str]]:
    """Errors of the scores against classifier and labels; empty where scores are no
    probabilities.
    """
    table = report.reliability
    if table is None:
        return []
    sources = (table.by_classifier, table.by_labels)
    errors = ["" if fit is None else f"{fit.calibration_error:.3f}" for fit in sources]
    briers = ["" if fit is None else f"{fit.brier:.3f}" for fit in sources]
    rates = ["" if fit is None else f"{fit.brier_reference:.3f}" for fit in sources]
    return [
        ("scores' calibration error", errors[0], errors[1]),
        ("scores' Brier score", briers[0], briers[1]),
        ("  of a constant prediction", rates[0], rates[1]),
    ]


def _freshness_rows(freshness: FreshnessReport | None) -> list[tuple[str, str]]:
    """The state of a collection whose pages are visited again."""
    if freshness is None:
        return []
    visits = sum(freshness.results.values())
    return [
        ("fresh pages, 95%", _format_percent_estimate(freshness.freshness)),
        *(
            [("  on topic", _format_percent_estimate(freshness.relevant))]
            if freshness.relevant
            else []
        ),
        (
            "age in days, 95%",
            f"{freshness.age_days.value:.2f} "
            f"({freshness.age_days.low:.2f}–{freshness.age_days.high:.2f})",
        ),
        ("pages gone", f"{freshness.gone:,}"),
        ("revisits", f"{visits:,}, {freshness.visits_per_day:,.0f} a day"),
        *((f"  {result}", f"{count:,}") for result, count in freshness.results.items()),
        ("  changed, predicted", f"{freshness.observed:.1%}, {freshness.predicted:.1%}"),
    ]


def _format_percent_estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} ({estimate.low:.1%}–{estimate.high:.1%})"


def _freshness_tables(freshness: FreshnessReport) -> list[Table]:
    hosts = Table(title="Hosts with most changes", title_justify="left")
    hosts.add_column("host")
    for name in ("pages", "visits", "changed", "changes a page and month", "fresh"):
        hosts.add_column(name, justify="right")
    for host in freshness.hosts[:_MAX_CHANGING_HOSTS]:
        hosts.add_row(
            Text(single_line(host.host)),
            f"{host.pages:,}",
            f"{host.visits:,}",
            f"{host.changes:,}",
            f"{30 * host.change_rate:.2f}",
            f"{host.freshness:.0%}",
        )
    budgets = Table(title="What a budget buys", title_justify="left")
    for name in ("visits a day", "fresh pages", "changes found in a day"):
        budgets.add_column(name, justify="right")
    for point in freshness.budgets:
        budgets.add_row(
            f"{point.pages_per_day:,.0f}", f"{point.freshness:.1%}", f"{point.changes_found:,.1f}"
        )
    return [hosts, budgets]


def _failure_name(kind: str) -> str:
    if kind == FailureKind.MISSING_LIBRARY:
        return f"{kind}: pip install 'focused-crawler[documents]'"
    return single_line(kind)


def _count_rows(report: CrawlReport) -> list[tuple[str, str]]:
    """Name and value of each figure that labels do not affect."""
    mirrors = list(report.mirrors.items())
    rows = [
        ("hosts", f"{report.hosts:,}"),
        ("duplicates", f"{report.duplicates:,}"),
        ("  near-duplicates", f"{report.near_duplicates:,}"),
        *(
            ("  mirror", f"{single_line(site)} of {single_line(of)}")
            for site, of in mirrors[:_MAX_MIRRORS]
        ),
        ("redirects", f"{report.redirected:,}"),
        ("robots-excluded", f"{report.robots_excluded:,}"),
        ("noindex, dropped", f"{report.noindex:,}"),
        *([("probably spam", f"{report.spam:,}")] if report.spam else []),
        *_javascript_rows(report),
        ("nofollow links", f"{report.nofollow:,}"),
        *(
            [("links over the limit of a page", f"{report.links_over_limit:,}")]
            if report.links_over_limit
            else []
        ),
        ("links out of scope", f"{report.out_of_scope:,}"),
        *((f"  {single_line(reason)}", f"{n:,}") for reason, n in report.out_of_scope_by.items()),
        *(
            [("outside the recorded web", f"{report.unrecorded_hosts:,} links")]
            if report.unrecorded_hosts
            else []
        ),
        ("errors", f"{sum(report.failures.values()):,}"),
        *((f"  {_failure_name(kind)}", f"{count:,}") for kind, count in report.failures.items()),
    ]
    if report.traps:
        rows.append(("pages lost to traps", f"{sum(line.pages for line in report.traps):,}"))
        rows.append(("  links refused", f"{sum(line.links for line in report.traps):,}"))
    if report.training:
        rows.append(("training samples fetched", f"{report.training:,}"))
    if report.frontier is not None:
        rows.append(("left in the frontier", f"{report.frontier:,}"))
    for host, delay_s in list(report.long_crawl_delays_s.items())[:_MAX_LONG_DELAYS]:
        rows.append(("  crawl-delay", f"{delay_s / 3600:.1f} h: {single_line(host)}"))
    return [
        *rows,
        ("downloaded", format_bytes(report.bytes)),
        ("duration", format_duration(report.duration_s)),
        ("pages per second", f"{report.pages_per_s:.1f}"),
        ("ended", single_line(report.end_reason) or "unknown: still running, or killed"),
    ]


def _javascript_rows(report: CrawlReport) -> list[tuple[str, str]]:
    """Name and value of what is known of pages that need JavaScript."""
    events, hosts = report.javascript, report.javascript_hosts
    rows = []
    if events.get("needing"):
        where = f" on {len(hosts):,} host{'' if len(hosts) == 1 else 's'}" if hosts else ""
        rows.append(("show nothing without JavaScript", f"{events['needing']:,} pages{where}"))
        most = list(hosts.items())[:_MAX_JAVASCRIPT_HOSTS]
        rows += [(f"  {single_line(host)}", f"{pages:,}") for host, pages in most]
        if not events.get("rendered") and not _render_failures(events):
            rows.append(("  to render them", 'scope.javascript = "render"'))
    if events.get("rendered"):
        gained = events.get("gained", 0)
        rows.append(("rendered by a browser", f"{events['rendered']:,}, {gained:,} with new text"))
    for kind, count in _render_failures(events).items():
        rows.append((f"  not rendered: {single_line(kind)}", f"{count:,}"))
    return rows


def _render_failures(events: Mapping[str, int]) -> dict[str, int]:
    prefix = "failed/"
    found = ((kind, count) for kind, count in events.items() if kind.startswith(prefix))
    return {kind.removeprefix(prefix): count for kind, count in found}


def _linked_table(title: str, pages: Sequence[LinkedPage]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("score", justify="right")
    table.add_column("relevance", justify="right")
    table.add_column("page", overflow="fold")
    for page in pages:
        table.add_row(f"{page.score:.2f}", f"{page.relevance:.2f}", Text(single_line(page.url)))
    return table


def _print_tables(report: CrawlReport, console: Console) -> None:
    if report.top_hosts:
        hosts = Table(title="Hosts with most on-topic pages", title_justify="left")
        hosts.add_column("host")
        for name in ("on topic", "fetched", "rate"):
            hosts.add_column(name, justify="right")
        for row in report.top_hosts:
            rate = format_percent(row.on_topic, row.fetched)
            hosts.add_row(
                Text(single_line(row.host)), f"{row.on_topic:,}", f"{row.fetched:,}", rate
            )
        console.print(hosts)
    if report.best_pages:
        best = Table(title="Best pages", title_justify="left")
        best.add_column("relevance", justify="right")
        best.add_column("page", overflow="fold")
        for page in report.best_pages:
            named = Text(single_line(page.title, 80) or "(no title)")
            named.append(f"\n{single_line(page.url)}", style="dim")
            best.add_row(f"{page.relevance:.2f}", named)
        console.print(best)
    if report.links is not None:
        console.print(_linked_table("Authorities of the topic", report.links.authorities))
        console.print(_linked_table("Hubs of the topic", report.links.hubs))
    for table in () if report.freshness is None else _freshness_tables(report.freshness):
        console.print(table)
    if report.traps:
        console.print(_trap_table(report.traps))
    if report.reliability is not None:
        console.print(_reliability_table(report.reliability))
    if report.time_profile is not None:
        console.print(_time_table(report.time_profile))


def _time_table(spent: TimeProfile) -> Table:
    table = Table(title="Time by stage", title_justify="left", caption_justify="left")
    table.caption = Text(
        f"The crawl waited for {spent.bottleneck}. Its process was busy for {spent.busy:.0%} of "
        "the "
        f"time; other processes parsed {spent.parsed_elsewhere:.0%} of the pages. Its reactor "
        "was blocked for "
        f"{1000 * spent.blocked_s:.0f} ms at most, {spent.blocked_count:,} times for more than "
        f"{1000 * spent.blocked_threshold_s:.0f}."
    )
    table.add_column("stage")
    table.add_column("ms per page", justify="right")
    table.add_column("share", justify="right")
    for each in spent.stages:
        table.add_row(each.stage, f"{each.ms_per_page:.2f}", f"{each.share:.0%}")
    return table


def _trap_table(lines: Sequence[TrapLosses]) -> Table:
    table = Table(title="Traps", title_justify="left")
    table.add_column("host", overflow="fold")
    table.add_column("kind")
    table.add_column("pages lost", justify="right")
    table.add_column("links refused", justify="right")
    for line in lines[:_MAX_TRAPS]:
        table.add_row(
            Text(single_line(line.site)),
            single_line(line.kind),
            f"{line.pages:,}",
            f"{line.links:,}",
        )
    return table


def _reliability_table(scores: ReliabilityTable) -> Table:
    table = Table(title="Calibration of scores", title_justify="left")
    for name in ("score", "pages", "mean score", "relevance", "on topic"):
        table.add_column(name, justify="right")
    if scores.by_labels is not None:
        table.add_column("by labels", justify="right")
    for row in scores.bins:
        table.add_row(
            f"{row.low:.1f}–{row.high:.1f}",
            f"{row.pages:,}",
            f"{row.score:.2f}",
            f"{row.relevance:.2f}",
            f"{row.on_topic:.0%}",
            *([] if scores.by_labels is None else [_label_share(row)]),
        )
    return table


def _label_share(row: ScoreBin) -> str:
    """The share on topic by labels, with the number of labelled pages where some have none."""
    if row.labels is None:
        return "–"
    share = f"{row.labels.share:.0%}"
    return share if row.labels.pages == row.pages else f"{share} of {row.labels.pages:,}"


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
    folders: Sequence[Path],
    labels: CategoryLabels | None = None,
    good: Collection[str] | None = None,
) -> list[ComparedCrawl]:
    """Compare crawls; the baseline, breadth-first or else the last folder, comes last.

    Labels decide what is on topic when given, otherwise each crawl's classifier. Raises
    :class:`StateError` for an unreadable folder.
    """
    crawls = [read_crawl(folder) for folder in folders]
    crawls.sort(
        key=lambda crawl: policy_name(crawl) == BASELINE
    )  # stable: the others keep their order
    on_topic = [_on_topic_flags(crawl, labels, good) for crawl in crawls]
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
    folders: Sequence[Path],
    console: Console,
    picture: Path,
    labels: CategoryLabels | None = None,
    good: Collection[str] | None = None,
) -> list[ComparedCrawl]:
    """Print :func:`compare_crawls` as a table and draw the harvest curves to ``picture`` (PNG).

    Raises :class:`StateError` for an unreadable folder, OSError when ``picture`` cannot be written.
    """
    compared = compare_crawls(folders, labels, good)
    equal = min(len(each.on_topic) for each in compared)
    classifier = "classifier" if labels is None else "labels"
    table = Table(title=f"Harvest by {classifier}", title_justify="left")
    table.add_column("crawl")
    for column in ("fetched", "on topic", "harvest rate", f"rate of the first {equal:,}", "ratio"):
        table.add_column(column, justify="right")
    for each in compared:
        table.add_row(
            Text(single_line(each.name)),
            f"{len(each.on_topic):,}",
            f"{int(each.on_topic.sum()):,}",
            f"{each.rate:.1%}",
            f"{each.rate_at_equal:.1%}",
            "–" if each.ratio is None else f"{each.ratio:.2f}",
        )
    console.print(table)
    from focused.reports.crawl_plots import plot_harvest  # slow to import

    topics = dict.fromkeys(each.topic for each in compared if each.topic)
    plot_harvest({each.name: each.on_topic for each in compared}, picture, title=", ".join(topics))
    console.print(Text(single_line(f"Curves: {picture}")), soft_wrap=True)
    return compared


def _on_topic_flags(
    crawl: CrawlFolder, labels: CategoryLabels | None, good: Collection[str] | None
) -> NDArray[np.bool_]:
    if labels is None:
        return metrics.harvest_pages(crawl.pages)["on_topic"].to_numpy(dtype=bool)
    relevant = metrics.select_relevant_urls(labels, topic_categories(crawl, good))
    return metrics.relevance_by_labels(crawl.pages, relevant)


def _crawl_names(crawls: Sequence[CrawlFolder]) -> list[str]:
    """Name crawls by policy where that is unique, otherwise by folder."""
    policies = [policy_name(crawl) for crawl in crawls]
    if all(policies) and len(set(policies)) == len(policies):
        return ["breadth-first" if policy == BASELINE else policy for policy in policies]
    names = [crawl.path.name for crawl in crawls]
    return names if len(set(names)) == len(names) else [str(crawl.path) for crawl in crawls]
