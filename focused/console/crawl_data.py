"""What the console shows of one crawl folder, running or not.

Rows of pages are read from the crawl's state, new ones only, or from its Parquet files; the
frontier from a snapshot of the state; live figures from the control folder. Nothing is written but
the control folder, and the crawl is not asked: reading costs it nothing.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from focused.archive.archive import PageRow, decode_page_links, decode_page_row
from focused.archive.crawl_tables import (
    open_tables,
    read_page_rows,
    read_scope,
    read_settings,
    read_stats,
)
from focused.corpus.page_selection import url_hash
from focused.crawl.frontier_editor import load_frontier
from focused.crawl.hosts.failures import DeadHosts
from focused.crawl.steering import ControlFolder
from focused.errors import StateError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.inspection import (
    HostSummary,
    count_totals,
    hosts_backing_off,
    link_to_json,
    summarise_host,
    top_hosts,
    top_links_overall,
)
from focused.reports.metrics import rolling_harvest, sample_indices
from focused.storage.environment import shared_lock
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables

LIVE_S = 5.0
"""A status that is older is not shown as live."""

_MAX_PATH = 50
_MAX_LINKS = 200
_MAX_IN_LINKS = 50
_SNAPSHOT_S = 5.0

_SORTS = {
    "relevance": lambda row: -(row.relevance or 0.0),
    "score": lambda row: -row.score,
    "newest": lambda row: -row.seq,
    "oldest": lambda row: row.seq,
    "host": lambda row: (row.host, row.seq),
}
_KINDS: Mapping[str, Callable[[PageRow], bool]] = {
    "all": lambda row: True,
    "on-topic": lambda row: row.on_topic and not row.training,
    "off-topic": lambda row: (
        row.outcome == "fetched" and not row.on_topic and row.duplicate_of is None
    ),
    "failed": lambda row: row.outcome == "failed",
    "redirected": lambda row: row.outcome == "redirected",
    "duplicate": lambda row: row.duplicate_of is not None,
    "training": lambda row: row.training,
}
Offset = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class PageQuery(msgspec.Struct, frozen=True):
    """Selects pages: ``text`` in URL, title or anchor, ``host``, ``kind``; from ``offset`` on."""

    text: str = ""
    host: str = ""
    kind: Literal[
        "all", "on-topic", "off-topic", "failed", "redirected", "duplicate", "training"
    ] = "all"
    sort: Literal["relevance", "score", "newest", "oldest", "host"] = "newest"
    offset: Offset = 0


_Stamp = tuple[tuple[int, int], ...]


class CrawlData:
    """One crawl folder. Methods may be called from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.control = ControlFolder(folder)
        self._lock = Lock()
        self._rows: list[PageRow] = []
        self._state_stamp: _Stamp | None = None
        """That of the state of a stopped crawl whose rows are known."""
        self._by_url: dict[str, int] = {}
        self._links = LinkIndex()
        self._frontier: dict[str, Any] = {}
        self._frontier_at = float("-inf")

    def is_running(self) -> bool:
        """Whether a crawl has the folder open."""
        try:
            with shared_lock(self.folder / "state"):
                return False
        except StateError:
            return True

    def summary(self) -> dict[str, Any]:
        """Return the crawl in one line of the list: topic, ordering, state, totals."""
        settings, stats = self._read(read_settings), self.totals()
        running = self.is_running()
        live = self.live() if running else None
        if live is not None and "stats" in live:
            stats = live["stats"]
        return {
            "folder": str(self.folder),
            "topic": settings.get("topic", {}).get("name", self.folder.name),
            "policy": settings.get("policy", ""),
            "is_running": running,
            "is_paused": bool(live and live.get("is_paused")),
            "end_reason": "" if running else stats.get("end_reason", ""),
            "fetched": stats.get("fetched"),
            "on_topic": stats.get("on_topic"),
            "classified": stats.get("classified"),
        }

    def live(self) -> dict[str, Any] | None:
        """Return the live status; None if there is none of the last seconds."""
        self.control.watch()
        status = self.control.read_status()
        if status is None or time.time() - float(status.get("at", 0.0)) > LIVE_S:
            return None
        return status

    def totals(self) -> Mapping[str, Any]:
        """Return the final totals of a crawl that ended; empty while it runs or after a kill."""
        return self._read(read_stats)

    def topic_file_and_web(self) -> tuple[str, str | None]:
        """Return the paths of the topic file, empty if unknown, and of the recorded web."""
        settings = self._read(read_settings)
        return str(settings.get("topic", {}).get("path", "")), settings.get("web")

    def refresh(self) -> int:
        """Read new page rows; return how many pages are known. Raises StateError."""
        # That of a killed crawl, or of an older format, is copied to be read.
        stamp = None if self.is_running() else _stamp_of(self.folder / "state")
        if stamp and stamp == self._state_stamp:
            return len(self._rows)
        with self._open_state() as store:
            if store is not None:
                start = len(self._rows).to_bytes(8, "big")
                for _, raw in store.tables.scan("pages", start=start):
                    self._add(decode_page_row(raw))
            elif not self._rows:
                with open_tables(self.folder) as tables:
                    rows = sorted(read_page_rows(tables), key=lambda row: row.fetched_at)
                for seq, row in enumerate(rows):  # each partition numbers its own
                    self._add(msgspec.structs.replace(row, seq=seq))
        self._state_stamp = stamp
        return len(self._rows)

    def _add(self, row: PageRow) -> None:
        self._by_url[row.url] = len(self._rows)
        self._rows.append(row)

    def harvest_curve(self, points: int) -> dict[str, list[float]]:
        """Return the harvest over the classified pages, at most ``points`` samples.

        ``pages``: number of classified pages; ``on_topic``: those on topic so far; ``rolling``: the
        harvest rate of the last 100.
        """
        rows = self._rows
        hits = [row.on_topic for row in rows[: len(rows)] if _counts_as_harvest(row)]
        at = sample_indices(len(hits), points)
        return {
            "pages": (at + 1).tolist(),
            "on_topic": np.cumsum(hits, dtype=float)[at].tolist(),
            "rolling": rolling_harvest(hits)[at].tolist(),
        }

    def pages(self, wanted: PageQuery, at_most: int) -> dict[str, Any]:
        """Return the pages that match, sorted; ``total`` is their number."""
        text, is_of_kind = wanted.text.casefold(), _KINDS[wanted.kind]
        found = [
            row
            for row in self._rows[: len(self._rows)]
            if is_of_kind(row)
            and (not wanted.host or row.host == wanted.host)
            and (not text or _contains(row, text))
        ]
        found.sort(key=_SORTS[wanted.sort])
        shown = found[wanted.offset : wanted.offset + at_most]
        return {"total": len(found), "pages": [_page_json(row) for row in shown]}

    def page(self, url: str) -> dict[str, Any] | None:
        """Return a page with its path from the seed and its links; None for an unknown URL."""
        if url not in self._by_url:
            with suppress(StateError):  # which the live events tell
                self.refresh()  # search and the link graph may know newer pages
        index = self._by_url.get(url)
        if index is None:
            return None
        row = self._rows[index]
        path = {url: _page_json(row)}  # by URL: parents may form a cycle
        parent = self._by_url.get(row.parent or "")
        while parent is not None and len(path) < _MAX_PATH:
            step = self._rows[parent]
            if step.url in path:
                break
            path[step.url] = _page_json(step)
            parent = self._by_url.get(step.parent or "")
        features = sorted(dict(row.features).items(), key=lambda each: -abs(each[1]))
        return {
            "page": _page_json(row),
            "path": list(path.values())[::-1],
            "features": features,
            "links": self._links_of(row),
            "in_links": self._links_to(row.url),
        }

    @contextmanager
    def _open_state(self) -> Iterator[StateStore | None]:
        """Open a snapshot of the crawl's state; None if it was removed."""
        # LMDB opens an environment once in a process.
        with self._lock:
            if not (self.folder / "state" / "data.mdb").is_file():
                yield None
                return
            with StateStore.open_for_reading(self.folder / "state") as (store, _):
                yield store

    def _links_of(self, row: PageRow) -> list[dict[str, Any]]:
        """Return the best-scored links of a page, with what became of them."""
        with self._open_state() as store:
            key = row.seq.to_bytes(8, "big")
            raw = None if store is None else store.tables.get("page_links", key)
        links = [] if raw is None else decode_page_links(raw)
        links.sort(key=lambda link: -(link.score or 0.0))
        return [
            self._link_json(link.target, link.anchor, link.score) for link in links[:_MAX_LINKS]
        ]

    def _links_to(self, url: str) -> dict[str, Any]:
        """Return the pages that link to a URL, the most relevant first, and their number."""
        with self._open_state() as store:
            if store is None:
                return self._stored_links_to(url)
            self._links.read(store.tables)
            sources = [seq for seq in self._links.sources(url) if seq < len(self._rows)]
            best = sorted((self._rows[seq] for seq in sources), key=_SORTS["relevance"])
            links = []
            for row in best[:_MAX_IN_LINKS]:
                raw = store.tables.get("page_links", row.seq.to_bytes(8, "big"))
                for link in () if raw is None else decode_page_links(raw):
                    if link.target == url:
                        links.append(self._link_json(row.url, link.anchor, link.score))
                        break
        return {"total": len(sources), "links": links}

    def _stored_links_to(self, url: str) -> dict[str, Any]:
        """Return them from the Parquet files."""
        from focused.reports.crawl_folder import read_links_to  # needs pandas

        with open_tables(self.folder) as tables:
            rows = {row["source"]: row for row in read_links_to(tables, url)}
        links = [
            self._link_json(row["source"], row["anchor"] or "", row["score"])
            for row in rows.values()
        ]
        links.sort(key=lambda link: -(link["relevance"] or 0.0))
        return {"total": len(links), "links": links[:_MAX_IN_LINKS]}

    def models(self) -> list[dict[str, Any]]:
        """Return the models that classified the crawl's pages, each with its first page, from 1."""
        first: dict[str, PageRow] = {}
        for row in self._rows[: len(self._rows)]:
            if row.model and row.outcome == "fetched":
                first.setdefault(row.model, row)
        return [
            {"name": name, "page": row.seq + 1, "since": row.fetched_at}
            for name, row in first.items()
        ]

    def _link_json(self, url: str, anchor: str, score: float | None) -> dict[str, Any]:
        index = self._by_url.get(url)
        target = None if index is None else self._rows[index]
        return {
            "url": url,
            "title": "" if target is None else target.title,
            "anchor": anchor,
            "score": score,
            "outcome": "" if target is None else target.failure or target.outcome,
            "relevance": None if target is None else target.relevance,
            "on_topic": target is not None and target.on_topic,
        }

    def hosts(self, at_most: int) -> list[dict[str, Any]]:
        """Return the hosts with most pages: pages, harvest, failures, bytes, and their queue."""
        pages, relevant, failed = Counter[str](), Counter[str](), Counter[str]()
        bytes_ = Counter[str]()
        for row in self._rows[: len(self._rows)]:
            if row.outcome == "fetched":
                pages[row.host] += 1
                relevant[row.host] += row.on_topic
            elif row.outcome == "failed":
                failed[row.host] += 1
            bytes_[row.host] += row.bytes
        most = [name for name, _ in (pages + failed).most_common(at_most)]
        queued = self._frontier_hosts(most)
        return [
            {
                "host": name,
                "pages": pages[name],
                "on_topic": relevant[name],
                "failed": failed[name],
                "bytes": bytes_[name],
                **queued.get(name, {}),
            }
            for name in most
        ]

    def _frontier_hosts(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        now = time.time()
        with self._open_frontier() as found:
            if found is None:
                return {}
            frontier, host_json = found
            known = [host for name in names if (host := frontier.hosts.known(name)) is not None]
            rows = (host_json(summarise_host(frontier, host, now)) for host in known)
            return {row["name"]: {key: row[key] for key in ("queued", "waits")} for row in rows}

    def frontier(self, at_most: int) -> dict[str, Any]:
        """Return totals, hosts and best links of the frontier, at most some seconds old.

        Empty without a state.
        """
        if time.monotonic() - self._frontier_at > _SNAPSHOT_S:
            self._frontier = self._read_frontier(at_most)
            self._frontier_at = time.monotonic()
        return self._frontier

    def _read_frontier(self, at_most: int) -> dict[str, Any]:
        now = time.time()
        with self._open_frontier() as found:
            if found is None:
                return {}
            frontier, host_json = found
            resting = hosts_backing_off(frontier, at_most, now)
            return {
                "totals": asdict(count_totals(frontier, now)),
                "hosts": list(map(host_json, top_hosts(frontier, at_most, now))),
                "backing_off": list(map(host_json, resting)),
                "links": list(map(link_to_json, top_links_overall(frontier, at_most))),
            }

    @contextmanager
    def _open_frontier(
        self,
    ) -> Iterator[tuple[DiskFrontier, Callable[[HostSummary], dict[str, Any]]] | None]:
        """Open a snapshot of the frontier, with a function that shows a host; None without one."""
        with self._open_state() as store:
            if store is None:
                yield None
                return
            dead = DeadHosts(store.tables)

            def host_json(host: HostSummary) -> dict[str, Any]:
                return {**asdict(host), "waits": _why_it_waits(host, dead.why(host.name))}

            scope = None
            with suppress(StateError):
                scope = read_scope(self.folder)
            yield load_frontier(store.tables, scope)[0], host_json

    def _read(self, read: Callable[[Path], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return what ``read`` reads of the folder; empty if it is damaged."""
        try:
            return read(self.folder)
        except StateError:
            return {}


def _stamp_of(state: Path) -> _Stamp:
    """Return times and sizes of a state's files; empty without them."""
    with suppress(OSError):
        found = [(state / name).stat() for name in ("data.mdb", "journal")]
        return tuple((each.st_mtime_ns, each.st_size) for each in found)
    return ()


def _why_it_waits(host: HostSummary, dead: str | None) -> str:
    """Return why the host's best link is not fetched now, in words."""
    if dead:
        return f"dead: {dead}"
    if not host.queued:
        return "no links"
    if host.full:
        return "budget spent"
    if not host.due_in_s:
        return "due"
    reason = "crawl-delay" if host.crawl_delay_s else "delay"
    if host.suspensions:
        reason = "suspended"
    elif host.failures:
        reason = "backs off"
    return f"{reason}, {host.due_in_s:.0f} s"


def _counts_as_harvest(row: PageRow) -> bool:
    return row.outcome == "fetched" and not row.training


def _contains(row: PageRow, text: str) -> bool:
    return any(text in part.casefold() for part in (row.url, row.title or "", row.anchor or ""))


_SHOWN = (
    "seq", "url", "host", "status", "relevance", "on_topic", "score", "depth", "parent", "language",
    "bytes", "duplicate_of", "training", "fetched_at",
)  # fmt: skip


def _page_json(row: PageRow) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in _SHOWN},
        "title": row.title or "",
        "anchor": row.anchor or "",
        "outcome": row.failure or row.outcome,
    }


class LinkIndex:
    """In-links by the hash of their target; :meth:`read` adds what is new.

    A link takes 12 bytes of memory: the hash of its target and the number of its page.
    """

    def __init__(self) -> None:
        self._targets = array("Q")
        self._sources = array("L")
        self._read_up_to = 0

    def __len__(self) -> int:
        return len(self._targets)

    def read(self, tables: Tables) -> None:
        """Add the links of pages that were stored since the last call."""
        for key, raw in tables.scan("page_links", start=self._read_up_to.to_bytes(8, "big")):
            source = int.from_bytes(key, "big")
            for link in decode_page_links(raw):
                self._targets.append(url_hash(link.target))
                self._sources.append(source)
            self._read_up_to = source + 1

    def sources(self, url: str) -> list[int]:
        """Return the numbers of the pages that link to ``url``, ascending."""
        if not self._targets:
            return []
        targets = np.frombuffer(self._targets, np.uint64)
        found = np.flatnonzero(targets == np.uint64(url_hash(url)))
        return sorted({self._sources[place] for place in found.tolist()})
