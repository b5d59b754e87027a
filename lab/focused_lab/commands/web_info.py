"""The tables of ``focused web info``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.reports.formatting import single_line
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import RecordedWeb

_MAX_ROWS = 20


def print_web_info(folder: Path) -> None:
    """Print pages, redirects, hosts, categories and damage of a recorded web."""
    with RecordedWeb.open(folder) as opened:
        redirects = sum(300 <= (opened.status(url) or 0) < 400 for url in opened.urls)
        hosts = Counter(host_of(url) for url in opened.page_urls)
        categories = Counter(chain.from_iterable(opened.labels.values()))
        rows = {
            "pages": len(opened.page_urls),
            "redirects": redirects,
            "other responses": len(opened) - len(opened.page_urls) - redirects,
            "hosts": len(hosts),
            "labelled pages": len(opened.labels),
            "damaged records": opened.damaged,
            "bytes": sum(file.stat().st_size for file in folder.glob("*.warc.gz")),
        }
        name = str(opened.details.get("name", folder.name))
    console = Console()
    console.print(_counts(name, list(rows.items())))
    for title, counts in (("Hosts", hosts), ("Categories", categories)):
        console.print(_counts(title, counts.most_common()))


def _counts(title: str, counts: Sequence[tuple[str, int]]) -> Table:
    table = Table(title=Text(single_line(title)), title_justify="left", show_header=False)
    for name, count in counts[:_MAX_ROWS]:
        table.add_row(Text(single_line(name)), f"{count:,}")
    if len(counts) > _MAX_ROWS:
        rest = sum(count for _, count in counts[_MAX_ROWS:])
        table.add_row(f"{len(counts) - _MAX_ROWS} more", f"{rest:,}")
    return table
