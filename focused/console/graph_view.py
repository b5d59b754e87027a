"""The hubs and authorities of a crawl's topic in the console, from the link graph beside it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from focused.link_graph.page_graph import read_graph_info
from focused.reports.link_report import LinkReport, build_link_report


class LinkGraphView:
    """The link report of one crawl. Methods may be called from several threads."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is the link graph's, whether there is one or not."""
        self._folder = folder
        self._lock = Lock()
        self._generation = 0
        self._report: LinkReport | None = None

    def report(self) -> dict[str, Any] | None:
        """Return the report of the current graph, None without one.

        ``until`` is when the newest page of the graph was fetched, in seconds since the epoch.
        Raises StateError for a damaged graph.
        """
        with self._lock:
            info = read_graph_info(self._folder)
            if info is None:
                return None
            if self._report is None or info.generation != self._generation:
                self._report = build_link_report(self._folder)
                self._generation = info.generation
            until = max((source.until for source in info.sources), default=None)
            return {"until": until, **asdict(self._report)}
