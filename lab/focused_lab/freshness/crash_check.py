"""Check that a crawl of a changing web that was killed lost nothing and repeated nothing.

Damage of the stored records is found by :mod:`focused.crawl.folder_check`. This module checks what
a killed crawl may forget: pages that are never visited again, visits without their page's history,
and requests that the server answered and the crawl does not know.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from focused.archive.archive import PAGE_COLUMNS, page_values
from focused.archive.page_history import VisitResult, VisitRow, page_histories, visit_rows
from focused.revisit.disk_schedule import scheduled_pages
from focused.storage.tables import Tables

_TELLS_NOTHING = frozenset({VisitResult.MISSING, VisitResult.FAILED, VisitResult.EXCLUDED})
_NOT_COUNTED = _TELLS_NOTHING | {VisitResult.UNKNOWN}
_ROBOTS_PATH = "/robots.txt"
_MISSING_PAGE = re.compile(r"/focused[0-9a-f]{16}(?:\.[^./?]*)?$")
"""The path of a page that cannot exist, from :func:`soft_404.missing_page_url`."""


@dataclass(frozen=True, slots=True)
class RequestCheck:
    """The requests for pages that a server answered, compared with the outcomes that are stored.

    ``unsettled``: the crawl stored no outcome; such a request was in flight at a kill. ``repeated``
    are URLs that were requested twice within the minimal interval without a kill in between.
    ``unanswered`` are URLs with more stored responses than requests.
    """

    requests: int
    unsettled: int
    repeated: tuple[str, ...]
    unanswered: tuple[str, ...]


def check_collection(tables: Tables) -> list[str]:
    """Return what is wrong with the pages that are visited again; empty if nothing is."""
    problems: list[str] = []
    histories = dict(page_histories(tables))
    scheduled = Counter(scheduled_pages(tables))
    released = {int.from_bytes(key, "big") for key, _ in tables.scan("released_pages")}
    for page in histories:
        times = scheduled[page] + (page in released)
        if times != 1:
            problems.append(f"page {page} is scheduled or queued {times} times")
    problems += [
        f"page {page} is scheduled or queued without a history"
        for page in sorted({*scheduled, *released} - set(histories))
    ]
    if tables.count("links") < len(released):
        problems.append(f"{len(released)} pages are queued, but fewer links wait in the frontier")
    visits = list(visit_rows(tables))
    problems += _order_problems(visits)
    counted = Counter(visit.page for visit in visits if visit.result not in _NOT_COUNTED)
    problems += [
        f"page {page} has {counted[page]} stored visits, but its history counts {history.visits}"
        for page, history in histories.items()
        if counted[page] != history.visits
    ]
    return problems


def _order_problems(visits: Sequence[VisitRow]) -> Iterator[str]:
    for one, other in pairwise(visits):
        if other.at < one.at:
            yield f"{other.url}: its visit at {other.at} is stored after one at {one.at}"
    seen: dict[int, float] = {}
    for visit in visits:
        seen_at = seen.get(visit.page, visit.previous_at)
        if visit.previous_at != seen_at or visit.at <= seen_at:
            yield (
                f"{visit.url}: the visit at {visit.at} follows one at {visit.previous_at}, "
                f"but the page was seen at {seen_at}"
            )
        seen[visit.page] = seen_at if visit.result in _TELLS_NOTHING else visit.at


def read_requests(access_log: Path) -> Iterator[tuple[str, float]]:
    """Yield URL and time of the requests in the access log of a replay server.

    Requests for robots.txt and for pages that cannot exist are left out: they have no row.
    """
    with access_log.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["path"] != _ROBOTS_PATH and not _MISSING_PAGE.search(entry["path"]):
                yield f"{entry['scheme']}://{entry['host']}{entry['path']}", entry["time"]


def check_requests(
    requests: Iterable[tuple[str, float]],
    tables: Tables,
    *,
    kills: Sequence[float],
    min_interval_s: float,
    in_flight_s: float,
) -> RequestCheck:
    """Compare the requests that a server answered with the outcomes that the crawl stored.

    ``kills`` are times of the server's clock, in order. A response may reach the access log up to
    ``in_flight_s`` after the kill of the crawl that requested it.
    """
    times: defaultdict[str, list[float]] = defaultdict(list)
    for url, at in requests:
        times[url].append(at)
    stored, responses = _stored_outcomes(tables)
    repeated = [
        url
        for url, each in times.items()
        if any(
            later - earlier < min_interval_s
            and not _is_any_within(kills, earlier - in_flight_s, later)
            for earlier, later in pairwise(sorted(each))
        )
    ]
    return RequestCheck(
        requests=sum(map(len, times.values())),
        unsettled=sum(max(0, len(each) - stored[url]) for url, each in times.items()),
        repeated=tuple(sorted(repeated)),
        unanswered=tuple(
            sorted(url for url, count in responses.items() if count > len(times.get(url, ())))
        ),
    )


def _stored_outcomes(tables: Tables) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count the stored outcomes by URL: all, and those with a response."""
    outcomes: Counter[str] = Counter()
    responses: Counter[str] = Counter()
    for values in page_values(tables):
        row = dict(zip(PAGE_COLUMNS, values, strict=False))
        outcomes[row["url"]] += 1
        responses[row["url"]] += bool(row["status"]) and urlsplit(row["url"]).path != _ROBOTS_PATH
    for visit in visit_rows(tables):
        outcomes[visit.url] += 1
        responses[visit.url] += bool(visit.status)
    return outcomes, responses


def _is_any_within(times: Sequence[float], begin: float, end: float) -> bool:
    position = bisect_left(times, begin)
    return position < len(times) and times[position] <= end
