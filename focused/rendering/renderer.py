"""What a renderer takes and returns: limits, requests of scripts, and the HTML after scripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from focused.rendering.subrequests import Subrequest


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


@dataclass(frozen=True, slots=True)
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
    refused: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    is_cut: bool = False
