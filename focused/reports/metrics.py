"""Harvest metrics as pure functions of a crawl's pages.

``pages`` is a frame with the columns of :data:`focused.archive.parquet.PAGES_SCHEMA` that the
function names, in the order they were settled. Harvest counts fetched pages except training
samples; redirects, failures and feeds are no pages. A duplicate of an on-topic page counts as off
topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd  # an extra, which those who have no frames need not install

ROLLING_WINDOW = 100
"""Number of pages of the rolling harvest rate."""


def harvest_pages(pages: pd.DataFrame) -> pd.DataFrame:
    """Select the pages that harvest counts: fetched and no training samples."""
    return pages[(pages["outcome"] == "fetched") & ~pages["training"].astype(bool)]


def harvest_rate(on_topic: ArrayLike) -> float:
    """The share of pages on topic, in [0, 1]; 0 of no pages.

    ``on_topic`` has shape (n,).
    """
    flags = np.asarray(on_topic, dtype=bool)
    return float(flags.mean()) if flags.size else 0.0


def count_since_relevant(on_topic: ArrayLike) -> int:
    """Count the pages after the last one on topic; all of them if none is.

    ``on_topic`` has shape (n,).
    """
    flags = np.asarray(on_topic, dtype=bool)
    found = np.flatnonzero(flags)
    return int(flags.size - 1 - found[-1]) if found.size else int(flags.size)


def cumulative_harvest(on_topic: ArrayLike) -> NDArray[np.float64]:
    """The harvest rate after each page, shape (n,)."""
    flags = np.asarray(on_topic, dtype=np.float64)
    return np.cumsum(flags) / np.arange(1, flags.size + 1)


def rolling_harvest(on_topic: ArrayLike, window: int = ROLLING_WINDOW) -> NDArray[np.float64]:
    """The harvest rate over the last ``window`` pages, shape (n,)."""
    flags = np.asarray(on_topic, dtype=np.float64)
    total = np.concatenate(([0.0], np.cumsum(flags)))
    end = np.arange(1, flags.size + 1)
    start = np.maximum(end - window, 0)
    return (total[end] - total[start]) / (end - start)


def sample_indices(count: int, most: int, first: int = 0) -> NDArray[np.int64]:
    """At most ``most`` evenly spaced indices from ``first`` to ``count`` - 1, both included."""
    if first >= count:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.linspace(first, count - 1, most, dtype=np.int64))


def count_failures(pages: pd.DataFrame) -> dict[str, int]:
    """Count failed URLs by kind, most frequent first."""
    kinds = pages.loc[pages["outcome"] == "failed", "failure"].value_counts()
    return {str(kind): int(count) for kind, count in kinds.items()}


def count_duplicates(pages: pd.DataFrame, kind: str | None = None) -> int:
    """Count the pages that duplicate an earlier one, all or of one ``kind`` (exact, near)."""
    counted = harvest_pages(pages)
    found = counted["duplicate_of"].notna() if kind is None else counted["duplicate_kind"].eq(kind)
    return int(found.sum())


def rank_hosts_by_harvest(pages: pd.DataFrame) -> pd.DataFrame:
    """Harvest by host, most on-topic pages first: ``host``, ``fetched``, ``on_topic``."""
    by_host = harvest_pages(pages).groupby("host")
    hosts = by_host.agg(fetched=("on_topic", "size"), on_topic=("on_topic", "sum")).reset_index()
    order = ["on_topic", "fetched", "host"]
    return hosts.sort_values(order, ascending=[False, True, True], ignore_index=True)


def select_relevant_urls(
    labels: Mapping[str, Collection[str]], good: Collection[str]
) -> frozenset[str]:
    """The URLs with a category that equals or lies below one of ``good``."""
    below = tuple(f"{category}/" for category in good)
    return frozenset(
        url
        for url, categories in labels.items()
        if any(f"{category}/".startswith(below) for category in categories)
    )


@dataclass(frozen=True, slots=True)
class LabelHarvest:
    """The harvest according to ground-truth labels; shares in [0, 1].

    ``labelled`` pages have a label, ``on_topic`` a good one; unlabelled pages count against
    ``rate``. ``recall`` is the fetched share of the ``relevant`` URLs, training samples left out.
    ``precision`` is the share of the classifier's on-topic pages that the labels confirm.
    """

    labelled: int
    on_topic: int
    rate: float
    rate_last: float
    relevant: int
    recall: float
    precision: float


def relevance_by_labels(pages: pd.DataFrame, relevant: Collection[str]) -> NDArray[np.bool_]:
    """On topic by labels, for each page that harvest counts, shape (n,).

    Of several copies of one content the first with a good label is on topic; none if a training
    sample has that content.
    """
    counted = harvest_pages(pages)
    content = counted["duplicate_of"].fillna(counted["url"])
    good = counted["url"].isin(list(relevant)) & ~content.isin(_training_urls(pages))
    return (good & ~content.where(good).duplicated()).to_numpy(dtype=bool)


def _training_urls(pages: pd.DataFrame) -> list[str]:
    return [str(url) for url in pages.loc[pages["training"].astype(bool), "url"]]


def measure_label_harvest(
    pages: pd.DataFrame, labels: Mapping[str, Collection[str]], good: Collection[str]
) -> LabelHarvest:
    """Measure the harvest by ``labels`` (URL to categories); ``good`` are the topic's
    categories.
    """
    counted = harvest_pages(pages)
    relevant = select_relevant_urls(labels, good).difference(_training_urls(pages))
    flags = relevance_by_labels(pages, relevant)
    agreed = counted["url"].isin(list(relevant)).to_numpy(dtype=bool)
    found = counted.loc[agreed, "url"].nunique()
    return LabelHarvest(
        labelled=int(counted["url"].isin(list(labels)).sum()),
        on_topic=int(flags.sum()),
        rate=harvest_rate(flags),
        rate_last=harvest_rate(flags[-ROLLING_WINDOW:]),
        relevant=len(relevant),
        recall=found / len(relevant) if relevant else 0.0,
        precision=harvest_rate(agreed[counted["on_topic"].to_numpy(dtype=bool)]),
    )
