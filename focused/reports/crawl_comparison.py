"""Compare the harvest of several finished crawls of one topic."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.orderings.policy_names import BASELINE
from focused.reports import metrics
from focused.reports.crawl_folder import CrawlFolder, read_crawl
from focused.reports.crawl_plots import plot_harvest
from focused.reports.crawl_report import CategoryLabels, policy_name, topic_categories
from focused.reports.formatting import single_line


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
