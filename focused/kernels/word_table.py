"""Places of many word hashes in a vocabulary: a hash table with open addressing."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import vec
from mypy_extensions import i32, i64

PLACE_BITS: Final = 24
"""Of a slot: the place and 1, or 0 in an empty slot. The hash is above."""
PLACE_MASK: Final = (1 << PLACE_BITS) - 1
MIN_BITS: Final = 4


def make_word_table(hashes: bytes) -> bytes:
    """Return a table of n hashes of 32 bits; of equal ones it has the last."""
    n: i64 = len(hashes) // 4
    bits: i64 = MIN_BITS
    while (1 << bits) < 2 * n:
        bits += 1
    mask: i64 = (1 << bits) - 1
    shift: i64 = 32 - bits
    slots = vec[i64]([0] * (mask + 1))
    place: i64 = 0
    while place < n:
        word: i64 = i64(read_i32_le(hashes, 4 * place)) & 0xFFFFFFFF
        slot: i64 = word >> shift
        while slots[slot] != 0 and slots[slot] >> PLACE_BITS != word:
            slot = slot + 1 & mask
        place += 1
        slots[slot] = word << PLACE_BITS | place
    table = BytesWriter()
    for each in slots:
        write_i64_le(table, each)
    return table.getvalue()


def find_words(table: bytes, hashes: bytes) -> bytes:
    """Return the place of each hash in a table, -1 if it has none; 32 bits each."""
    mask: i64 = len(table) // 8 - 1
    shift: i64 = 32
    while (mask >> (32 - shift)) != 0:
        shift -= 1
    places = BytesWriter()
    end: i64 = len(hashes)
    at: i64 = 0
    while at < end:
        word: i64 = i64(read_i32_le(hashes, at)) & 0xFFFFFFFF
        slot: i64 = word >> shift
        found: i64 = read_i64_le(table, slot * 8)
        while found != 0 and found >> PLACE_BITS != word:
            slot = slot + 1 & mask
            found = read_i64_le(table, slot * 8)
        write_i32_le(places, i32(found & PLACE_MASK) - 1)
        at += 4
    return places.getvalue()
