"""Assign the change histories of sites to the pages of a recorded web.

Each host gets pages of one history, a host with many pages of a history with many. Histories are
moved in time by whole weeks, so that all end at the same time and keep their days of the week.
Neighbours in a history are neighbours on the host, because pages of a directory change together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from focused.durations import WEEK_S
from focused.text import hash_fraction
from focused.web.urls import host_of
from focused_lab.change_history import (
    ChangeKind,
    PageChanges,
    SiteChanges,
    exists_at,
    last_at,
)


@dataclass(frozen=True, slots=True)
class ReplayPeriod:
    """The time that a changing web replays, in seconds since the epoch."""

    start: float
    end: float


def assign_histories(
    urls: Iterable[str], histories: Sequence[SiteChanges], period: ReplayPeriod, seed: int
) -> dict[str, PageChanges]:
    """Return the change history of each URL; a URL without one never changes.

    Only pages that exist at some time in the period are assigned, each at most once. Home pages and
    those of directories (:func:`directory_pages`) always exist in the period; the histories
    that are left when all pages have one are not used. Depends only on the arguments.
    """
    moved = [_draw_order(_move(history, period), period, seed) for history in histories]
    assigned: dict[str, PageChanges] = {}
    hosts = _urls_by_host(urls)
    for host in sorted(hosts, key=lambda host: (-len(hosts[host]), host)):
        # The history with the most pages left; of equal ones, the seed decides.
        unused = max(
            filter(None, moved),
            key=lambda pages: (len(pages), hash_fraction(f"{host} {pages[-1].page}", seed)),
            default=[],
        )
        assigned.update(_assign(hosts[host], unused, period))
    return assigned


def _urls_by_host(urls: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for url in urls:
        found.setdefault(host_of(url), []).append(url)
    return found


def _move(history: SiteChanges, period: ReplayPeriod) -> SiteChanges:
    """Move the history by whole weeks to end within a week before the end of the period."""
    shift = (period.end - last_at(history)) // WEEK_S * WEEK_S if history.pages else 0.0
    pages = (
        PageChanges(page.page, tuple(replace(each, at=each.at + shift) for each in page.changes))
        for page in history.pages
    )
    return SiteChanges(history.site, tuple(pages))


def _draw_order(history: SiteChanges, period: ReplayPeriod, seed: int) -> list[PageChanges]:
    """Return the pages that exist in the period; the last one is drawn first."""
    existing = [page for page in history.pages if _exists_within(page, period)]
    return sorted(existing, key=lambda page: hash_fraction(f"{history.site} {page.page}", seed))


def _exists_within(page: PageChanges, period: ReplayPeriod) -> bool:
    return exists_at(page, period.start) or any(
        change.kind is ChangeKind.CREATED and period.start < change.at <= period.end
        for change in page.changes
    )


def always_exists(page: PageChanges, period: ReplayPeriod) -> bool:
    """Whether the page exists during the whole period."""
    return exists_at(page, period.start) and not any(
        change.kind is ChangeKind.DELETED and period.start < change.at <= period.end
        for change in page.changes
    )


def _assign(
    urls: Sequence[str], unused: list[PageChanges], period: ReplayPeriod
) -> Mapping[str, PageChanges]:
    """Assign pages of ``unused`` to the URLs of a host, and remove them there."""
    drawn = [unused.pop() for _ in range(min(len(urls), len(unused)))]
    permanent = [page for page in drawn if always_exists(page, period)]
    directories = directory_pages(urls)
    spread = _spread(permanent, len(directories))
    assigned = dict(zip(sorted(directories), spread, strict=False))
    used = {page.page for page in assigned.values()}
    rest = sorted((page for page in drawn if page.page not in used), key=lambda page: page.page)
    assigned.update(zip(sorted(set(urls) - directories), rest, strict=False))
    return assigned


def _spread(pages: Sequence[PageChanges], count: int) -> list[PageChanges]:
    """Return ``count`` of the pages, or all, evenly spread over their names."""
    ordered = sorted(pages, key=lambda page: page.page)
    if len(ordered) <= count:
        return ordered
    return [ordered[number * len(ordered) // count] for number in range(count)]


def directory_pages(urls_of_host: Sequence[str]) -> frozenset[str]:
    """Return the home page and the URLs of directories that have other pages in them."""
    parents = {_parent(_directory(url) or url) for url in urls_of_host}
    found = {url for url in urls_of_host if _directory(url) in parents}
    return frozenset(found | {home_page(urls_of_host)})


def _directory(url: str) -> str | None:
    """Return the directory whose page this is, or None."""
    for name in ("index.html", "index.htm"):
        if url.endswith("/" + name):
            return url.removesuffix(name)
    return url if url.endswith("/") else None


def _parent(url: str) -> str:
    return url.removesuffix("/").rpartition("/")[0] + "/"


def home_page(urls_of_host: Sequence[str]) -> str:
    """Return the shortest URL of a host; of several, the first by alphabet."""
    return min(urls_of_host, key=lambda url: (len(url), url))
