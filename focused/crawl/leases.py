"""What is under way: leased fetches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focused.crawl.steps import Fetch, Purpose
from focused.frontier.frontier import Offer

if TYPE_CHECKING:
    from focused.crawl.visits import Visit


@dataclass(frozen=True, slots=True)
class Lease:
    """One fetch: of the offered link's page, or of its site's robots.txt.

    ``visit`` is there for a robots.txt that was redirected ``hops`` times.
    """

    offer: Offer
    purpose: Purpose
    url: str
    hops: int = 0
    visit: Visit | None = None


class Leases:
    """Numbers the fetches under way; each is closed once."""

    def __init__(self) -> None:
        self._open: dict[int, Lease] = {}
        self._last = 0
        self.pages = 0
        """How many of them are for pages."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._open.values())

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def has_url(self, url: str) -> bool:
        """Whether the page of a URL is under way, or the robots.txt that comes before it."""
        return any(lease.offer.link.url == url for lease in self._open.values())

    def open(self, lease: Lease) -> Fetch:
        """Hand out a fetch."""
        self._last += 1
        self._open[self._last] = lease
        self.pages += lease.purpose is Purpose.PAGE
        return Fetch(self._last, lease.url, lease.purpose, lease.offer.link)

    def close(self, number: int) -> Lease:
        """Take a fetch back; raises KeyError when it is not under way."""
        lease = self._open.pop(number)
        self.pages -= lease.purpose is Purpose.PAGE
        return lease

    def of(self, number: int) -> Lease | None:
        """The fetch of that number; None when it is not under way."""
        return self._open.get(number)

    def numbers(self) -> list[int]:
        """The numbers of all fetches under way."""
        return list(self._open)
