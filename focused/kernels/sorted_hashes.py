"""Compare two ascending sequences of distinct hashes, of 64 bits without sign each."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

SIGN: Final = -0x8000000000000000
"""Added to a signed number, it gives one in the order of the numbers without sign."""


def hashes_without(hashes: bytes, others: bytes) -> bytes:
    """Return those of ``hashes`` that are not among ``others``."""
    kept = BytesWriter()
    sign: i64 = SIGN
    end: i64 = len(hashes)
    end_of_others: i64 = len(others)
    at_other: i64 = 0
    at: i64 = 0
    while at < end:
        number: i64 = read_i64_le(hashes, at)
        at += 8
        while at_other < end_of_others and (read_i64_le(others, at_other) ^ sign < number ^ sign):
            at_other += 8
        if at_other == end_of_others or read_i64_le(others, at_other) != number:
            write_i64_le(kept, number)
    return kept.getvalue()
