"""What a recorded web answers, without a network: outcomes and how long they take.

The same words as the replay server's: a host that the web lacks does not
exist, a URL that it lacks is a 404.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from focused.errors import RecordedWebError
from focused.lots import lot
from focused.recorded.source import WebSource
from focused.web.page import Failed, FailureKind, Fetched, Outcome, Page
from focused.web.parse import parse_page
from focused.web.response import outcome_of
from focused.web.url import host_of

Latency = Callable[[str], float]
"""Seconds from request to last byte, by URL."""


class Network(Protocol):
    """Answers requests and parses what it answered."""

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """What a request for ``url`` brings; ``now`` dates a Retry-After."""

    def parse(self, fetched: Fetched) -> Page | Failed:
        """The page of an answer that :meth:`answer` gave; see :func:`parse_page`."""


class RecordedNetwork:
    """Answers from a recorded web; parses each answer anew."""

    def __init__(self, web: WebSource) -> None:
        self._web = web

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """What a request for ``url`` brings."""
        try:
            response = self._web.get(url)
        except RecordedWebError:  # a damaged record: the host's own trouble, as when replayed
            return outcome_of(500, {}, url, b"", elapsed_s, now)
        if response is not None:
            return outcome_of(response.status, response.headers, url, response.body, elapsed_s, now)
        if host_of(url) not in self._web.hosts:
            return Failed(url, FailureKind.NO_HOST, detail="not in the recorded web")
        return outcome_of(404, {}, url, b"", elapsed_s, now)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """The answer's page."""
        return parse_page(fetched)


def constant_latency(latency_s: float) -> Latency:
    """Every answer takes ``latency_s`` seconds."""
    return lambda url: latency_s


def drawn_latency(mean_s: float, seed: int) -> Latency:
    """Between half and one and a half of ``mean_s`` seconds, drawn by hash of URL and seed."""

    def latency_s(url: str) -> float:
        return mean_s * (0.5 + lot(url, seed))

    return latency_s
