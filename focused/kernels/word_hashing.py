"""Hash the words of UTF-8 text byte by byte, and find the hashes in a vocabulary.

The vocabulary is a hash table with open addressing.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import vec
from mypy_extensions import i32, i64

BASE: Final = 0x9E3779B1
MIX_FACTOR: Final = 0x85EBCA6B
END_OF_TEXT: Final = b"\xff"
"""Ends each text; UTF-8 does not have this byte."""
INSIDE: Final = 0x5BD1E995
"""Tells the hash of letters inside a word from that of the same at its beginning."""
PLACE_BITS: Final = 24
"""Of a slot: the place and 1, or 0 in an empty slot. The hash is above."""
PLACE_MASK: Final = (1 << PLACE_BITS) - 1
MIN_SLOTS: Final = 16


def hash_words(raw: bytes, letter_values: bytes, max_chars: int) -> tuple[bytes, bytes, bytes]:
    """Return the hashes of n words, where they begin and end, and the number of words per text.

    ``raw`` holds m texts in UTF-8, each followed by :data:`END_OF_TEXT`. A word is a run of bytes
    with a value other than 0 in ``letter_values``, 256 numbers of 64 bits: two bytes or more, and
    at most ``max_chars`` characters. Its hash is a polynomial of its values modulo 2**32 (Karp and
    Rabin 1987), with mixed bits (after Appleby's MurmurHash3). All arrays have 32-bit elements, of
    shapes (n,), (n, 2) and (m,).
    """
    hashes, places, counts = BytesWriter(), BytesWriter(), BytesWriter()
    base: i64 = BASE
    most: i64 = max_chars
    n_bytes: i64 = len(raw)
    end: i64 = 0
    count: i32 = 0
    while end < n_bytes:
        begin: i64 = end
        hashed: i64 = 0
        power: i64 = 1
        value: i64 = read_i64_le(letter_values, raw[end] * 8)
        while value != 0:
            hashed += value * power  # may wrap around: the low 32 bits count
            power = power * base & 0xFFFFFFFF
            end += 1
            value = read_i64_le(letter_values, raw[end] * 8)
        length: i64 = end - begin
        if length > 1 and (length <= most or _count_chars(raw, begin, end) <= most):
            hashed = _mix_bits(hashed & 0xFFFFFFFF)
            write_i32_le(hashes, i32(hashed - ((hashed >> 31) << 32)))
            write_i32_le(places, i32(begin))
            write_i32_le(places, i32(end))
            count += 1
        if raw[end] == 0xFF:
            write_i32_le(counts, count)
            count = 0
        end += 1
    return hashes.getvalue(), places.getvalue(), counts.getvalue()


def make_word_table(hashes: bytes) -> bytes:
    """Return a table of n hashes of 32 bits; of equal ones it has the last."""
    n: i64 = len(hashes) // 4
    size: i64 = MIN_SLOTS
    while size < 2 * n:
        size *= 2
    slots = vec[i64]([0] * size)
    place: i64 = 0
    while place < n:
        word: i64 = i64(read_i32_le(hashes, 4 * place)) & 0xFFFFFFFF
        slot: i64 = word & size - 1
        while slots[slot] != 0 and slots[slot] >> PLACE_BITS != word:
            slot = slot + 1 & size - 1
        place += 1
        slots[slot] = word << PLACE_BITS | place
    table = BytesWriter()
    for each in slots:
        write_i64_le(table, each)
    return table.getvalue()


def find_words(table: bytes, hashes: bytes) -> bytes:
    """Return the place of each hash in a table, -1 if it has none; 32 bits each."""
    places = BytesWriter()
    end: i64 = len(hashes)
    at: i64 = 0
    while at < end:
        word: i64 = i64(read_i32_le(hashes, at)) & 0xFFFFFFFF
        write_i32_le(places, i32(_place_of(table, word)))
        at += 4
    return places.getvalue()


def split_word(table: bytes, letters: bytes, letter_values: bytes) -> bytes:
    """Return the places of a word's pieces, the longest first, from the left; 32 bits each.

    The table has the hashes of :func:`hash_piece`. Empty if a part of the word is no piece.
    """
    places = BytesWriter()
    begin: i64 = 0
    while begin < len(letters):
        end: i64 = len(letters)
        place: i64 = -1
        while place < 0:
            if end == begin:
                return b""
            place = _place_of(table, hash_piece(letters, begin, end, letter_values))
            end -= 1
        write_i32_le(places, i32(place))
        begin = end + 1
    return places.getvalue()


def hash_piece(letters: bytes, begin: i64, end: i64, letter_values: bytes) -> i64:
    """Return the hash, of 32 bits, of a part of a word; that of a whole word is the word's."""
    hashed: i64 = 0
    power: i64 = 1
    at: i64 = begin
    while at < end:
        hashed += read_i64_le(letter_values, letters[at] * 8) * power
        power = power * BASE & 0xFFFFFFFF
        at += 1
    return _mix_bits(hashed & 0xFFFFFFFF) ^ (INSIDE if begin > 0 else 0)


def _place_of(table: bytes, word: i64) -> i64:
    """Return the place of a hash in a table, -1 if it has none."""
    mask: i64 = len(table) // 8 - 1
    slot: i64 = word & mask
    found: i64 = read_i64_le(table, slot * 8)
    while found != 0 and found >> PLACE_BITS != word:
        slot = slot + 1 & mask
        found = read_i64_le(table, slot * 8)
    return (found & PLACE_MASK) - 1


def _mix_bits(hashed: i64) -> i64:
    """Return the mixed bits of a number of 32 bits."""
    hashed ^= hashed >> 15
    hashed = hashed * MIX_FACTOR & 0xFFFFFFFF
    hashed ^= hashed >> 13
    return hashed * BASE & 0xFFFFFFFF


def _count_chars(raw: bytes, begin: i64, end: i64) -> i64:
    chars: i64 = 0
    while begin < end:
        if raw[begin] & 0xC0 != 0x80:  # not the continuation of a character
            chars += 1
        begin += 1
    return chars
