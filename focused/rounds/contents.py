"""The contents of all partitions' pages on topic, as one partition knows them.

A partition tells the others what it claimed in a round, and looks its pages up among what others
claimed in earlier rounds. Two partitions that fetch the same content in one round both keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from focused.cluster.shared_contents import INDEXED_HASHES, Claim, ClaimAnswer
from focused.storage.tables import Tables

_RECORDS, _INDEX, _URLS = "shared_contents", "shared_hashes", "shared_urls"
_CLAIMED = "claimed_contents"
_NUMBER_BYTES = 8


class _Claimed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    key: bytes
    record: bytes
    hashes: tuple[bytes, ...]
    url_key: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Claimed).decode


class RoundContents:
    """The :class:`focused.cluster.shared_contents.ContentStore` of a partition; its crawl commits.

    Own claims are only sent: duplicates within the partition are detected by its crawl.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        last = tables.last_key(_CLAIMED)
        self._next = 0 if last is None else int.from_bytes(last, "big") + 1

    def claim(self, claim: Claim) -> ClaimAnswer:
        """Look the content up, and note the claim for the other partitions."""
        record = self._tables.get(_RECORDS, claim.key)
        found = [self._tables.get(_INDEX, each) for each in claim.hashes]
        similar = [key for key in found if key is not None]
        row = _Claimed(claim.key, claim.record, tuple(claim.hashes[:INDEXED_HASHES]), claim.url_key)
        self._tables.put(_CLAIMED, _key(self._next), _encode(row), last=True)
        self._next += 1
        return ClaimAnswer(claim.record if record is None else record, similar)

    def retract(self, url_key: bytes) -> None:
        """Don't send the last claim: its page is a duplicate."""
        self._next -= 1
        self._tables.delete(_CLAIMED, _key(self._next))

    def records(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return the records of those keys that have one."""
        found = [self._tables.get(_RECORDS, key) for key in keys]
        return [record for record in found if record is not None]

    def has_url(self, url_key: bytes) -> bool:
        """Whether an original of another partition has the URL."""
        return self._tables.get(_URLS, url_key) is not None

    def collect(self) -> Sequence[bytes]:
        """Return the claims that are to be sent."""
        return [row for _, row in self._tables.scan(_CLAIMED)]

    def confirm(self, count: int) -> None:
        """Remove the oldest claims: a manifest names the file that has them."""
        keys = [key for _, (key, _) in zip(range(count), self._tables.scan(_CLAIMED), strict=False)]
        for key in keys:
            self._tables.delete(_CLAIMED, key)

    def deliver(self, rows: Sequence[bytes]) -> None:
        """Add claims of another partition. Raises msgspec.MsgspecError for a malformed one."""
        for claimed in map(_decode, rows):
            if self._tables.get(_RECORDS, claimed.key) is not None:
                continue
            self._tables.put(_RECORDS, claimed.key, claimed.record)
            self._tables.put(_URLS, claimed.url_key, b"")
            for each in claimed.hashes:
                if self._tables.get(_INDEX, each) is None:
                    self._tables.put(_INDEX, each, claimed.key)


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
