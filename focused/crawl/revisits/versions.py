"""Compare versions of pages with what is known of their host: boilerplate, validators, soft 404s.

Persistent by host; the caller commits.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import xxhash

from focused.crawl.revisits.change_detection import (
    ChangeKind,
    ContentChange,
    HostBoilerplate,
    VersionText,
    detect_change,
    read_version,
    sign_version,
)
from focused.crawl.revisits.page_records import PageRecord
from focused.crawl.revisits.soft_404 import (
    MissingPages,
    looks_like_soft_404,
    redirects_to_missing_page,
)
from focused.crawl.revisits.validators import (
    ConditionKind,
    RevisitEvidence,
    ValidatorTrust,
    clock_offset_s,
    conditional_headers,
    modification_time,
    parse_validators,
)
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.text.hash_sampling import hash_fraction
from focused.web.content_hash import content_fingerprint
from focused.web.page import Fetched, NotModified, Outcome, Page, Redirected
from focused.web.urls import host_of

logger = logging.getLogger(__name__)


class _HostRow(msgspec.Struct, array_like=True):
    boilerplate: HostBoilerplate = msgspec.field(default_factory=HostBoilerplate)
    trust: ValidatorTrust = msgspec.field(default_factory=ValidatorTrust)


_decode_host = msgspec.msgpack.Decoder(_HostRow).decode


@dataclass(frozen=True, slots=True)
class Comparison:
    """A page compared with its stored version; ``change`` is None if none is stored."""

    change: ContentChange | None
    is_soft_404: bool


class VersionChecker:
    """Signs new versions, compares later ones, and makes requests conditional."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._missing_pages = MissingPages(tables)
        self._conditions: dict[str, ConditionKind] = {}
        """The conditions of the requests in flight, by URL."""

    def conditional_headers(self, url: str, record: PageRecord, now: float) -> Mapping[str, str]:
        """Return the headers that make the request for a known page conditional."""
        trust = self._host(url).trust
        draw = hash_fraction(url, record.tries)
        condition = conditional_headers(record.validators, trust, now, draw)
        self._conditions[url] = condition.kind
        return condition.headers

    def first_version(
        self, fetched: Fetched, page: Page, blocks: Sequence[str] | None, record: PageRecord
    ) -> None:
        """Store signature and validators of a page's first version in its record.

        ``blocks`` is None for a feed, whose every byte counts.
        """
        version = _read_version(fetched, page, blocks)
        host = self._host(fetched.url)
        host.boilerplate.add_page(fetched.url, version)
        host.trust.record_clock(clock_offset_s(fetched.headers, fetched.received_at))
        record.signature = sign_version(version, host.boilerplate)
        record.validators = parse_validators(fetched.headers, fetched.received_at)
        self._put(fetched.url, host)

    def compare(
        self,
        fetched: Fetched,
        page: Page,
        blocks: Sequence[str] | None,
        record: PageRecord,
        *,
        title_before: str,
    ) -> Comparison:
        """Compare a page with its stored version, and store the new one in the record.

        ``blocks`` is None for a feed, whose every byte counts.
        """
        version = _read_version(fetched, page, blocks)
        host, before = self._host(fetched.url), record.signature
        change = None if before is None else detect_change(before, version, host.boilerplate)
        if change is not None and blocks is None and change.kind is not ChangeKind.IDENTICAL:
            change = ContentChange(ChangeKind.CHANGED)
        host.boilerplate.add_page(fetched.url, version, change)
        kind = None if change is None else change.kind
        self._record_validators(fetched, record, host, kind)
        is_soft_404 = change is not None and looks_like_soft_404(
            page.title,
            version,
            change,
            title_before,
            self._missing_pages.get(fetched.url),
            host.boilerplate,
        )
        self._put(fetched.url, host)
        if change is None or (change.kind is not ChangeKind.IDENTICAL and not is_soft_404):
            record.signature = sign_version(version, host.boilerplate)
        return Comparison(change, is_soft_404)

    def confirm(self, outcome: NotModified, record: PageRecord) -> bool:
        """Learn from a response with status 304; return whether it confirms the stored version."""
        host = self._host(outcome.url)
        self._record_validators(outcome, record, host, None)
        self._put(outcome.url, host)
        return self._conditions.get(outcome.url) is not ConditionKind.PROBE

    def missing_url_to_request(self, url: str, now: float) -> str | None:
        """Return a URL that cannot exist, to request before the revisit of ``url``, or None."""
        return self._missing_pages.url_to_request(url, now)

    def record_missing_page(
        self, outcome: Outcome, page: Page | None, blocks: Sequence[str] | None, now: float
    ) -> None:
        """Store how a host answers the request for a URL that cannot exist."""
        title, signature = "", None
        if isinstance(outcome, Fetched) and page is not None:
            version = _read_version(outcome, page, blocks)
            title = page.title
            signature = sign_version(version, self._host(outcome.url).boilerplate)
        self._missing_pages.record(outcome, now, title, signature)

    def redirects_to_missing_page(self, outcome: Redirected) -> bool:
        """Whether a redirect means that the page is missing."""
        return redirects_to_missing_page(outcome, self._missing_pages.get(outcome.url))

    def clock_offset_s(self, url: str) -> float:
        """Return how far the clock of the URL's host is ahead of ours."""
        return self._host(url).trust.clock_offset_s

    def forget_request(self, url: str) -> None:
        """Note that a request ended."""
        self._conditions.pop(url, None)

    def _record_validators(
        self,
        outcome: Fetched | NotModified,
        record: PageRecord,
        host: _HostRow,
        change: ChangeKind | None,
    ) -> None:
        after = parse_validators(outcome.headers, outcome.received_at)
        is_unknown = isinstance(outcome, Fetched) and change is None
        if not is_unknown:
            condition = self._conditions.get(outcome.url, ConditionKind.NONE)
            evidence = RevisitEvidence(condition, record.validators, after, change)
            for kind in sorted(host.trust.record(evidence, outcome.received_at)):
                message = "%s sends a wrong %s header; it is not sent back for some months"
                logger.info(message, host_of(outcome.url), kind)
        host.trust.record_clock(clock_offset_s(outcome.headers, outcome.received_at))
        if isinstance(outcome, Fetched):
            record.validators = after

    def _host(self, url: str) -> _HostRow:
        raw = self._tables.get("host_versions", host_of(url).encode())
        return _HostRow() if raw is None else _decode_host(raw)

    def _put(self, url: str, host: _HostRow) -> None:
        self._tables.put("host_versions", host_of(url).encode(), pack(host))


def changed_at(fetched: Fetched, previous_at: float) -> float | None:
    """Return when a changed page was last modified, by its host; None if it does not tell."""
    return modification_time(fetched.headers, previous_at, fetched.received_at)


def _read_version(fetched: Fetched, page: Page, blocks: Sequence[str] | None) -> VersionText:
    if blocks is None:
        return read_version(xxhash.xxh3_128_digest(fetched.body), page.title, ())
    return read_version(content_fingerprint(page), page.title, blocks)
