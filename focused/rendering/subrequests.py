"""Which requests of a page's scripts are fetched: those that its content needs, from its own site.

Pure: robots.txt, delays and resolved addresses are checked where requests are sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from focused.topic import covers_host
from focused.web.host_names import is_private_host, parse_ip_address, registered_domain

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
