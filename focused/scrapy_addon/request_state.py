"""The add-on's state of a request: one immutable value in ``request.meta``."""

from __future__ import annotations

from typing import Any

import msgspec
from scrapy import Request
from scrapy.http import Response

from focused.crawl import SettledFetch
from focused.web.page import HttpExchange

META_KEY = "focused"
"""Key of ``request.meta`` and ``response.meta``: a :class:`RequestState`."""


class RequestState(msgspec.Struct, frozen=True, kw_only=True):
    """The add-on's state of one request; ``relevance`` and ``left_out`` are for spiders.

    A request with the copied ``meta`` of another one has its state too: ``leased_url``
    distinguishes them.
    """

    relevance: float | None = None
    """Relevance of the response's page in [0, 1]; None if it was not classified."""
    left_out: bool = False
    """Whether the page asks not to be indexed and is excluded from the results."""
    settled: SettledFetch | None = None
    """The result of settling the response."""

    lease: int | None = None
    """The frontier's lease; None for a request that bypasses the frontier."""
    leased_url: str = ""
    """The request's URL when the scheduler returned it."""
    purpose: str | None = None
    is_plain: bool = False
    """Whether the request is the crawl's: without a spider's callback or arguments."""
    refused: Exception | None = None
    """The exception to end the request with, instead of sending it."""
    is_handled: bool = False
    """Whether the crawl has settled the request already."""

    sent_at: float | None = None
    """When the request was sent, in seconds of the crawl's clock."""
    was_looked_up: bool = False
    """Whether the add-on's resolver resolved the request's host."""
    checked_address: str | None = None
    """The only address that the request may be sent to."""
    exchange: HttpExchange | None = None
    """The request and the response as they were sent, for the WARC file."""
    page_lease: int | None = None
    """The lease of the page that is rendered with the response; None for other requests."""
    rules_of: str = ""
    """The host whose robots.txt is requested."""
    robots_bytes: int | None = None
    """How many bytes of a robots.txt were received; None for other requests."""

    found_on: SettledFetch | None = None
    """The page that the spider found the URL on."""
    found_as: Any = None
    """The scored link of that page with the URL."""


_NEW = RequestState()


def state_of(request: Request | Response) -> RequestState:
    """Return the add-on's state of a request, or of a response's request."""
    state = request.meta.get(META_KEY)
    return state if isinstance(state, RequestState) else _NEW


def update_state(request: Request, **changes: Any) -> None:
    """Replace fields of the request's state."""
    request.meta[META_KEY] = msgspec.structs.replace(state_of(request), **changes)
