"""Crawls of one topic side by side: how much better did one order its pages?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.evaluation import metrics
from focused.evaluation.crawl_folder import CrawlFolder, read_crawl
from focused.evaluation.findings.grid import BASELINE
from focused.evaluation.harvest_plot import draw_harvest
from focused.evaluation.report import Labels, good_categories, policy_of
from focused.evaluation.wording import plain


@dataclass(frozen=True, slots=True)
class Contender:
    """One crawl of a comparison.

    ``verdicts`` has shape (fetched,), on topic or not, in the order of
    fetching. ``rate`` is the harvest rate of all of them, ``rate_at_equal``
    that of the first pages, as many as every contender fetched; ``ratio``
    compares the latter with the baseline's, None where the baseline's is 0.
    """

    name: str
    topic: str
    verdicts: NDArray[np.bool_]
    rate: float
    rate_at_equal: float
    ratio: float | None


def compare(
    folders: Sequence[Path], labels: Labels | None = None, good: Collection[str] | None = None
) -> list[Contender]:
    """Compare crawls, the baseline last: the breadth-first one, or else the last folder.

    The verdicts are the labels' when there are labels, otherwise each
    crawl's own classifier's. Raises :class:`StateError` for a folder that
    cannot be read.
    """
    crawls = [read_crawl(folder) for folder in folders]
    crawls.sort(key=lambda crawl: policy_of(crawl) == BASELINE)  # stable: others keep their order
    verdicts = [_verdicts(crawl, labels, good) for crawl in crawls]
    equal = min(len(each) for each in verdicts)
    base = metrics.harvest_rate(verdicts[-1][:equal])
    return [
        Contender(
            name=name,
            topic=str(crawl.topic.get("name", "")),
            verdicts=each,
            rate=metrics.harvest_rate(each),
            rate_at_equal=metrics.harvest_rate(each[:equal]),
            ratio=metrics.harvest_rate(each[:equal]) / base if base else None,
        )
        for name, crawl, each in zip(_names(crawls), crawls, verdicts, strict=True)
    ]


def compare_reports(
    folders: Sequence[Path],
    console: Console,
    picture: Path,
    labels: Labels | None = None,
    good: Collection[str] | None = None,
) -> list[Contender]:
    """Print :func:`compare` as a table and draw its curves to ``picture`` (PNG).

    Raises :class:`StateError` for a folder that cannot be read, OSError when
    ``picture`` cannot be written.
    """
    contenders = compare(folders, labels, good)
    equal = min(len(each.verdicts) for each in contenders)
    judge = "classifier" if labels is None else "labels"
    table = Table(title=f"Harvest by {judge}", title_justify="left")
    table.add_column("crawl")
    for column in ("fetched", "on topic", "harvest rate", f"rate of the first {equal:,}", "ratio"):
        table.add_column(column, justify="right")
    for each in contenders:
        table.add_row(
            Text(plain(each.name)),
            f"{len(each.verdicts):,}",
            f"{int(each.verdicts.sum()):,}",
            f"{each.rate:.1%}",
            f"{each.rate_at_equal:.1%}",
            "–" if each.ratio is None else f"{each.ratio:.2f}",
        )
    console.print(table)
    topics = dict.fromkeys(each.topic for each in contenders if each.topic)
    draw_harvest(
        {each.name: each.verdicts for each in contenders}, picture, title=", ".join(topics)
    )
    console.print(Text(plain(f"Curves: {picture}")), soft_wrap=True)
    return contenders


def _verdicts(
    crawl: CrawlFolder, labels: Labels | None, good: Collection[str] | None
) -> NDArray[np.bool_]:
    if labels is None:
        return metrics.harvest_pages(crawl.pages)["on_topic"].to_numpy(dtype=bool)
    relevant = metrics.relevant_urls(labels, good_categories(crawl, good))
    return metrics.label_verdicts(crawl.pages, relevant)


def _names(crawls: Sequence[CrawlFolder]) -> list[str]:
    """Policies where they tell the crawls apart, otherwise folders."""
    policies = [policy_of(crawl) for crawl in crawls]
    if all(policies) and len(set(policies)) == len(policies):
        return ["breadth-first" if policy == BASELINE else policy for policy in policies]
    names = [crawl.path.name for crawl in crawls]
    return names if len(set(names)) == len(names) else [str(crawl.path) for crawl in crawls]
