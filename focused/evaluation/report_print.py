"""Prints a crawl's report as tables, and keeps its JSON and picture in the folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.evaluation import metrics
from focused.evaluation.crawl_folder import CrawlFolder, read_crawl
from focused.evaluation.harvest_plot import draw_harvest
from focused.evaluation.report import (
    CrawlReport,
    Labels,
    good_categories,
    make_report,
    write_report,
)
from focused.evaluation.wording import duration, odds, percent, plain, size


def print_report(
    folder: Path,
    console: Console,
    labels: Labels | None = None,
    good: Collection[str] | None = None,
) -> None:
    """Print the report of the crawl in ``folder``; write its ``report.json`` and ``harvest.png``.

    ``labels`` and ``good`` as for :func:`focused.evaluation.report.report_data`.
    Raises :class:`StateError` when the folder is missing, foreign or damaged;
    a folder that cannot be written is told and no error.
    """
    crawl = read_crawl(folder)
    report = make_report(crawl, labels, good)
    console.print(_figures(report))
    _print_lists(report, console)
    try:
        write_report(report, folder / "report.json")
        draw_harvest(_curves(crawl, report, labels, good), folder / "harvest.png", report.topic)
        console.print(Text(f"Curve: {folder / 'harvest.png'}"), soft_wrap=True)
    except OSError as error:
        console.print(Text(f"report.json and harvest.png could not be written: {error}"))


def _curves(
    crawl: CrawlFolder, report: CrawlReport, labels: Labels | None, good: Collection[str] | None
) -> dict[str, Sequence[bool]]:
    counted = metrics.harvest_pages(crawl.pages)
    name = report.policy or "crawl"
    if labels is None:
        return {name: counted["on_topic"].tolist()}
    relevant = metrics.relevant_urls(labels, good_categories(crawl, good))
    return {
        f"{name}, by labels": metrics.label_verdicts(crawl.pages, relevant).tolist(),
        f"{name}, by classifier": counted["on_topic"].tolist(),
    }


def _figures(report: CrawlReport) -> Table:
    judged = report.by_labels
    table = Table(title=Text(_title(report)), title_justify="left", show_header=judged is not None)
    table.add_column("")
    table.add_column("classifier", justify="right")
    if judged is not None:
        table.add_column("labels", justify="right")

    def add(name: str, value: str, by_labels: str = "") -> None:
        table.add_row(name, value, *([by_labels] if judged is not None else []))

    add("fetched", f"{report.fetched:,}", f"{judged.labelled:,} labelled" if judged else "")
    add("on topic", f"{report.on_topic:,}", f"{judged.on_topic:,}" if judged else "")
    add("harvest rate", f"{report.harvest_rate:.1%}", f"{judged.rate:.1%}" if judged else "")
    add(
        f"  over the last {metrics.WINDOW}",
        f"{report.harvest_last:.1%}",
        f"{judged.rate_last:.1%}" if judged else "",
    )
    if judged is not None:
        add("recall", "", f"{judged.recall:.1%} of {judged.relevant:,}")
        add("classifier's precision", "", f"{judged.precision:.1%}")
    for name, value in _plain_figures(report):
        add(name, value)
    return table


def _title(report: CrawlReport) -> str:
    by = f", {plain(report.policy)}" if report.policy else ""
    return f"{plain(report.topic)}{by}"


def _plain_figures(report: CrawlReport) -> list[tuple[str, str]]:
    """Name and value of every figure that has no second opinion."""
    rows = [
        ("hosts", f"{report.hosts:,}"),
        ("duplicates", f"{report.duplicates:,}"),
        ("redirects", f"{report.redirected:,}"),
        ("robots-excluded", f"{report.robots_excluded:,}"),
        ("links out of scope", f"{report.out_of_scope:,}"),
        ("errors", f"{sum(report.failures.values()):,}"),
        *((f"  {plain(kind)}", f"{count:,}") for kind, count in report.failures.items()),
    ]
    if report.training:
        rows.append(("training samples met", f"{report.training:,}"))
    if report.frontier is not None:
        rows.append(("left in the frontier", f"{report.frontier:,}"))
    return [
        *rows,
        ("score's calibration error", f"{report.calibration_error:.3f}"),
        ("downloaded", size(report.bytes)),
        ("duration", duration(report.duration_s)),
        ("pages per second", f"{report.pages_per_s:.1f}"),
        ("ended", plain(report.end_reason) or "not told: still running, or killed"),
    ]


def _print_lists(report: CrawlReport, console: Console) -> None:
    if report.top_hosts:
        hosts = Table(title="Hosts with most on-topic pages", title_justify="left")
        hosts.add_column("host")
        for name in ("on topic", "fetched", "rate"):
            hosts.add_column(name, justify="right")
        for row in report.top_hosts:
            rate = percent(row.on_topic, row.fetched)
            hosts.add_row(Text(plain(row.host)), f"{row.on_topic:,}", f"{row.fetched:,}", rate)
        console.print(hosts)
    if report.best_pages:
        best = Table(title="Best pages", title_justify="left")
        best.add_column("relevance", justify="right")
        best.add_column("page", overflow="fold")
        for page in report.best_pages:
            named = Text(plain(page.title, 80) or "(no title)")
            named.append(f"\n{plain(page.url)}", style="dim")
            best.add_row(f"{page.relevance:.2f}", named)
        console.print(best)
    if report.calibration:
        console.print(_reliability(report))


def _reliability(report: CrawlReport) -> Table:
    table = Table(title="Were the scores right?", title_justify="left")
    for name in ("score", "pages", "mean score", "relevance", "on topic"):
        table.add_column(name, justify="right")
    for row in report.calibration:
        table.add_row(
            f"{row.low:.1f}–{row.high:.1f}",
            f"{row.pages:,}",
            f"{row.score:.2f} ({odds(row.score)})",
            f"{row.relevance:.2f}",
            f"{row.on_topic:.0%}",
        )
    return table
