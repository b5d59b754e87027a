"""Views of a crawl in the console that other commands prepare: its search index and link graph."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from focused.errors import FocusedError, SearchError, missing_extra
from focused.link_graph.measures import LinkReport, build_link_report
from focused.link_graph.page_graph import read_graph_info

_RESULTS = 20


class CrawlSearchView:
    """The search index of one crawl. Methods may be called from several threads."""

    def __init__(self, crawl: Path) -> None:
        self._crawl = crawl
        self._lock = Lock()
        self._update: Thread | None = None
        self._done = self._of = 0
        self._error = ""

    def search(self, text: str, *, on_topic: bool, offset: int) -> dict[str, Any]:
        """Return hits and the state of the index; no hits without text.

        ``indexed`` is None without an index, ``error`` says why the last update failed. Raises
        FocusedError for a query that cannot be read.
        """
        is_updating = self._update is not None and self._update.is_alive()
        found: dict[str, Any] = {
            "hits": [],
            "total": 0,
            "indexed": None,
            "is_updating": is_updating,
            "done": self._done,
            "of": self._of,
            "error": self._error,
        }
        try:
            from focused.search.query import CrawlSearch, SearchQuery

            searching = CrawlSearch(self._crawl)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "search") or error from None
        except SearchError:
            return found
        found["indexed"] = searching.indexed
        if text.strip():
            query = SearchQuery(text, _RESULTS, offset, on_topic=on_topic)
            found |= asdict(searching.search(query))
        return found

    def start_update(self, now: float) -> None:
        """Index what is new, in a thread; does nothing while that runs."""
        with self._lock:
            if self._update is not None and self._update.is_alive():
                return
            self._done = self._of = 0
            self._error = ""
            self._update = Thread(target=self._run_update, args=(now,), daemon=True)
            self._update.start()

    def _run_update(self, now: float) -> None:
        def progress(done: int, of: int) -> None:
            self._done, self._of = done, of

        try:
            from focused.search.index import update_index

            update_index(self._crawl, now=now, progress=progress)
        except ModuleNotFoundError as error:
            self._error = str(missing_extra(error, "search") or error)
        except (FocusedError, OSError) as error:
            self._error = str(error)


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
