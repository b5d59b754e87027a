"""Requests that a spider makes itself: in through the frontier, out with their callbacks.

A spider's request becomes a frontier row whose payload is the request in
Scrapy's own serialised form. Callbacks that are no methods of the spider are
kept in memory, and such a request does not outlive the process.
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
from focused.web.urls import normalise

logger = logging.getLogger(__name__)

_IN_MEMORY = "in_memory"
"""Name of a stored value: in which process's memory the callbacks are, and their number there."""

_NOT_STORED = frozenset({META_KEY, "download_slot", "download_latency"})
Callbacks = tuple[Callable[..., Any] | None, Callable[..., Any] | None]


class SpiderRequests:
    """Translates between a spider's requests and frontier links."""

    def __init__(self, session: CrawlSession) -> None:
        self._session = session
        self._process = uuid4().hex
        self._in_memory: list[Callbacks] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._unfiltered = 0
        self.has_spider_requests = False
        self.spider: scrapy.Spider | None = None

    def enqueue(self, request: Request) -> bool:
        """Queue the request; False when the URL-seen test knows it.

        Raises IgnoreRequest when it may not be asked for, and UnstorableValueError when it
        cannot be stored.
        """
        self.has_spider_requests = True
        crawl = self._session.crawl
        url = normalise(request.url)
        if url is None:
            raise IgnoreRequest(f"{request.url[:200]}: no http or https URL that can be crawled")
        state = state_of(request)
        parent = state.found_on
        refusal = crawl.refuses(url, parent)
        if refusal is not None:
            raise IgnoreRequest(f"{url} may not be asked for: {refusal}")
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
        """Make the spider's request again, for the URL that the link has by now.

        None when its callbacks were in the memory of a process that is gone. Raises
        ConfigurationError when spider or project lack what it needs.
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
        """Whether the request that is stored so has an errback."""
        try:
            values = deserialize_values(payload)
        except ValueError:  # restoring it will tell what is wrong
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
        except ValueError:  # a callback is no method of the spider
            values = request.replace(callback=None, errback=None).to_dict()
            values[_IN_MEMORY] = [self._process, self._keep_in_memory(request)]
        values["meta"] = _own_meta(request.meta)
        return serialize_values(values)

    def _keep_in_memory(self, request: Request) -> int:
        if not self._in_memory:
            logger.warning(
                "%s has a callback that is no method of the spider: such requests work, but are "
                "kept in memory and lost if the crawl is stopped",
                request,
            )
        names = (id(request.callback), id(request.errback))
        number = self._numbers.setdefault(names, len(self._in_memory))
        if number == len(self._in_memory):
            self._in_memory.append((request.callback, request.errback))
        return number


def _request_class(path: str) -> str:
    """The path of a class of requests; raises ValueError for any other, and imports nothing."""
    module, _, name = path.rpartition(".")
    if not issubclass(imported_class(f"{module}:{name}"), Request):
        raise ValueError(f"{path} is no class of requests")
    return path


def _default_score(parent: SettledFetch | None) -> float:
    """A seed is worth its fetch; a URL that is no link of its page is as good as the page."""
    if parent is None or parent.classification is None:
        return 1.0
    return parent.classification.relevance


def _own_meta(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in _NOT_STORED}
