"""Canonical links (RFC 6596): skip URLs that a fetched page stands for.

Canonical links are often wrong: all pages of a list name its first page, all pages of a site its
front page. A host's canonical links are trusted after :data:`MIN_HITS` confirmations, ten times as
many as contradictions; a confirmation is a page with the same content as the one it names, or as
another page that names the same. Then a URL that a fetched page names is skipped. One in
:data:`RECHECK_ONE_IN` is fetched anyway, to notice when a host goes wrong. Pages never stand for
pages of another host.

A page's link to its AMP variant (``rel=amphtml``) says the same of that URL: the variant is skipped
where the host's links are trusted.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from focused.crawl.dedup.signatures import ContentSignature, hash_key
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.web.urls import host_of

CANONICAL = "canonical of a fetched page"
MIN_HITS = 3
RECHECK_ONE_IN = 8
_HITS_PER_MISS = 10
_TABLE, _HOSTS = "canonical_urls", "canonical_hosts"


class _CanonicalTarget(msgspec.Struct, array_like=True):
    """A URL that pages name as canonical, with the signature of the first of them.

    ``stands``: that page may stand for the URL. ``open``: no contradiction so far.
    """

    signature: bytes
    by: str
    stands: bool
    open: bool = True


class _HostRecord(msgspec.Struct, array_like=True):
    """A host's confirmed and contradicted canonical links."""

    hits: int = 0
    misses: int = 0

    @property
    def is_good(self) -> bool:
        return self.hits >= max(MIN_HITS, _HITS_PER_MISS * self.misses)


_decode_target = msgspec.msgpack.Decoder(_CanonicalTarget).decode
_decode_host_record = msgspec.msgpack.Decoder(_HostRecord).decode


class CanonicalUrls:
    """Learns whose canonical links are right; persistent, the caller commits.

    A page adds at most two rows of about 100 bytes for each URL that it names.
    """

    def __init__(
        self, tables: Tables, load_signature: Callable[[str], ContentSignature | None]
    ) -> None:
        """``load_signature`` returns the signature of the page fetched from a URL, or None."""
        self._tables = tables
        self._load_signature = load_signature
        self._host_records = {
            host.decode(): _decode_host_record(raw) for host, raw in tables.scan(_HOSTS)
        }

    def are_trusted(self, host: str) -> bool:
        """Whether the host's canonical links are trusted."""
        record = self._host_records.get(host)
        return record is not None and record.is_good

    def was_named(self, url: str) -> bool:
        """Whether a fetched page names the URL as canonical."""
        return host_of(url) in self._host_records and self._target(url) is not None

    def why(self, url: str) -> str | None:
        """Return why a URL is skipped, or None."""
        if not self.are_trusted(host_of(url)):
            return None
        target = self._target(url)
        if target is None or not target.stands or not target.open:
            return None
        return CANONICAL if hash_key(url)[0] % RECHECK_ONE_IN else None

    def take(
        self,
        url: str,
        signature: ContentSignature,
        canonical: str | None,
        copy_of: str | None,
        *,
        stands: bool,
        amp: str | None = None,
    ) -> None:
        """Learn from a fetched page that names ``canonical`` and ``amp``, and duplicates
        ``copy_of``.

        ``stands``: the page may stand for these URLs, as it is kept and its links are followed.
        """
        host = host_of(url)
        earlier = self._target(url) if host in self._host_records else None
        if earlier is not None:
            self._compare(url, earlier, signature, copy_of)
        for named in (canonical, amp):
            if named is not None and named != url and host_of(named) == host:
                self._take_named(url, signature, named, copy_of, stands=stands)

    def _take_named(
        self,
        url: str,
        signature: ContentSignature,
        canonical: str,
        copy_of: str | None,
        *,
        stands: bool,
    ) -> None:
        host = host_of(url)
        there = self._load_signature(canonical)
        target = self._target(canonical)
        if copy_of == canonical:
            self._count(host, signature)
        elif there is not None and there.has_text:
            self._count(host, signature if signature.is_like(there, in_any_order=True) else None)
        elif target is not None and target.by != url:
            self._compare(canonical, target, signature, copy_of)
        elif target is None:
            self._keep(canonical, _CanonicalTarget(signature.packed(), url, stands))
            if host not in self._host_records:
                self._keep_record(host, _HostRecord())

    def _compare(
        self, url: str, target: _CanonicalTarget, signature: ContentSignature, copy_of: str | None
    ) -> None:
        """Compare a page with the first page that names the same URL."""
        same = copy_of == target.by or signature.is_like(
            ContentSignature.read(target.signature), in_any_order=True
        )
        self._count(host_of(url), signature if same else None)
        if not same and target.open:
            target.open = False
            self._keep(url, target)

    def _count(self, host: str, same: ContentSignature | None) -> None:
        """Count a confirmation by the content ``same``, or a contradiction for None.

        Each content counts once, because many missing pages have the same text.
        """
        if same is not None:
            once = hash_key(f"{host} {same.text.hex()}")
            if self._tables.get(_TABLE, once) is not None:
                return
            self._tables.put(_TABLE, once, b"")
        record = self._host_records.get(host, _HostRecord())
        record.hits += same is not None
        record.misses += same is None
        self._keep_record(host, record)

    def _keep_record(self, host: str, record: _HostRecord) -> None:
        self._host_records[host] = record
        self._tables.put(_HOSTS, host.encode(), pack(record))

    def _target(self, url: str) -> _CanonicalTarget | None:
        raw = self._tables.get(_TABLE, hash_key(url))
        return None if raw is None else _decode_target(raw)

    def _keep(self, url: str, target: _CanonicalTarget) -> None:
        self._tables.put(_TABLE, hash_key(url), pack(target))
