"""The contents of the pages on topic of all partitions, to detect duplicates across them.

A page that is new to its own partition claims its content. The first claim makes it the original;
whoever claims the same content for another URL has a duplicate.

Near-duplicates: as in :mod:`focused.crawl.dedup.duplicates`, but with smaller sketches. The two
smallest shingle hashes of an original are indexed, and the four smallest of a new page are looked
up. Of two pages with a resemblance of 0.85, the smallest hash of one is also the other's with a
probability of 0.92, so one pair in a hundred is missed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.cluster.messages import MessageError
from focused.cluster.routing import OwnerOf
from focused.crawl.dedup.duplicates import (
    MIN_RESEMBLANCE,
    MIN_SHINGLES,
    DuplicateKind,
    DuplicateMatch,
    PageSketch,
)
from focused.frontier.queued_link import link_key
from focused.storage.rows import pack
from focused.text.content_signatures import ShingleHashes, Sketch, estimate_resemblance
from focused.web.urls import host_of

logger = logging.getLogger(__name__)

KEY_BYTES = 8
"""Bytes of a content's key, enough for a hundred million pages."""
SHORT_KEY_BYTES = 6
"""Bytes of the key of a shingle hash or a URL."""
INDEXED_HASHES = 2
"""The smallest shingle hashes of a page that are indexed."""
_QUERIED_HASHES = 4
_SKETCH_HASHES = 40
_MAX_COMPARED_PAGES = 4
# The smallest hashes of a page begin with zeros, so its larger bits distinguish them.
_STORED_HASH = np.dtype(">u4")
_DROPPED_BITS = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a page claims: its content's key and record, and the key of its URL.

    The first of its ``hashes`` are indexed, all of them are looked up.
    """

    key: bytes
    record: bytes
    hashes: Sequence[bytes]
    url_key: bytes


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The record of the content: that of the claim, or of an earlier one.

    ``similar`` has the keys of the contents that were indexed under the hashes.
    """

    record: bytes
    similar: Sequence[bytes]


class ContentStore(Protocol):
    """Records of contents, an index of them, and a set of URLs."""

    def claim(self, claim: Claim) -> ClaimAnswer:
        """Look the content and all hashes up, and note the claim."""

    def retract(self, url_key: bytes) -> None:
        """Take the last claim back: its page is a duplicate."""

    def records(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return the records of those keys that have one."""

    def has_url(self, url_key: bytes) -> bool:
        """Whether an original has the URL."""


class _Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    url: Annotated[str, msgspec.Meta(max_length=8_192)]
    up_to: Annotated[int, msgspec.Meta(ge=0)] = 0
    hashes: Annotated[bytes, msgspec.Meta(max_length=_SKETCH_HASHES * _STORED_HASH.itemsize)] = b""

    @property
    def sketch(self) -> Sketch:
        return Sketch(np.frombuffer(self.hashes, _STORED_HASH).astype(np.uint64), self.up_to)


_decoder = msgspec.msgpack.Decoder(_Record)


def _decode_record(raw: bytes) -> _Record:
    try:
        record = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(f"the record of a content is malformed: {error}") from error
    if len(record.hashes) % _STORED_HASH.itemsize:
        raise MessageError(f"{record.url}: the sketch in the record of its content is malformed")
    return record


class ContentRegistry:
    """The :class:`focused.crawl.dedup.duplicates.SharedContents` of one partition."""

    def __init__(self, store: ContentStore, partition: int, owner_of: OwnerOf) -> None:
        self._store = store
        self._partition = partition
        self._owner_of = owner_of

    def claim(self, key: bytes, url: str, sketch: PageSketch | None) -> DuplicateMatch | None:
        """Return the page of another URL with this content, or nearly; None makes it ours."""
        hashes = sketch.own.hashes if sketch is not None else np.empty(0, np.uint64)
        if len(hashes) < MIN_SHINGLES:
            sketch, hashes = None, hashes[:0]
        record = _Record(url) if sketch is None else _record_of(url, sketch.own)
        claim = Claim(
            key[:KEY_BYTES],
            pack(record),
            _hash_keys(hashes[:_QUERIED_HASHES]),
            link_key(url)[:SHORT_KEY_BYTES],
        )
        answer = self._store.claim(claim)
        try:
            match = self._match(key, url, sketch, answer)
        except MessageError as error:
            logger.warning("partition %d: %s", self._partition, error)
            return None
        if match is not None:
            self._store.retract(claim.url_key)
        return match

    def is_original(self, url: str) -> bool:
        """Whether another partition fetched ``url`` and its page was new."""
        key = link_key(url)
        is_own = self._owner_of(host_of(url), key) == self._partition
        return not is_own and self._store.has_url(key[:SHORT_KEY_BYTES])

    def _match(
        self, key: bytes, url: str, sketch: PageSketch | None, answer: ClaimAnswer
    ) -> DuplicateMatch | None:
        original = _decode_record(answer.record).url
        if original != url:
            exact = DuplicateKind.EXACT
            return DuplicateMatch(key, original, exact, sketch, exact_duplicate_of=original)
        if sketch is None or not answer.similar:
            return None
        similar = self._nearest(url, sketch, answer.similar)
        return None if similar is None else DuplicateMatch(key, similar, DuplicateKind.NEAR, sketch)

    def _nearest(self, url: str, sketch: PageSketch, keys: Sequence[bytes]) -> str | None:
        """Return the URL of the page that is most similar, or None."""
        candidates = [key for key, _ in Counter(keys).most_common(_MAX_COMPARED_PAGES)]
        best = (0.0, "")
        for raw in self._store.records(candidates):
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
    filed = record.sketch.without(_shortened(page.boilerplate))
    share, number = estimate_resemblance(own, filed)
    return share if number >= MIN_SHINGLES else 0.0


def _shortened(hashes: ShingleHashes) -> NDArray[np.uint64]:
    return hashes >> _DROPPED_BITS


def _hash_keys(hashes: ShingleHashes) -> list[bytes]:
    """The last bytes of each hash: the first ones are zero in small hashes."""
    return [int(each).to_bytes(8, "big")[-SHORT_KEY_BYTES:] for each in hashes]
