"""A spider's own requests: stored in the frontier and restored with their callbacks.

The payload of the frontier's link is the request in Scrapy's serialised form. Callbacks that are
not methods of the spider are kept in memory, and such requests are lost with the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import scrapy
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.request import fingerprint, request_from_dict

from focused.crawl.steps import SettledFetch
from focused.errors import ConfigurationError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.scrapy_addon.crawl_session import CrawlSession
from focused.scrapy_addon.request_state import META_KEY, state_of
from focused.scrapy_addon.value_serialization import (
    deserialize_values,
    imported_class,
    serialize_values,
)
from focused.web.urls import normalize_url

logger = logging.getLogger(__name__)

_IN_MEMORY = "in_memory"
"""Key of a stored value: the process that has the callbacks in memory, and their index."""

_NOT_STORED = frozenset({META_KEY, "download_slot", "download_latency"})
Callbacks = tuple[Callable[..., Any] | None, Callable[..., Any] | None]


class SpiderRequests:
    """Converts between a spider's requests and frontier links."""

    def __init__(self, session: CrawlSession) -> None:
        self._session = session
        self._process = uuid4().hex
        self._in_memory: list[Callbacks] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._unfiltered = 0
        self.has_spider_requests = False
        self.spider: scrapy.Spider | None = None

    def enqueue(self, request: Request) -> bool:
        """Queue the request; return False if it is a duplicate.

        Raises IgnoreRequest if it is refused, and UnstorableValueError if it cannot be stored.
        """
        self.has_spider_requests = True
        crawl = self._session.crawl
        url = normalize_url(request.url)
        if url is None:
            raise IgnoreRequest(
                f"{request.url[:200]}: not an http or https URL that can be crawled"
            )
        state = state_of(request)
        parent = state.found_on
        refusal = crawl.refuses(url, parent)
        if refusal is not None:
            raise IgnoreRequest(f"{url} was refused: {refusal}")
        return crawl.enqueue_url(
            url,
            _default_score(parent),
            self._session.now(),
            key=self._key(request, url),
            parent=parent,
            found=state.found_as,
            payload=self._payload(request),
        )

    def restore(self, link: QueuedLink) -> Request | None:
        """Return the spider's request, with the link's current URL.

        None if its callbacks were in the memory of another process. Raises ConfigurationError if
        the spider or project lacks what it needs.
        """
        self.has_spider_requests = True
        try:
            values = deserialize_values(link.payload or "{}")
            in_memory = values.pop(_IN_MEMORY, None)
            if "_class" in values:
                values["_class"] = _request_class(values["_class"])
            request = request_from_dict(values, spider=self.spider).replace(url=link.url)
        except ValueError as error:
            raise ConfigurationError(
                f"the request for {link.url} was stored by another spider, or by an earlier state "
                f"of this one: {error}. Give the spider what it needs, or choose another folder"
            ) from error
        if in_memory is None:
            return request
        process, number = in_memory
        if process != self._process:
            return None
        request.callback, request.errback = self._in_memory[number]
        return request

    def has_errback(self, payload: str) -> bool:
        """Whether the stored request has an errback."""
        try:
            values = deserialize_values(payload)
        except ValueError:  # restoring it will report the error
            return True
        process, number = values.get(_IN_MEMORY) or ("", 0)
        if process == self._process:
            return self._in_memory[number][1] is not None
        return values.get("errback") is not None

    def _key(self, request: Request, url: str) -> bytes:
        if request.dont_filter:
            self._unfiltered += 1
            return link_key(f"{url} unfiltered {self._session.now()!r} {self._unfiltered}")
        if request.method == "GET" and not request.body:
            return link_key(url)
        return link_key(f"{url} {fingerprint(request).hex()}")

    def _payload(self, request: Request) -> str:
        try:
            values = request.to_dict(spider=self.spider)
        except ValueError:  # a callback is not a method of the spider
            values = request.replace(callback=None, errback=None).to_dict()
            values[_IN_MEMORY] = [self._process, self._keep_in_memory(request)]
        values["meta"] = _own_meta(request.meta)
        return serialize_values(values)

    def _keep_in_memory(self, request: Request) -> int:
        if not self._in_memory:
            logger.warning(
                "%s has a callback that is not a method of the spider. Such requests work, but are "
                "kept in memory and lost if the crawl is stopped",
                request,
            )
        names = (id(request.callback), id(request.errback))
        number = self._numbers.setdefault(names, len(self._in_memory))
        if number == len(self._in_memory):
            self._in_memory.append((request.callback, request.errback))
        return number


def _request_class(path: str) -> str:
    """Check that the path is an imported request class; raises ValueError."""
    module, _, name = path.rpartition(".")
    if not issubclass(imported_class(f"{module}:{name}"), Request):
        raise ValueError(f"{path} is not a request class")
    return path


def _default_score(parent: SettledFetch | None) -> float:
    """Return 1 for a seed; the page's relevance for a URL that is not one of its links."""
    if parent is None or parent.classification is None:
        return 1.0
    return parent.classification.relevance


def _own_meta(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in _NOT_STORED}
