"""What passes between a renderer and the crawl: limits, requests of scripts, responses, HTML.

:class:`SubrequestPolicy` decides which requests are fetched: those that a page's content needs,
from its own site. It is pure: robots.txt, delays and resolved addresses are checked where requests
are sent. :class:`AssetCache` keeps responses that many pages request: a private cache in the sense
of RFC 9111 without revalidation. Responses with ``no-store``, ``no-cache`` or ``Vary: *`` are not
kept. Without a stated lifetime scripts stay fresh for an hour, data for five minutes (section 4.2.2
allows a heuristic).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import urlsplit

from cachetools import TLRUCache

from focused.topic import covers_host
from focused.web.host_names import is_private_host, parse_ip_address, registered_domain
from focused.web.http_response import cache_lifetime_s

CONTENT_KINDS = frozenset({"script", "xhr", "fetch"})
"""Kinds of requests that bring content, by the names of Playwright."""

EMPTY_KINDS = frozenset({"stylesheet"})
"""Kinds that are answered with nothing: a bundler's code waits for style sheets, no text does."""

LIBRARY_HOSTS = (
    *("ajax.googleapis.com", "cdn.jsdelivr.net", "cdnjs.cloudflare.com", "code.jquery.com"),
    *("esm.sh", "ga.jspm.io", "unpkg.com"),
)
"""Hosts of public script libraries: scripts from there, and nothing else."""

_FORWARDED = ("accept", "accept-language", "origin", "referer", "x-requested-with")


class RefusalReason(StrEnum):
    """Why a subrequest is not fetched.

    ``KIND``: images, media, fonts, beacons and other kinds without text. ``NAVIGATION``: another
    page, in a frame, a popup or instead of the page. ``METHOD``: any but GET. ``SCHEME``: any but
    http and https. ``THIRD_PARTY``: another site. ``PRIVATE_ADDRESS``, ``ROBOTS``: as for pages.
    ``LIMIT``: the page has had its requests or bytes. ``FAILED``: no response came.
    """

    KIND = "kind"
    NAVIGATION = "navigation"
    METHOD = "method"
    SCHEME = "scheme"
    THIRD_PARTY = "third-party"
    PRIVATE_ADDRESS = "private-address"
    ROBOTS = "robots"
    LIMIT = "limit"
    FAILED = "failed"


class SubrequestRefusedError(Exception):
    """A subrequest was not fetched."""

    def __init__(self, reason: RefusalReason) -> None:
        """Keep the reason."""
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Subrequest:
    """A request of a page's script; ``kind`` is a resource type of Playwright.

    ``headers`` have lower-case names. ``is_navigation``: its response would replace a document.
    """

    url: str
    kind: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_navigation: bool = False

    @property
    def forwarded_headers(self) -> Mapping[str, str]:
        """The headers to send: no cookies, no credentials, no user agent."""
        return {name: self.headers[name] for name in _FORWARDED if name in self.headers}


@dataclass(frozen=True, slots=True)
class SubrequestPolicy:
    """Decides about the subrequests of one page.

    ``allowed_hosts`` and their subdomains may be requested besides the page's own site.
    """

    page_url: str
    allowed_hosts: Collection[str] = ()
    private_addresses: bool = False

    def refusal(self, request: Subrequest) -> RefusalReason | None:
        """Return why a subrequest, or the target of its redirect, is not fetched, or None."""
        if request.is_navigation:
            return RefusalReason.NAVIGATION
        if request.kind not in CONTENT_KINDS:
            return RefusalReason.KIND
        if request.method != "GET":
            return RefusalReason.METHOD
        try:
            parts = urlsplit(request.url)
            host, name = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        except ValueError:
            return RefusalReason.SCHEME
        if parts.scheme not in ("http", "https") or not name:
            return RefusalReason.SCHEME
        if not self.private_addresses and is_private_host(name):
            return RefusalReason.PRIVATE_ADDRESS
        if self._is_own_site(host, name) or covers_host(self.allowed_hosts, name):
            return None
        if request.kind == "script" and covers_host(LIBRARY_HOSTS, name):
            return None
        if is_private_host(name):
            return RefusalReason.PRIVATE_ADDRESS
        return RefusalReason.THIRD_PARTY

    def _is_own_site(self, host: str, name: str) -> bool:
        """Whether a host belongs to the page's registered domain; an address only with its port."""
        own = urlsplit(self.page_url)
        if parse_ip_address(name) is not None or is_private_host(name):
            return host == own.netloc.lower()
        return registered_domain(name) == registered_domain(own.hostname or "")


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """The limits of rendering one page.

    ``time_s`` does not count the time that the page waits for its requests. ``requests`` and
    ``request_bytes`` bound what is fetched for it, ``html_bytes`` its HTML; ``memory_mb`` (10^6
    bytes) is that of the browser with all its pages, of which it has ``pages`` at once.
    """

    time_s: float = 15.0
    requests: int = 50
    request_bytes: int = 20_000_000
    html_bytes: int = 2_000_000
    memory_mb: float = 1_500.0
    pages: int = 2


@dataclass(frozen=True, slots=True)
class SubrequestResponse:
    """A response for a page's script; ``headers`` have lower-case names, ``body`` is decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cached: bool = False


FetchSubrequest = Callable[[Subrequest], Awaitable[SubrequestResponse]]
"""Fetches a subrequest as the crawl does any request; raises SubrequestRefusedError."""


class RenderFailure(StrEnum):
    """Why a page was not rendered.

    ``NO_BROWSER``: none is installed, or none starts. ``TIMEOUT``: scripts ran too long, and did
    not yield. ``MEMORY``: the browser was killed at its limit. ``CRASHED``: the browser, or its
    process for the page, ended. ``NOT_LOADED``: the page could not be loaded.
    """

    NO_BROWSER = "no-browser"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    NOT_LOADED = "not-loaded"


@dataclass(slots=True)
class RenderResult:
    """The result of rendering one page; ``html`` is None with a ``failure``.

    ``requests`` and ``request_bytes`` were fetched for it, without those from the cache;
    ``refused`` counts other subrequests by reason. ``seconds`` it took, waiting for its requests
    included. ``is_cut``: a limit of time, requests or size was reached, and ``html`` is what the
    page showed then.
    """

    html: bytes | None = None
    failure: RenderFailure | None = None
    detail: str = ""
    requests: int = 0
    request_bytes: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    is_cut: bool = False


SCRIPT_S = 3_600.0
DATA_S = 300.0
MAX_LIFETIME_S = 86_400.0
"""No response is kept for longer, whatever it says."""

_KEPT = frozenset({200, 203, 301, 308, 404, 410})


class AssetCache:
    """Fresh responses by URL, the least recently used out first."""

    def __init__(
        self, max_bytes: int = 64_000_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_response_bytes = max_bytes // 4
        self._kept: TLRUCache[str, tuple[SubrequestResponse, float]] = TLRUCache(
            max_bytes,
            ttu=lambda _, kept, now: now + kept[1],
            timer=clock,
            getsizeof=lambda kept: len(kept[0].body),
        )

    def get(self, request: Subrequest) -> SubrequestResponse | None:
        """Return a fresh response, or None."""
        found = self._kept.get(request.url)
        return None if found is None else found[0]

    def put(self, request: Subrequest, response: SubrequestResponse) -> None:
        """Keep a response if it may be used again."""
        lifetime_s = lifetime(request.kind, response.status, response.headers)
        if lifetime_s > 0 and len(response.body) <= self._max_response_bytes:
            self._kept[request.url] = replace(response, is_cached=True), lifetime_s


def lifetime(kind: str, status: int, headers: Mapping[str, str]) -> float:
    """Return for how many seconds a response may be used again; 0: not at all."""
    if status not in _KEPT or headers.get("vary", "").strip() == "*":
        return 0.0
    stated_s = cache_lifetime_s(headers)
    if stated_s is None:
        return SCRIPT_S if kind == "script" else DATA_S
    return min(max(0.0, stated_s), MAX_LIFETIME_S)
