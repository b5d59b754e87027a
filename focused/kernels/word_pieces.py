"""Split words into the pieces of a vocabulary by the hashes of their letters."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i32_le
from mypy_extensions import i32, i64

from focused.kernels.word_hashing import BASE, mix_bits
from focused.kernels.word_table import find_word, shift_of

INSIDE: Final = 0x5BD1E995
"""Tells the hash of a piece inside a word from that of the same letters at its beginning."""


def hash_pieces(pieces: list[bytes], are_inside: list[bool], letter_values: bytes) -> bytes:
    """Return the hashes of pieces of letters, in 32 bits each.

    Those at the beginning of words hash like whole words (:mod:`focused.kernels.word_hashing`).
    """
    hashes = BytesWriter()
    for place, piece in enumerate(pieces):
        hashed: i64 = 0
        power: i64 = 1
        for letter in piece:
            hashed = hashed + read_i64_le(letter_values, letter * 8) * power & 0xFFFFFFFF
            power = power * BASE & 0xFFFFFFFF
        hashed = mix_bits(hashed) ^ INSIDE if are_inside[place] else mix_bits(hashed)
        write_i32_le(hashes, i32(hashed - ((hashed >> 31) << 32)))
    return hashes.getvalue()


def split_word(word: bytes, letter_values: bytes, table: bytes) -> list[int]:
    """Return the places of a word's pieces in a table of their hashes, the longest piece first.

    Empty if a part of the word is no piece. Quadratic in the word's length.
    """
    shift = shift_of(table)
    pieces: list[int] = []
    begin: i64 = 0
    while begin < len(word):
        hashed: i64 = 0
        power: i64 = 1
        longest: i64 = -1
        longest_end: i64 = begin
        end: i64 = begin
        while end < len(word):
            hashed = hashed + read_i64_le(letter_values, word[end] * 8) * power & 0xFFFFFFFF
            power = power * BASE & 0xFFFFFFFF
            end += 1
            piece = mix_bits(hashed) ^ INSIDE if begin > 0 else mix_bits(hashed)
            place = find_word(table, shift, piece)
            if place >= 0:
                longest = place
                longest_end = end
        if longest < 0:
            return []
        pieces.append(int(longest))
        begin = longest_end
    return pieces
