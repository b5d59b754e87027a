"""Compare versions of pages with what is known of their host: boilerplate, validators, soft 404s.

Persistent by host; the caller commits.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import xxhash
from cachetools import LRUCache

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.change_detection import (
    ContentChange,
    HostBoilerplate,
    PageBlocks,
    VersionText,
    detect_change,
    page_blocks,
    read_version,
    sign_version,
)
from focused.crawl.revisits.collection import PageRecord
from focused.crawl.revisits.page_fate import MissingPages, looks_like_soft_404
from focused.crawl.revisits.validators import (
    NO_VALIDATORS,
    ConditionKind,
    Validators,
    ValidatorTrust,
    clock_offset_s,
    conditional_headers,
    parse_validators,
)
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.text import hash_fraction
from focused.text.content_signatures import content_fingerprint
from focused.web.html.text_blocks import text_blocks
from focused.web.page import Fetched, NotModified, Outcome, Page
from focused.web.urls import host_of

logger = logging.getLogger(__name__)

BLOCKS = "blocks"
"""The findings of :func:`read_blocks`."""


_decode_trust = msgspec.msgpack.Decoder(ValidatorTrust).decode
_decode_boilerplate = msgspec.msgpack.Decoder(HostBoilerplate).decode
_decode_blocks = msgspec.msgpack.Decoder(PageBlocks).decode

_PAGES_PER_SNAPSHOT = 100
_CACHED_HOSTS = 64
_PAGE = struct.Struct(">Q")


def read_blocks(page: Page, html: Fetched) -> Sequence[str]:
    """Return the texts of a page's blocks; a page analyser."""
    return text_blocks(html)


class BoilerplateStore:
    """The boilerplate of hosts; persistent, the caller commits.

    Stores a snapshot of up to 30 kB every hundred pages of a host, and for the pages since then
    what the host learned from each, some 100 to 2,400 bytes.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._cached: LRUCache[str, HostBoilerplate] = LRUCache(_CACHED_HOSTS)

    def get(self, host: str) -> HostBoilerplate:
        """Return the boilerplate of a host; only :meth:`add` may change it."""
        boilerplate = self._cached.get(host)
        if boilerplate is None:
            boilerplate = self._cached[host] = self._load(host)
        return boilerplate

    def add(self, host: str, page: PageBlocks) -> HostBoilerplate:
        """Learn from a page of a host; return the host's boilerplate."""
        boilerplate = self.get(host)
        boilerplate.learn(page)
        clock = boilerplate.clock
        if clock % _PAGES_PER_SNAPSHOT:
            self._tables.put("boilerplate_pages", _page_key(host, clock), pack(page))
            return boilerplate
        self._tables.put("boilerplate", host.encode(), pack(boilerplate))
        for earlier in range(clock - _PAGES_PER_SNAPSHOT + 1, clock):
            self._tables.delete("boilerplate_pages", _page_key(host, earlier))
        return boilerplate

    def _load(self, host: str) -> HostBoilerplate:
        raw = self._tables.get("boilerplate", host.encode())
        boilerplate = HostBoilerplate() if raw is None else _decode_boilerplate(raw)
        while True:
            page = self._tables.get("boilerplate_pages", _page_key(host, boilerplate.clock + 1))
            if page is None:
                return boilerplate
            boilerplate.learn(_decode_blocks(page))


def _page_key(host: str, clock: int) -> bytes:
    return host.encode() + b"\0" + _PAGE.pack(clock)


class VersionChecker:
    """Signs new versions, compares later ones, and makes requests conditional."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._boilerplates = BoilerplateStore(tables)
        self.missing_pages = MissingPages(tables)
        self._conditions: dict[str, ConditionKind] = {}
        """The conditions of the requests in flight, by URL."""

    def conditional_headers(self, url: str, record: PageRecord, now: float) -> Mapping[str, str]:
        """Return the headers that make the request for a known page conditional."""
        trust = self._trust(url)
        draw = hash_fraction(url, record.tries)
        self._conditions[url], headers = conditional_headers(record.validators, trust, now, draw)
        return headers

    def compare(
        self,
        fetched: Fetched,
        page: Page,
        blocks: Sequence[str] | None,
        record: PageRecord,
        *,
        title_before: str = "",
    ) -> ContentChange | None:
        """Compare a page with its stored version, and store the new one in the record.

        None for the first version. ``blocks`` is None for a feed, whose every byte counts.
        """
        version = _read_version(fetched, page, blocks)
        url, before = fetched.url, record.signature
        boilerplate = self._boilerplates.get(host_of(url))
        change = None if before is None else detect_change(before, version, boilerplate)
        if change is not None and blocks is None and change.kind is not VisitResult.IDENTICAL:
            change = ContentChange(VisitResult.CHANGED)
        kind = None if change is None else change.kind
        if kind is not VisitResult.IDENTICAL:  # the same page again shows nothing new of its host
            self._boilerplates.add(host_of(url), page_blocks(url, version, change))
        self._record_validators(fetched, record, kind)
        is_soft_404 = change is not None and looks_like_soft_404(
            page.title,
            version,
            change,
            title_before,
            self.missing_pages.get(url),
            boilerplate,
        )
        if change is None or (change.kind is not VisitResult.IDENTICAL and not is_soft_404):
            record.signature = sign_version(version, boilerplate)
        return replace(change, is_soft_404=True) if change and is_soft_404 else change

    def confirm(self, outcome: NotModified, record: PageRecord) -> bool:
        """Learn from a response with status 304; return whether it confirms the stored version."""
        self._record_validators(outcome, record, None)
        return self._conditions.get(outcome.url) is not ConditionKind.PROBE

    def record_missing_page(
        self, outcome: Outcome, page: Page | None, blocks: Sequence[str] | None, now: float
    ) -> None:
        """Store how a host answers the request for a URL that cannot exist."""
        title, signature = "", None
        if isinstance(outcome, Fetched) and page is not None:
            version = _read_version(outcome, page, blocks)
            title = page.title
            signature = sign_version(version, self._boilerplates.get(host_of(outcome.url)))
        self.missing_pages.record(outcome, now, title, signature)

    def clock_offset_s(self, url: str) -> float:
        """Return how far the clock of the URL's host is ahead of ours."""
        return self._trust(url).clock_offset_s

    def forget_request(self, url: str) -> None:
        """Note that a request ended."""
        self._conditions.pop(url, None)

    def _record_validators(
        self,
        outcome: Fetched | NotModified,
        record: PageRecord,
        change: VisitResult | None,
    ) -> None:
        trust = self._trust(outcome.url)
        after = _validators_of(outcome)
        is_unknown = isinstance(outcome, Fetched) and (
            change is None or outcome.rendered is not None
        )
        if not is_unknown:
            condition = self._conditions.get(outcome.url, ConditionKind.NONE)
            at = outcome.received_at
            for kind in sorted(trust.record(condition, record.validators, after, change, at)):
                message = "%s sends a wrong %s header; it is not sent back for some months"
                logger.info(message, host_of(outcome.url), kind)
        trust.record_clock(clock_offset_s(outcome.headers, outcome.received_at))
        self._put_trust(outcome.url, trust)
        if isinstance(outcome, Fetched):
            record.validators = after

    def _trust(self, url: str) -> ValidatorTrust:
        raw = self._tables.get("validator_trust", host_of(url).encode())
        return ValidatorTrust() if raw is None else _decode_trust(raw)

    def _put_trust(self, url: str, trust: ValidatorTrust) -> None:
        self._tables.put("validator_trust", host_of(url).encode(), pack(trust))


def _validators_of(outcome: Fetched | NotModified) -> Validators:
    """Return the validators of a response; none for a rendered page, since they are of its shell.

    Its next request is unconditional, and tells nothing of the host's validators.
    """
    if isinstance(outcome, Fetched) and outcome.rendered is not None:
        return NO_VALIDATORS
    return parse_validators(outcome.headers, outcome.received_at)


def _read_version(fetched: Fetched, page: Page, blocks: Sequence[str] | None) -> VersionText:
    if blocks is None:
        return read_version(xxhash.xxh3_128_digest(fetched.body), page.title, ())
    return read_version(content_fingerprint(page), page.title, blocks)
