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
END_OF_TEXT = b"\xff"
"""Ends each text; UTF-8 does not have this byte."""
INSIDE: Final = 0x5BD1E995
"""Tells the hash of a piece inside a word from that of the same letters at its beginning."""
PLACE_BITS: Final = 24
"""Of a slot: the place and 1, or 0 in an empty slot. The hash is above."""
PLACE_MASK: Final = (1 << PLACE_BITS) - 1
MIN_BITS: Final = 4


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


def hash_piece(letters: bytes, letter_values: bytes, inside: i64) -> i64:
    """Return the hash, of 32 bits, of letters at the beginning of a word: that of the whole word.

    With ``inside`` :data:`INSIDE` instead of 0 it is that of letters inside a word.
    """
    hashed: i64 = 0
    power: i64 = 1
    for letter in letters:
        hashed = hashed + read_i64_le(letter_values, letter * 8) * power & 0xFFFFFFFF
        power = power * BASE & 0xFFFFFFFF
    return _mix_bits(hashed) ^ inside


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
    shift: i64 = _shift_of(mask)
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


def split_word(table: bytes, letters: bytes, letter_values: bytes) -> bytes:
    """Return the places of a word's pieces, the longest first, from the left; 32 bits each.

    The table has the hashes of :func:`hash_piece`. Empty if a part of the word is no piece.
    """
    mask: i64 = len(table) // 8 - 1
    shift: i64 = _shift_of(mask)
    places = BytesWriter()
    n_letters: i64 = len(letters)
    begin: i64 = 0
    while begin < n_letters:
        place: i64 = 0
        next_begin: i64 = begin
        inside: i64 = INSIDE if begin > 0 else 0
        hashed: i64 = 0
        power: i64 = 1
        end: i64 = begin
        while end < n_letters:
            hashed = hashed + read_i64_le(letter_values, letters[end] * 8) * power & 0xFFFFFFFF
            power = power * BASE & 0xFFFFFFFF
            end += 1
            piece: i64 = _mix_bits(hashed) ^ inside
            slot: i64 = piece >> shift
            found: i64 = read_i64_le(table, slot * 8)
            while found != 0 and found >> PLACE_BITS != piece:
                slot = slot + 1 & mask
                found = read_i64_le(table, slot * 8)
            if found != 0:
                place = found & PLACE_MASK
                next_begin = end
        if place == 0:
            return b""
        write_i32_le(places, i32(place) - 1)
        begin = next_begin
    return places.getvalue()


def _shift_of(mask: i64) -> i64:
    """Return by how many bits a hash is shifted for its slot."""
    shift: i64 = 32
    while (mask >> (32 - shift)) != 0:
        shift -= 1
    return shift


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
