"""Hash the shingles of a text character by character."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_i64_le
from mypy_extensions import i64

WORD_BASE: Final = -0x61C8864680B583EB
SHINGLE_FACTOR: Final = -0x3D4D51C2D82B14B1
MIX_FACTOR: Final = -0xAE502812AA7333
"""As signed numbers of 64 bits."""
LOW_BITS: Final = 0x7FFFFFFFFFFFFFFF


def hash_shingles(codes: bytes, characters: bytes) -> bytes:
    """Return the hash of each five consecutive words of a text, in 64 bits each.

    ``codes`` are the text's code points. ``characters`` has for each code point 0 if it separates
    words, the code point of its lower case if it is a letter, and minus that if it is a word of its
    own, as is each code point beyond the table. Both have elements of 32 bits. A word's hash is a
    polynomial of its letters modulo 2**64 (Karp and Rabin 1987), a shingle's one of its words, with
    mixed bits.
    """
    hashes = BytesWriter()
    base: i64 = WORD_BASE
    factor: i64 = SHINGLE_FACTOR
    mix_factor: i64 = MIX_FACTOR
    low: i64 = LOW_BITS
    n_characters: i64 = len(characters) // 4
    n: i64 = len(codes) // 4
    words: i64 = 0
    first: i64 = 0
    second: i64 = 0
    third: i64 = 0
    fourth: i64 = 0
    place: i64 = 0
    while place < n:
        code: i64 = i64(read_i32_le(codes, place * 4))
        letter: i64 = -code
        if code < n_characters:
            letter = i64(read_i32_le(characters, code * 4))
        place += 1
        if letter == 0:
            continue
        word: i64 = letter
        if letter < 0:
            word = -letter
        else:
            power: i64 = base
            while place < n:
                code = i64(read_i32_le(codes, place * 4))
                if code >= n_characters:
                    break
                letter = i64(read_i32_le(characters, code * 4))
                if letter <= 0:
                    break
                word += letter * power  # may wrap around
                power *= base
                power = (power & low) - ((power >> 63 & 1) << 63)
                place += 1
        word = mixed(word, mix_factor, low)
        words += 1
        if words >= 5:
            shingle = ((first * factor + second) * factor + third) * factor + fourth
            write_i64_le(hashes, mixed(shingle * factor + word, mix_factor, low))
        first = second
        second = third
        third = fourth
        fourth = word
    return hashes.getvalue()


def mixed(number: i64, factor: i64, low: i64) -> i64:
    """Make each of the low 64 bits depend on all (Appleby, MurmurHash3 finaliser).

    They are returned as a signed number, which compiled numbers are at once.
    """
    number ^= number >> 33 & 0x7FFFFFFF
    number *= factor
    number ^= number >> 33 & 0x7FFFFFFF
    return (number & low) - ((number >> 63 & 1) << 63)
