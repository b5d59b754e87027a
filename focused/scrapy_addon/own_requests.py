"""Requests that a spider makes itself: in through the frontier, out with their callbacks.

A spider's request becomes a frontier row whose payload is the request in
Scrapy's own serialised form; what cannot be serialised (a callback that is no
method of the spider) is kept in memory and does not outlive the process.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import scrapy
from scrapy import Request
from scrapy.utils.request import fingerprint, request_from_dict

from focused.crawl.steps import ScoredLink, Settled
from focused.frontier.queued import QueuedLink, link_key
from focused.scrapy_addon.session import Session
from focused.web.page import Failed, FailureKind
from focused.web.url import normalise

logger = logging.getLogger(__name__)

FOUND_ON = "focused_found_on"
FOUND_AS = "focused_found_as"
_MEMORY = "memory:"
_BYTES = "focused.bytes"
_PER_DOWNLOAD = frozenset({"download_slot", "download_latency", "depth"})


class OwnRequests:
    """Translates between a spider's requests and frontier links."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._in_memory: dict[str, Request] = {}
        self._unfiltered = 0
        self.spider: scrapy.Spider | None = None

    def take_in(self, request: Request) -> bool:
        """Queue the request; False when the URL-seen test knows it or the scope refuses it."""
        now = self._session.now()
        crawl = self._session.crawl
        url = normalise(request.url)
        if url is None:
            return False
        lease = request.meta.get("focused_lease")
        if isinstance(lease, int) and crawl.is_open(lease):
            # A middleware answered a leased request with another one.
            self._session.settle(lease, Failed(url, FailureKind.DROPPED, detail="replaced"))
        parent: Settled | None = request.meta.get(FOUND_ON)
        found: ScoredLink | None = request.meta.get(FOUND_AS)
        return crawl.offer_link(
            url,
            _score_without_a_link(parent),
            now,
            key=self._key(request, url),
            parent=parent,
            found=found,
            payload=self._payload(request),
        )

    def restore(self, link: QueuedLink) -> Request:
        """Make the spider's request again, for the URL that the link has by now."""
        payload = link.payload or ""
        if payload.startswith(_MEMORY):
            request = self._in_memory.get(payload)
            if request is None:
                # Queued by a process that is gone, with a callback that died with it.
                request = Request(link.url)
        else:
            request = request_from_dict(
                json.loads(payload, object_hook=_with_bytes), spider=self.spider
            )
        return request.replace(url=link.url, dont_filter=True)

    def _key(self, request: Request, url: str) -> bytes:
        if request.dont_filter:
            self._unfiltered += 1
            return link_key(f"{url} unfiltered {self._session.now()!r} {self._unfiltered}")
        if request.method == "GET" and not request.body:
            return link_key(url)
        return link_key(f"{url} {fingerprint(request).hex()}")

    def _payload(self, request: Request) -> str:
        kept = request.replace(meta=_own_meta(request.meta))
        try:
            return json.dumps(_plain(kept.to_dict(spider=self.spider)))
        except (TypeError, ValueError):
            name = f"{_MEMORY}{len(self._in_memory)}:{id(kept)}"
            if not self._in_memory:
                logger.warning(
                    "%s cannot be serialised (is its callback a method of the spider?): it is "
                    "kept in memory and lost if the crawl is stopped",
                    request,
                )
            self._in_memory[name] = kept
            return name


def _score_without_a_link(parent: Settled | None) -> float:
    """A seed is worth its fetch; a URL that is no link of its page is as good as the page."""
    if parent is None or parent.judgement is None:
        return 1.0
    return parent.judgement.relevance


def _own_meta(meta: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in meta.items()
        if not str(key).startswith("focused") and key not in _PER_DOWNLOAD
    }


def _plain(value: Any) -> Any:
    """JSON has no bytes: they travel as ``{"bytes": latin-1 text}``, keys as text."""
    if isinstance(value, bytes):
        return {_BYTES: value.decode("latin-1")}
    if isinstance(value, dict):
        return {_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _text(key: Any) -> Any:
    return key.decode("latin-1") if isinstance(key, bytes) else key


def _with_bytes(value: dict[str, Any]) -> Any:
    return value[_BYTES].encode("latin-1") if value.keys() == {_BYTES} else value
