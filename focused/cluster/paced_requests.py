"""Lease hosts and addresses for the requests of a worker."""

from __future__ import annotations

from collections.abc import Sequence

from focused.cluster.coordinator import PaceLeases, WorkerStatus
from focused.crawl.loop import Crawl
from focused.errors import CoordinationError
from focused.web.urls import host_of

_MARGIN_S = 5.0
_ASK_AGAIN_S = 1.0


class PacedRequests:
    """Leases the host and the address of each request, for its time and the delay after it.

    So no other partition requests them, whoever owned this one before.
    """

    def __init__(self, paces: PaceLeases, worker: WorkerStatus, request_s: float) -> None:
        """``request_s`` is the longest time of a request."""
        self._paces = paces
        # With the process, because one that is started again counts its leases anew.
        self._holder = f"{worker.name} {worker.process} {worker.joined_at}"
        self._hold_s = request_s + _MARGIN_S
        self._held: dict[int, tuple[str, Sequence[str]]] = {}
        """URL and leased names of each fetch."""

    def begin(self, lease: int | None, crawl: Crawl, url: str, address: str, now: float) -> bool:
        """Whether the request may be sent; if not, its host is delayed.

        ``lease`` is None for a request outside the frontier. Raises CoordinationError, then it
        may not be sent either.
        """
        names: tuple[str, ...] = (f"host {host_of(url)}",)
        if crawl.topic.politeness.per_address:
            names += (f"address {address}",)
        try:
            wait_s = self._paces.acquire(names, f"{self._holder} {lease or 0}", self._hold_s)
        except CoordinationError:
            crawl.delay_host(url, now + _ASK_AGAIN_S, now)
            raise
        if wait_s > 0:
            crawl.delay_host(url, now + wait_s, now)
            return False
        if lease is not None:
            self._held[lease] = (url, names)
        return True

    def finish(self, lease: int, crawl: Crawl, now: float) -> None:
        """Let the leases of a fetch expire with the delay of its host.

        Raises CoordinationError; then they expire later.
        """
        url, names = self._held.pop(lease, ("", ()))
        if names:
            delay_s = max(crawl.due_at(url) - now, 0.0)
            self._paces.finish(names, f"{self._holder} {lease}", delay_s)

    def forget(self, lease: int) -> None:
        """Let the leases of a fetch expire by themselves: its partition is gone."""
        self._held.pop(lease, None)

    def flush(self) -> None:
        """Send what :meth:`finish` left in a buffer. Raises CoordinationError."""
        self._paces.flush()
