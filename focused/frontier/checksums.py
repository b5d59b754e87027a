"""Checksums of the rows of a state's tables: four bytes behind each value.

LMDB has none. A checksum covers the table's name, the row's key and its value, so a row
that is damaged, or that a damaged page puts under another key, does not pass.
"""

from __future__ import annotations

from xxhash import xxh3_64_digest, xxh32_intdigest

CHECKSUM_BYTES = 4


def seed_of(table: str) -> int:
    """The seed of the checksums of a table."""
    return xxh32_intdigest(table.encode())


def with_checksum(seed: int, key: bytes, value: bytes) -> bytes:
    """The value as it is stored."""
    return value + xxh3_64_digest(key + value, seed)[CHECKSUM_BYTES:]


def without_checksum(seed: int, key: bytes, stored: bytes) -> bytes | None:
    """The value that was stored; None when its checksum is wrong."""
    value = stored[:-CHECKSUM_BYTES]
    if stored[-CHECKSUM_BYTES:] != xxh3_64_digest(key + value, seed)[CHECKSUM_BYTES:]:
        return None
    return value
