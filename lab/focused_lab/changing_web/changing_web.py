"""A changing web: a recorded web whose pages change, appear and vanish by change histories.

The recorded page is its version when the replay starts. Each change of its history edits its
paragraphs with words of other pages of the host. A page that is created during the replay is linked
only from its hubs, recorded pages that link to it and always exist; the link appears when the page
is created, and is a change of the hub. A deleted page is 404 or 410, and its links stay.

A response depends only on the web, the histories, the options, the URL and the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from focused.durations import DAY_S, YEAR_S
from focused.text import hash_fraction
from focused.web.decoding import media_type_of
from focused.web.urls import host_of, normalize_url
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    exists_at,
    last_change_at,
)
from focused_lab.changing_web.assigned_changes import (
    always_exists,
    assign_histories,
    directory_pages,
    home_page,
)
from focused_lab.changing_web.change_options import (
    ChangeOptions,
    HostBehaviour,
    host_behaviour,
    is_announced,
)
from focused_lab.changing_web.changed_content import (
    Announcement,
    Edit,
    Words,
    apply_edits,
    atom_feed,
    insert_at_end,
    insert_at_top,
    insert_in_head,
    link_targets,
    paragraph_words,
    remove_links,
    robots_with_sitemap,
    sitemap,
)
from focused_lab.recorded_web.conditional_requests import http_date
from focused_lab.recorded_web.recorded_web import RecordedResponse, RecordedWeb

SITEMAP_PATH = "/sitemap.xml"
FEED_PATH = "/changes.atom"

_MAX_HUBS = 2
_MAX_DONORS = 400
_MIN_LINES = 20
"""A page of a history counts as at least so many lines."""

_RENDERED_PAGES = 256
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(slots=True)
class _ChangingPage:
    """A page and what happens to it.

    ``events`` are the page's own and the new links on it, in order of time. ``new_links`` are
    hrefs, as they are written, with the time when they appear; ``unlinked`` never are links.
    """

    url: str
    own: PageChanges
    events: list[Change] = field(default_factory=list)
    new_links: list[tuple[float, bytes]] = field(default_factory=list)
    unlinked: set[bytes] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    edit_times: list[float] = field(default_factory=list)


class ChangingWeb:
    """Responses of a changing web by URL and time; opening it reads every recorded page."""

    def __init__(
        self, web: RecordedWeb, histories: Sequence[SiteChanges], options: ChangeOptions
    ) -> None:
        self.options = options
        self._web = web
        self._urls: dict[str, list[str]] = {}
        for url in web.page_urls:
            self._urls.setdefault(host_of(url), []).append(url)
        self._directories = frozenset[str]().union(*map(directory_pages, self._urls.values()))
        self._behaviours = {host: host_behaviour(host, options) for host in web.hosts}
        assigned = assign_histories(web.page_urls, histories, options.period, options.seed)
        self._pages = {
            url: _ChangingPage(url, assigned.get(url, PageChanges(url, ())))
            for url in web.page_urls
        }
        self._donors: dict[str, list[Words]] = {}
        for page in self._pages.values():
            page.edits, page.edit_times = _edits_of(page, options)
        self._link(dict(self._read_pages()))
        self._permanent = {
            host: [url for url in urls if self._is_permanent(url)]
            for host, urls in self._urls.items()
        }
        for page in self._pages.values():
            page.events.sort(key=lambda change: change.at)
        self._render = lru_cache(_RENDERED_PAGES)(self._rendered)

    @property
    def hosts(self) -> Collection[str]:
        """The recorded hosts."""
        return self._web.hosts

    @property
    def page_urls(self) -> Sequence[str]:
        """The URLs of all pages that exist at some time."""
        return self._web.page_urls

    def behaviour(self, host: str) -> HostBehaviour:
        """Return how a host answers."""
        return self._behaviours[host]

    def exists_at(self, url: str, time: float) -> bool:
        """Whether the page with this recorded URL exists; a page without history always does."""
        own = self._pages[url].own
        return not own.changes or exists_at(own, time)

    def version_at(self, url: str, time: float) -> int:
        """Return the number of events of a page from the start to ``time``; it names a version."""
        return bisect_right(self._pages[url].events, time, key=_time_of)

    def changes_of(self, url: str) -> Sequence[Change]:
        """Return what happens to a page after the start, with the links that appear on it."""
        return self._pages[url].events

    def true_changes(self) -> list[SiteChanges]:
        """Return the true history of every host's pages; pages are named by URL.

        A page that exists at the start is created then. For evaluation only.
        """
        start = self.options.start
        return [
            SiteChanges(
                host,
                tuple(
                    PageChanges(
                        url,
                        (
                            *((Change(ChangeKind.CREATED, start),) if existed else ()),
                            *self._pages[url].events,
                        ),
                    )
                    for url in urls
                    if (existed := self.exists_at(url, start)) or self._pages[url].events
                ),
            )
            for host, urls in sorted(self._urls.items())
        ]

    def response_at(self, url: str, time: float) -> RecordedResponse | None:
        """Return the response to an unconditional request; None for an unknown URL.

        Other recorded responses than pages stay as they are.
        """
        host = host_of(url)
        behaviour = self._behaviours.get(host)
        if behaviour is None:
            return None
        path = url.partition("://")[2].partition("/")[2]
        if behaviour.has_sitemap and f"/{path}" == SITEMAP_PATH:
            return self._sitemap(url, host, time)
        if behaviour.has_feed and f"/{path}" == FEED_PATH:
            return self._feed(url, host, time)
        found = self._web.find(url)
        if behaviour.has_sitemap and path == "robots.txt":
            recorded = None if found is None else self._web.get(found)
            return robots_with_sitemap(url, recorded, _site(url) + SITEMAP_PATH)
        if found is None or found not in self._pages:
            return None if found is None else self._web.get(found)
        if not self.exists_at(found, time):
            return _gone(found, behaviour.gone_status)
        return self._page_response(found, time, behaviour)

    def content_at(self, url: str, time: float) -> bytes:
        """Return the body of an existing page without boilerplate that changes by itself."""
        return self._render(url, self.version_at(url, time))

    def _page_response(self, url: str, time: float, behaviour: HostBehaviour) -> RecordedResponse:
        recorded = self._web.get(url)
        assert recorded is not None
        body = self.content_at(url, time)
        if behaviour.has_noise and _is_html(recorded):
            body = self._with_noise(url, body, time)
        headers = {"content-type": recorded.headers.get("content-type", "")}
        version = self.version_at(url, time)
        tag = f'"{version}-{hash_fraction(f"{url} {version}", self.options.seed):.12f}"'
        if behaviour.validators == "strong":
            headers["etag"] = tag
        elif behaviour.validators == "weak":
            headers["etag"] = f"W/{tag}"
        if behaviour.validators != "none":
            headers["last-modified"] = http_date(self._modified_at(url, time))
        return RecordedResponse(url, 200, headers, body)

    def _modified_at(self, url: str, time: float) -> float:
        page = self._pages[url]
        number = self.version_at(url, time)
        if number:
            return page.events[number - 1].at
        last = last_change_at(page.own, self.options.start)
        if last is not None:
            return last.at
        # Without a history: some time in the year before the start.
        return self.options.start - YEAR_S * hash_fraction(url, self.options.seed)

    def _rendered(self, url: str, version: int) -> bytes:
        recorded = self._web.get(url)
        assert recorded is not None
        page = self._pages[url]
        time = page.events[version - 1].at if version else self.options.start
        edits = page.edits[: bisect_right(page.edit_times, time)]
        body = recorded.body
        host = host_of(url)
        if not _is_html(recorded):
            lines = (f"\nRevision {edit.key}\n" for edit in edits)
            return body + "".join(lines).encode()
        body = apply_edits(body, edits, self._donors.get(host, ()))
        hidden = {href for at, href in page.new_links if at > time}
        if hidden or page.unlinked:
            body = remove_links(body, hidden, page.unlinked)
        if self._behaviours[host].has_feed and url == home_page(self._urls[host]):
            feed = f'<link rel="alternate" type="application/atom+xml" href="{FEED_PATH}">'
            body = insert_in_head(body, feed.encode())
        return body

    def _with_noise(self, url: str, body: bytes, time: float) -> bytes:
        permanent = self._permanent[host_of(url)]
        day = int(time // DAY_S)
        turn = day % max(1, len(permanent))
        shown = (permanent[turn:] + permanent[:turn])[:5]
        links = "".join(f'<li><a href="{each}">{_name(each)}</a></li>' for each in shown)
        insert = f'<div class="nav"><ul>{links}</ul></div>\n'
        visits = int(time - self.options.start) // 60 + 1_000
        date = http_date(time)
        footer = f'<div class="footer">Generated on {date}. {visits:,} visits.</div>\n'
        return insert_at_end(insert_at_top(body, insert.encode()), footer.encode())

    def _announcements(self, host: str, time: float) -> Iterator[Announcement]:
        """Yield the existing pages that are announced, each with its last announced change."""
        share = self._behaviours[host].announced
        for url in self._urls[host]:
            if not self.exists_at(url, time):
                continue
            page = self._pages[url]
            existed = self.exists_at(url, self.options.start)
            at: float | None = self._modified_at(url, self.options.start) if existed else None
            kind = ChangeKind.CHANGED
            for number, change in enumerate(page.events[: self.version_at(url, time)]):
                if is_announced(url, number, share, self.options.seed):
                    at, kind = change.at, change.kind
            if at is not None:
                yield Announcement(url, at, kind is ChangeKind.CREATED, _name(url))

    def _sitemap(self, url: str, host: str, time: float) -> RecordedResponse:
        announced = list(self._announcements(host, time))
        headers = {"content-type": "application/xml", **_last_modified(announced)}
        return RecordedResponse(url, 200, headers, sitemap(announced))

    def _feed(self, url: str, host: str, time: float) -> RecordedResponse:
        start = self.options.start
        announced = [each for each in self._announcements(host, time) if each.at > start]
        headers = {"content-type": "application/atom+xml", **_last_modified(announced)}
        return RecordedResponse(url, 200, headers, atom_feed(_site(url) + "/", announced, start))

    def _is_permanent(self, url: str) -> bool:
        own = self._pages[url].own
        return not own.changes or always_exists(own, self.options.period)

    def _read_pages(self) -> Iterator[tuple[str, Mapping[bytes, str]]]:
        """Collect donor texts; yield each page with its links to pages that are created later."""
        start = self.options.start
        created = {url for url in self._pages if not self.exists_at(url, start)}
        redirects = self._redirects_to(created)
        last_parts = {_last_part(url.encode()) for url in (*created, *redirects)}
        for url in self._web.page_urls:
            recorded = self._web.get(url)
            if recorded is None or not _is_html(recorded):
                continue
            donors = self._donors.setdefault(host_of(url), [])
            if len(donors) < _MAX_DONORS:
                donors += paragraph_words(recorded.body)[: _MAX_DONORS - len(donors)]
            links = {}
            for href in set(link_targets(recorded.body)):
                # Resolving all links of a web would take long.
                if _last_part(href) in last_parts:
                    target = self._resolve(href, url)
                    target = redirects.get(target or "", target)
                    if target in created and target != url:
                        links[href] = target
            yield url, links

    def _redirects_to(self, targets: Collection[str]) -> dict[str, str]:
        """Return the target of each recorded redirect to one of ``targets``."""
        found: dict[str, str] = {}
        for url in self._web.urls:
            if 300 <= (self._web.status(url) or 0) < 400:
                response = self._web.get(url)
                location = "" if response is None else response.headers.get("location", "")
                target = self._resolve(location.encode(), url)
                if target is not None and target in targets:
                    found[url] = target
        return found

    def _resolve(self, href: bytes, url: str) -> str | None:
        target = normalize_url(href.decode("utf-8", "replace").replace("&amp;", "&"), url)
        return None if target is None else self._web.find(target)

    def _link(self, links: Mapping[str, Mapping[bytes, str]]) -> None:
        """Choose the hubs of pages that are created later; remove all other links to them."""
        parents: dict[str, list[str]] = {}
        for url, targets in links.items():
            for target in dict.fromkeys(targets.values()):
                parents.setdefault(target, []).append(url)
        hubs = {
            target: sorted(pages, key=lambda url: self._hub_order(url, target))[:_MAX_HUBS]
            for target, pages in parents.items()
        }
        for url, targets in links.items():
            page = self._pages[url]
            # Pages that are created at the same time are one change of the hub.
            new: dict[float, set[str]] = {}
            for href, target in targets.items():
                if url not in hubs[target]:
                    page.unlinked.add(href)
                    continue
                at = self._pages[target].events[0].at
                new.setdefault(at, set()).add(target)
                page.new_links.append((at, href))
            own = {change.at for change in page.events}
            page.events += [
                Change(ChangeKind.CHANGED, at, len(created), 0)
                for at, created in new.items()
                if at not in own and self.exists_at(url, at)
            ]

    def _hub_order(self, url: str, target: str) -> tuple[bool, bool, bool, float]:
        """Pages of the same host that always exist come first, of these the directories."""
        return (
            host_of(url) != host_of(target),
            not self._is_permanent(url),
            url not in self._directories,
            hash_fraction(f"{url} {target}", self.options.seed),
        )


def _edits_of(page: _ChangingPage, options: ChangeOptions) -> tuple[list[Edit], list[float]]:
    """Return the edits of a page since the start, and set its events."""
    lines = 0
    edits: list[Edit] = []
    times: list[float] = []
    for number, change in enumerate(page.own.changes):
        size = max(lines, _MIN_LINES)
        lines = max(0, lines + change.lines_added - change.lines_deleted)
        if not options.start < change.at <= options.period.end:
            continue
        page.events.append(change)
        is_recorded_version = change.kind is ChangeKind.CREATED and number == 0
        if change.kind is ChangeKind.DELETED or is_recorded_version:
            continue
        key = f"{options.seed} {page.url} {number}"
        edits.append(
            Edit(key, min(1.0, change.lines_added / size), min(1.0, change.lines_deleted / size))
        )
        times.append(change.at)
    return edits, times


def _time_of(change: Change) -> float:
    return change.at


def _is_html(response: RecordedResponse) -> bool:
    return media_type_of(response.headers) in _HTML_TYPES


def _site(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _name(url: str) -> str:
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2]
    return last.partition(".")[0].replace("-", " ").replace("_", " ") or "home"


def _last_part(url: bytes) -> bytes:
    """Return the last part of a URL's path, without an ``index.html``."""
    path = url.partition(b"#")[0].partition(b"?")[0].removesuffix(b"index.html")
    return path.rstrip(b"/").rpartition(b"/")[2]


def _last_modified(announced: Sequence[Announcement]) -> dict[str, str]:
    last = max((each.at for each in announced), default=None)
    return {} if last is None else {"last-modified": http_date(last)}


def _gone(url: str, status: int) -> RecordedResponse:
    body = b"<!doctype html><title>Page not found</title><h1>Page not found</h1>"
    return RecordedResponse(url, status, {"content-type": "text/html; charset=utf-8"}, body)
