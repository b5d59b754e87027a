"""The contents of the pages on topic of all partitions, to detect duplicates across them.

A page that is new to its own partition claims its content. A partition sends the others what it
claimed in a round, and looks its pages up among what others claimed in earlier rounds: a page of
another URL with the same content is a duplicate. Two partitions that fetch the same content in one
round both keep it.

Near-duplicates: as in :mod:`focused.crawl.dedup.duplicates`, but with smaller sketches. The two
smallest shingle hashes of an original are indexed, and the four smallest of a new page are looked
up. Of two pages with a resemblance of 0.85, the smallest hash of one is also the other's with a
probability of 0.92, so one pair in a hundred is missed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.crawl.dedup.duplicates import (
    MIN_RESEMBLANCE,
    MIN_SHINGLES,
    DuplicateKind,
    DuplicateMatch,
    PageSketch,
)
from focused.frontier.queued_link import link_key
from focused.rounds.outbox import NumberedRows, OwnerOf
from focused.storage.tables import Tables
from focused.text.shingles import ShingleHashes, Sketch, estimate_resemblance
from focused.web.urls import host_of

logger = logging.getLogger(__name__)

_RECORDS, _INDEX, _URLS = "shared_contents", "shared_hashes", "shared_urls"
_CLAIMS = "claimed_contents"
_KEY_BYTES = 8
"""Bytes of a content's key, enough for a hundred million pages."""
_SHORT_KEY_BYTES = 6
"""Bytes of the key of a shingle hash or a URL."""
_INDEXED_HASHES = 2
"""The smallest shingle hashes of a page that are indexed."""
_QUERIED_HASHES = 4
_SKETCH_HASHES = 40
_MAX_COMPARED_PAGES = 4
# The smallest hashes of a page begin with zeros, so its larger bits distinguish them.
_STORED_HASH = np.dtype(">u4")
_DROPPED_BITS = np.uint64(32)


class _Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    url: Annotated[str, msgspec.Meta(max_length=8_192)]
    up_to: Annotated[int, msgspec.Meta(ge=0)] = 0
    hashes: Annotated[bytes, msgspec.Meta(max_length=_SKETCH_HASHES * _STORED_HASH.itemsize)] = b""

    def sketch(self) -> Sketch:
        return Sketch(np.frombuffer(self.hashes, _STORED_HASH).astype(np.uint64), self.up_to)


class _Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    key: bytes
    record: bytes
    hashes: tuple[bytes, ...]
    url_key: bytes
    partition: int


_encode = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(_Record).decode
_decode_claim = msgspec.msgpack.Decoder(_Claim).decode


class RoundContents:
    """The :class:`focused.crawl.dedup.duplicates.SharedContents` of a partition; its crawl commits.

    Own claims are only sent: duplicates within the partition are detected by its crawl.
    """

    def __init__(self, tables: Tables, partition: int, owner_of: OwnerOf) -> None:
        self._tables = tables
        self._partition = partition
        self._owner_of = owner_of
        self.claims = NumberedRows(tables, _CLAIMS)
        """Claims that are to be sent."""

    def claim(self, key: bytes, url: str, sketch: PageSketch | None) -> DuplicateMatch | None:
        """Return the page of another URL with this content, or nearly; None makes it ours."""
        hashes = sketch.own.hashes if sketch is not None else np.empty(0, np.uint64)
        if len(hashes) < MIN_SHINGLES:
            sketch, hashes = None, hashes[:0]
        hash_keys = _hash_keys(hashes[:_QUERIED_HASHES])
        match = self._find(key, url, sketch, hash_keys)
        if match is None:
            record = _Record(url) if sketch is None else _record_of(url, sketch.own)
            claim = _Claim(
                key[:_KEY_BYTES],
                _encode(record),
                tuple(hash_keys[:_INDEXED_HASHES]),
                link_key(url)[:_SHORT_KEY_BYTES],
                self._partition,
            )
            self.claims.add(_encode(claim))
        return match

    def is_original(self, url: str) -> bool:
        """Whether another partition fetched ``url`` and its page was new."""
        key = link_key(url)
        if self._owner_of(host_of(url), key) == self._partition:
            return False
        return self._tables.get(_URLS, key[:_SHORT_KEY_BYTES]) is not None

    def deliver(self, rows: Sequence[bytes]) -> None:
        """Add the claims of other partitions; malformed ones are skipped."""
        for row in rows:
            try:
                claim = _decode_claim(row)
                _decode_record(claim.record).sketch()
            except (msgspec.MsgspecError, ValueError) as error:
                logger.warning("a claim of another partition is malformed: %s", error)
                continue
            is_own = claim.partition == self._partition
            if is_own or self._tables.get(_RECORDS, claim.key) is not None:
                continue
            self._tables.put(_RECORDS, claim.key, claim.record)
            self._tables.put(_URLS, claim.url_key, b"")
            for each in claim.hashes:
                if self._tables.get(_INDEX, each) is None:
                    self._tables.put(_INDEX, each, claim.key)

    def _find(
        self, key: bytes, url: str, sketch: PageSketch | None, hash_keys: Sequence[bytes]
    ) -> DuplicateMatch | None:
        record = self._tables.get(_RECORDS, key[:_KEY_BYTES])
        original = url if record is None else _decode_record(record).url
        if original != url:
            exact = DuplicateKind.EXACT
            return DuplicateMatch(key, original, exact, sketch, exact_duplicate_of=original)
        found = [self._tables.get(_INDEX, each) for each in hash_keys]
        similar = [each for each in found if each is not None]
        if sketch is None or not similar:
            return None
        nearest = self._nearest(url, sketch, similar)
        return None if nearest is None else DuplicateMatch(key, nearest, DuplicateKind.NEAR, sketch)

    def _nearest(self, url: str, sketch: PageSketch, keys: Sequence[bytes]) -> str | None:
        """Return the URL of the page that is most similar, or None."""
        candidates = [key for key, _ in Counter(keys).most_common(_MAX_COMPARED_PAGES)]
        best = (0.0, "")
        for raw in filter(None, (self._tables.get(_RECORDS, key) for key in candidates)):
            record = _decode_record(raw)
            # The rules for pages of one host need its boilerplate: they are the partition's own.
            if record.url != url and host_of(record.url) != host_of(url):
                best = max(best, (_resemblance(sketch, record), record.url))
        return best[1] if best[0] >= MIN_RESEMBLANCE else None


def _record_of(url: str, own: Sketch) -> _Record:
    hashes = own.hashes[:_SKETCH_HASHES]
    up_to = own.up_to if len(own.hashes) <= _SKETCH_HASHES else int(hashes[-1])
    stored = _shortened(hashes).astype(_STORED_HASH).tobytes()
    return _Record(url, up_to >> int(_DROPPED_BITS), stored)


def _resemblance(page: PageSketch, record: _Record) -> float:
    """The resemblance of a page to a stored one, without the boilerplate of the page's host."""
    own = Sketch(_shortened(page.own.hashes), page.own.up_to >> int(_DROPPED_BITS))
    filed = record.sketch().without(_shortened(page.boilerplate))
    share, number = estimate_resemblance(own, filed)
    return share if number >= MIN_SHINGLES else 0.0


def _shortened(hashes: ShingleHashes) -> NDArray[np.uint64]:
    return hashes >> _DROPPED_BITS


def _hash_keys(hashes: ShingleHashes) -> list[bytes]:
    """The last bytes of each hash: the first ones are zero in small hashes."""
    return [int(each).to_bytes(8, "big")[-_SHORT_KEY_BYTES:] for each in hashes]
