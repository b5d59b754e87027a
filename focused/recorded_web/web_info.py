"""Count the pages, redirects, hosts, links and categories of a recorded web.

Counting links parses every page, so the count is stored in ``web.json`` and repeated only if the
WARC files have changed.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from focused.recorded_web.recorded_web import RecordedWeb, write_details
from focused.recorded_web.web_index import warc_file_sizes
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched
from focused.web.urls import host_of

_EVERY_PAGES = 50

PageProgress = Callable[[int, int], None]
"""Called with the number of pages done and the total."""


@dataclass(frozen=True, slots=True)
class WebInfo:
    """Counts of a recorded web; pairs are in descending order.

    ``links`` counts the pairs of a page and another page that it links to, directly or by a
    recorded redirect. ``categories`` counts labelled pages, ``hosts`` pages. ``other`` are
    responses that are neither page nor redirect. ``size_bytes`` is the size of the WARC files.
    """

    name: str
    builder: str
    pages: int
    redirects: int
    other: int
    damaged: int
    size_bytes: int
    links: int
    labelled_pages: int
    hosts: tuple[tuple[str, int], ...]
    categories: tuple[tuple[str, int], ...]


def web_info(folder: Path, progress: PageProgress = lambda done, whole: None) -> WebInfo:
    """Count what the recorded web in ``folder`` contains.

    ``progress`` is called while pages are parsed. Raises RecordedWebError if there is no readable
    web.
    """
    with RecordedWeb.open(folder) as web:
        statuses = [web.status(url) or 0 for url in web.urls]
        redirects = sum(300 <= status < 400 for status in statuses)
        hosts = Counter(host_of(url) for url in web.page_urls)
        categories = Counter(
            category for categories in web.labels.values() for category in categories
        )
        return WebInfo(
            name=str(web.details.get("name", folder.name)),
            builder=str(web.details.get("builder", "")),
            pages=len(web.page_urls),
            redirects=redirects,
            other=len(web) - len(web.page_urls) - redirects,
            damaged=web.damaged,
            size_bytes=sum(file.stat().st_size for file in folder.glob("*.warc.gz")),
            links=_links(web, progress),
            labelled_pages=len(web.labels),
            hosts=tuple(hosts.most_common()),
            categories=tuple(categories.most_common()),
        )


def _links(web: RecordedWeb, progress: PageProgress) -> int:
    state = warc_file_sizes(sorted(web.folder.glob("*.warc.gz")))
    kept = web.details.get("measured")
    if isinstance(kept, dict) and kept.get("state") == state:
        return int(kept["links"])
    links = count_links(web, progress)
    # A read-only folder is counted each time.
    with contextlib.suppress(OSError):
        write_details(web.folder, {**web.details, "measured": {"state": state, "links": links}})
    return links


def count_links(web: RecordedWeb, progress: PageProgress = lambda done, whole: None) -> int:
    """Count the pairs of a page and another page of the web that it links to."""
    redirects = _redirect_targets(web)
    links = 0
    for number, url in enumerate(web.page_urls, start=1):
        links += len(_targets(web, url, redirects) - {url})
        if number % _EVERY_PAGES == 0:
            progress(number, len(web.page_urls))
    return links


def _redirect_targets(web: RecordedWeb) -> dict[str, str]:
    found: dict[str, str] = {}
    for url in web.urls:
        if 300 <= (web.status(url) or 0) < 400:
            response = web.get(url)
            target = web.find(response.headers.get("location", "")) if response else None
            if target is not None:
                found[url] = target
    return found


def _targets(web: RecordedWeb, url: str, redirects: dict[str, str]) -> set[str]:
    response = web.get(url)
    if response is None:
        return set()
    page = parse_page(Fetched(url, response.status, response.headers, response.body))
    if isinstance(page, Failed):
        return set()
    recorded = (web.find(link.url) for link in page.links)
    reached = {redirects.get(found, found) for found in recorded if found is not None}
    return {target for target in reached if web.status(target) == 200}
