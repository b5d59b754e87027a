"""Crawl folders made by hand, for tests that read what a crawl left."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA
from focused.reports.crawl_folder import read_crawl
from focused.reports.crawl_report import build_report, report_to_dict
from focused.storage.arrow_columns import rows_as_table, times_as_seconds

_PAGE: dict[str, Any] = {
    "outcome": "fetched",
    "status": 200,
    "failure": "",
    "title": "",
    "relevance": 0.1,
    "on_topic": False,
    "score": 0.5,
    "features": {},
    "depth": 1,
    "parent": "http://seed.example/",
    "anchor": "",
    "language": "en",
    "content_type": "text/html",
    "bytes": 1000,
    "duplicate_of": None,
    "duplicate_kind": None,
    "points_to": None,
    "training": False,
    "found_at": 0.0,
    "elapsed_s": 0.1,
    "policy": "focused",
    "warc_offset": None,
}


def page(url: str, **columns: Any) -> dict[str, Any]:
    """A row of ``pages.parquet``: fetched and off topic unless ``columns`` say otherwise."""
    return {**_PAGE, "url": url, "host": url.split("/")[2], **columns}


def good_page(url: str, **columns: Any) -> dict[str, Any]:
    """A row of a page on topic."""
    return page(url, **{"relevance": 0.9, "on_topic": True, **columns})


def failed(url: str, failure: str, **columns: Any) -> dict[str, Any]:
    """A row of a URL that gave no page."""
    nothing = {"outcome": "failed", "status": 0, "relevance": None, "bytes": 0}
    return page(url, **nothing, failure=failure, **columns)


def frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows as the frame that reading a crawl's folder gives."""
    return times_as_seconds(_table(rows)).drop(["features"]).to_pandas()


def write_crawl(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    links: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any] | None = None,
    stats: Mapping[str, Any] | None = None,
) -> Path:
    """A crawl's folder with these rows; ``settings.json`` and ``stats.json`` when given."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(_table(rows), folder / "pages.parquet")
    whole = [{"anchor": "", "position": 0.0, "nofollow": False, **link} for link in links]
    pq.write_table(pa.Table.from_pylist(whole, LINKS_SCHEMA), folder / "links.parquet")
    for name, value in (("settings.json", settings), ("stats.json", stats)):
        if value is not None:
            (folder / name).write_text(json.dumps(value))
    return folder


def report_as_dict(
    folder: Path, labels: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """The report of the crawl in ``folder``, as ``report.json`` has it."""
    return report_to_dict(build_report(read_crawl(folder), labels))


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    numbered = [{"seq": seq, "fetched_at": float(seq), **row} for seq, row in enumerate(rows)]
    return rows_as_table(numbered, PAGES_SCHEMA)
