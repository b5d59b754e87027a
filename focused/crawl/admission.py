"""Which links may enter the frontier: by the scope, by what hosts and traps taught, by their page.

Nothing here asks whether a link was seen before, or what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.crawl.counters import Counters
from focused.crawl.host_care import HostCare
from focused.crawl.traps import Traps
from focused.topic import Scope
from focused.web.page import Link, Page
from focused.web.scope import ScopeFilter
from focused.web.url import host_of


class Admission:
    """Refuses links, and counts whom it refused and why."""

    def __init__(
        self, scope: Scope, counters: Counters, care: HostCare, traps: Traps, *, nofollow: bool
    ) -> None:
        """``nofollow`` False lets in also what pages ask not to follow."""
        self._filter = ScopeFilter(scope)
        self._counters = counters
        self._care = care
        self._traps = traps
        self._obeys_nofollow = nofollow

    def refuses(self, url: str, depth: int) -> str | None:
        """Why ``url`` is not to be queued, None when it is; refusals are counted."""
        reason = self._traps.counted(self._filter.refuses(url, depth), url) or self._care.closed(
            url
        )
        if reason is None and depth > 0:
            reason = self._traps.refuses(url)
        if reason is not None:
            self._counters.count_out_of_scope(reason)
        return reason

    def allowed(self, page: Page, depth: int) -> list[Link]:
        """The links of a page that may be followed, by its leave and by ours."""
        links: Sequence[Link] = page.links
        if self._obeys_nofollow:
            links = [] if page.nofollow else [link for link in links if not link.nofollow]
            self._counters.nofollow += len(page.links) - len(links)
        hosts: dict[str, bool] = {}
        allowed = []
        for link in links:
            host = host_of(link.url)
            is_open = hosts.get(host)
            if is_open is None:
                is_open = hosts[host] = self._is_open(host, depth)
            # Of an open host only a URL's own shape can refuse a link.
            if (is_open and self._filter.is_plain(link.url)) or self.refuses(
                link.url, depth
            ) is None:
                allowed.append(link)
        return allowed

    def _is_open(self, host: str, depth: int) -> bool:
        """Whether nothing is known that would refuse a single link to the host."""
        return (
            self._filter.is_open(host, depth)
            and self._care.is_open(host)
            and self._traps.is_open(host)
        )
