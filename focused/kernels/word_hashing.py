"""Hash the words of UTF-8 text byte by byte."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i32_le
from mypy_extensions import i32, i64

BASE: Final = 0x9E3779B1
MIX_FACTOR: Final = 0x85EBCA6B
END_OF_TEXT = b"\xff"
"""Ends each text; UTF-8 does not have this byte."""
INSIDE: Final = 0x5BD1E995
"""Tells the hash of a piece inside a word from that of the same letters at its beginning."""


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


def hash_beginnings(letters: bytes, letter_values: bytes, inside: i64) -> bytes:
    """Return the hashes of the first letter, the first two letters, and so on, in 32 bits each.

    With ``inside`` 0 they are those of words, with :data:`INSIDE` those of pieces inside words.
    """
    hashes = BytesWriter()
    hashed: i64 = 0
    power: i64 = 1
    for letter in letters:
        hashed = hashed + read_i64_le(letter_values, letter * 8) * power & 0xFFFFFFFF
        power = power * BASE & 0xFFFFFFFF
        piece: i64 = _mix_bits(hashed) ^ inside
        write_i32_le(hashes, i32(piece - ((piece >> 31) << 32)))
    return hashes.getvalue()


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
