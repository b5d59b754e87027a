"""The link graph of a recorded web: which page leads to which by one click.

Pages are the recorded URLs that answer with 200. Page i links to page j when a crawl could follow a
link from i to j, over redirects if any; nofollow links, nofollow pages and robots.txt are
respected. A topic's scope is not: it differs between topics.

Building the graph parses every page. It is stored in the cache folder of
:class:`~focused_lab.simulation.parsed_web.ParsedWeb`, which is discarded when WARC files or
parser change.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from focused.files import atomic_write_path
from focused.text.content_signatures import content_fingerprint
from focused.web.http_response import outcome_from_response
from focused.web.page import Fetched, Page, Redirected
from focused.web.robots.robots_rules import RobotsRules, rules_from_fetch
from focused.web.urls import robots_url
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.parsed_web import CACHE_FOLDER, ParsedWeb

GRAPH_FILE = "links-2.npz"
"""Raise the number when the file's content, or how it is computed, changes."""

MAX_REDIRECTS = 10
_ANY_ROBOT = "*"
_PAGES_PER_REPORT = 100

GraphProgress = Callable[[int, int], object]
"""``(pages done, pages in all)``, called about every hundred pages and at the end."""


@dataclass(frozen=True)
class LinkGraph:
    """Pages and the links between them, by index; n pages.

    ``urls`` are recorded URLs. ``links``, shape (n, n), is 1 where the row's page links to the
    column's, without self-links. ``fetchable``, shape (n,), is False where robots.txt disallows any
    robot or the page cannot be parsed. ``first_duplicate``, shape (n,), is the index of the first
    page with the same content (:func:`~focused.text.content_signatures.content_fingerprint`), or
    the page's own.
    """

    urls: Sequence[str]
    links: csr_array
    fetchable: NDArray[np.bool_]
    first_duplicate: NDArray[np.int32]

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The page's index by recorded URL."""
        return {url: place for place, url in enumerate(self.urls)}

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of pages that link to each page, shape (n,)."""
        return np.bincount(self.links.indices, minlength=len(self.urls))

    def distances(
        self, targets: NDArray[np.bool_], passable: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]:
        """Clicks from each page to the nearest of ``targets``, shape (n,); -1 if unreachable.

        0 for a target itself. ``passable``, shape (n,), restricts the pages of a path; by default
        to all fetchable ones.
        """
        return self._count_clicks(self.links, targets, passable)

    def depths(
        self, seeds: NDArray[np.bool_], passable: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]:
        """Clicks from the nearest of ``seeds`` to each page, shape (n,); -1 if unreachable.

        0 for a seed itself; ``passable`` as in :meth:`distances`.
        """
        return self._count_clicks(self.links.T, seeds, passable)

    def _count_clicks(
        self, links: Any, ends: NDArray[np.bool_], passable: NDArray[np.bool_] | None
    ) -> NDArray[np.int32]:
        """Walk breadth-first from ``ends``; ``links[i, j]`` is 1 where a step leads from j to i."""
        passable = self.fetchable if passable is None else passable
        counted = np.full(len(self.urls), -1, dtype=np.int32)
        edge = ends & passable
        clicks = 0
        while edge.any():
            counted[edge] = clicks
            clicks += 1
            next_pages = (links @ edge.astype(np.int32)) > 0
            edge = next_pages & passable & (counted < 0)
        return counted


def open_link_graph(web: ParsedWeb, progress: GraphProgress | None = None) -> LinkGraph:
    """Read the web's link graph, or build and store it, which takes minutes for a new web.

    Raises RecordedWebError when a record is not where the index says.
    """
    path = web.web.folder / CACHE_FOLDER / GRAPH_FILE
    kept = _read_graph(path)
    if kept is not None:
        return kept
    graph = build_link_graph(web, progress)
    _write_graph(path, graph)
    return graph


def build_link_graph(web: ParsedWeb, progress: GraphProgress | None = None) -> LinkGraph:
    """Parse every page and collect its links."""
    urls = web.web.page_urls
    index = {url: place for place, url in enumerate(urls)}
    redirects = RedirectResolver(web.web)
    robots = _RobotsRulesBySite(web)
    fetchable = np.zeros(len(urls), dtype=np.bool_)
    first_duplicate = np.arange(len(urls), dtype=np.int32)
    first_with: dict[bytes, int] = {}
    rows: list[NDArray[np.int64]] = []
    for place, url in enumerate(urls):
        page = _page_of_url(web, url)
        fetchable[place] = page is not None and robots.allow(url)
        if page is not None:
            first_duplicate[place] = first_with.setdefault(content_fingerprint(page), place)
        targets = {
            index.get(redirects.resolve(target) or "", -1) for target in _followable_urls(page)
        }
        rows.append(np.array(sorted(targets - {-1, place}), dtype=np.int64))
        if progress is not None and (place + 1) % _PAGES_PER_REPORT == 0:
            progress(place + 1, len(urls))
    if progress is not None:
        progress(len(urls), len(urls))
    ends_of_rows = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    return LinkGraph(urls, _link_matrix(columns, ends_of_rows), fetchable, first_duplicate)


class RedirectResolver:
    """Follows redirects on a recorded web, with a cache."""

    def __init__(self, web: RecordedWeb) -> None:
        self._web = web
        self._known: dict[str, str | None] = {}

    def resolve(self, url: str) -> str | None:
        """The recorded page at which a request for ``url`` ends, or None."""
        if url not in self._known:
            self._known[url] = self._follow(url)
        return self._known[url]

    def _follow(self, url: str) -> str | None:
        for _ in range(MAX_REDIRECTS + 1):
            found = self._web.find(url)
            if found is None or not 300 <= (self._web.status(found) or 0) < 400:
                return found if found is not None and self._web.status(found) == 200 else None
            response = self._web.get(found)
            if response is None:
                return None
            outcome = outcome_from_response(response.status, response.headers, url, b"", 0.0, 0.0)
            if not isinstance(outcome, Redirected):
                return None
            url = outcome.target
        return None


class _RobotsRulesBySite:
    """The rules of the web's robots.txt files for any robot."""

    def __init__(self, web: ParsedWeb) -> None:
        self._web = web
        self._rules: dict[str, RobotsRules] = {}

    def allow(self, url: str) -> bool:
        where = robots_url(url)
        rules = self._rules.get(where)
        if rules is None:
            rules = rules_from_fetch(self._web.answer(where, 0.0, 0.0), 0.0)
            self._rules[where] = rules
        return rules.allows(url, _ANY_ROBOT)


def _page_of_url(web: ParsedWeb, url: str) -> Page | None:
    answer = web.answer(url, 0.0, 0.0)
    page = web.parse(answer) if isinstance(answer, Fetched) else None
    return page if isinstance(page, Page) else None


def _followable_urls(page: Page | None) -> list[str]:
    """The links that a crawl follows from a page, as :mod:`focused.crawl.enqueue` does."""
    if page is None or page.nofollow:
        return []
    onward = [link.url for link in page.links if not link.nofollow]
    return onward if page.refresh is None else [*onward, page.refresh]


def _link_matrix(columns: NDArray[np.int64], ends_of_rows: NDArray[np.int64]) -> csr_array:
    size = len(ends_of_rows) - 1
    # Sums along a row of a large web overflow smaller integers.
    ones = np.ones(len(columns), dtype=np.int32)
    return csr_array((ones, columns.astype(np.int32), ends_of_rows), shape=(size, size))


def _write_graph(path: Path, graph: LinkGraph) -> None:
    """Write the file atomically; ignore folders that are not writable."""
    # Pass a file object, because numpy appends a suffix to a path.
    with suppress(OSError), atomic_write_path(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            urls=np.frombuffer("\n".join(graph.urls).encode(), dtype=np.uint8),
            columns=graph.links.indices,
            ends_of_rows=graph.links.indptr.astype(np.int64),
            fetchable=graph.fetchable,
            first_duplicate=graph.first_duplicate,
        )


def _read_graph(path: Path) -> LinkGraph | None:
    try:
        with path.open("rb") as file, np.load(file) as kept:
            urls = tuple(kept["urls"].tobytes().decode().split("\n"))
            columns, ends_of_rows = kept["columns"], kept["ends_of_rows"]
            fetchable, first_duplicate = kept["fetchable"], kept["first_duplicate"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    if not len(urls) == len(fetchable) == len(first_duplicate) == len(ends_of_rows) - 1:
        return None
    return LinkGraph(urls, _link_matrix(columns, ends_of_rows), fetchable, first_duplicate)
