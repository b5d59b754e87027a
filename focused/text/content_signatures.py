"""Signatures for duplicate detection: sketches of shingles, and order-independent hashes.

A shingle is :data:`SHINGLE_WORDS` consecutive words. The resemblance of two texts is the
Jaccard similarity of their shingle sets, estimated from each text's smallest shingle hashes
(Broder 1997, "On the resemblance and containment of documents"). Words are case-folded runs
of letters and digits; scripts without spaces give each character as a word. All work is
array arithmetic: no word string is created.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.text.word_hashes import powers
from focused.web.page import Page

ShingleHashes = NDArray[np.uint64]

SHINGLE_WORDS = 5
SKETCH_SHINGLES = 128
MAX_TEXT_CHARS = 200_000

_SEPARATOR, _LETTER, _SINGLE_CHAR_WORD = range(3)
# Table sizes in code points: the first two cover nearly all texts that are not CJK.
_ASCII, _ALPHABETS, _BASIC_PLANE = 0x80, 0x3000, 0x10000
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
)
_WORD_BASE = np.uint64(0x9E3779B97F4A7C15)
_SHINGLE_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_MIX_SHIFT = np.uint64(33)


@dataclass(frozen=True, slots=True)
class Sketch:
    """A sample of a text's shingles: all hashes up to ``up_to``, ascending.

    ``hashes`` has shape (n,), n at most :data:`SKETCH_SHINGLES`.
    """

    hashes: ShingleHashes
    up_to: int

    def without(self, others: ShingleHashes) -> Sketch:
        """Return the sketch of the text without the shingles in ``others``."""
        return Sketch(hashes_not_in(self.hashes, others), self.up_to)

    def until(self, up_to: int) -> Sketch:
        """Return the smaller sketch of hashes up to ``up_to``."""
        if up_to >= self.up_to:
            return self
        return Sketch(self.hashes[: self.hashes.searchsorted(np.uint64(up_to), "right")], up_to)


def shingles(text: str) -> ShingleHashes:
    """Return the distinct shingle hashes of a text, ascending, shape (n,).

    Uses the first :data:`MAX_TEXT_CHARS` characters. A text shorter than a shingle has none.
    """
    words = _word_hashes(text[:MAX_TEXT_CHARS])
    count = len(words) - SHINGLE_WORDS + 1
    if count <= 0:
        return np.empty(0, np.uint64)
    joined = words[:count].copy()
    for i in range(1, SHINGLE_WORDS):
        joined *= _SHINGLE_FACTOR
        joined += words[i : i + count]
    return _sorted_unique(_mix_bits(joined))


def make_sketch(hashes: ShingleHashes) -> Sketch:
    """Return the smallest of ascending ``hashes``, or all if there are few."""
    if len(hashes) <= SKETCH_SHINGLES:
        return Sketch(hashes, int(np.iinfo(np.uint64).max))
    return Sketch(hashes[:SKETCH_SHINGLES].copy(), int(hashes[SKETCH_SHINGLES - 1]))


def hashes_not_in(hashes: ShingleHashes, others: ShingleHashes) -> ShingleHashes:
    """Return those of ascending ``hashes`` that are not in ``others``."""
    if not len(others) or not len(hashes):
        return hashes
    positions = others.searchsorted(hashes)
    # An insertion point past the end: the last element is smaller, hence unequal.
    positions[positions == len(others)] = len(others) - 1
    kept: ShingleHashes = hashes[others[positions] != hashes]
    return kept


def estimate_resemblance(one: Sketch, other: Sketch) -> tuple[float, int]:
    """Return the estimated Jaccard similarity in [0, 1], and the sample size n.

    The standard error is sqrt(s * (1 - s) / n). Without common coverage the result is 0 of 0.
    """
    up_to = min(one.up_to, other.up_to)
    mine, theirs = one.until(up_to).hashes, other.until(up_to).hashes
    both = len(mine) - len(hashes_not_in(mine, theirs))
    either = len(mine) + len(theirs) - both
    return (both / either if either else 0.0), either


def estimate_containment(one: Sketch, other: Sketch) -> tuple[float, int]:
    """Return the estimated share of the smaller text that the larger contains, in [0, 1].

    Broder's containment, of whichever text has fewer shingles; the last value is the sample size.
    """
    up_to = min(one.up_to, other.up_to)
    mine, theirs = one.until(up_to).hashes, other.until(up_to).hashes
    both = len(mine) - len(hashes_not_in(mine, theirs))
    smaller = min(len(mine), len(theirs))
    return (both / smaller if smaller else 0.0), smaller


def _word_hashes(text: str) -> ShingleHashes:
    codes = _code_points(text)
    plane = _largest_code_range(codes)
    kinds = _char_kinds(plane).take(codes, mode="clip")
    letters = kinds == _LETTER
    begins = kinds != _SEPARATOR
    begins[1:] &= ~(letters[1:] & letters[:-1])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, np.uint64)
    # A word is a polynomial of its characters; dividing by the power of its position makes
    # the hash independent of the position.
    powers_of_base, inverse_powers = powers(_WORD_BASE, len(codes))
    values = _lower_case_code_points(plane).take(codes, mode="clip")
    if plane == _BASIC_PLANE:
        outside_plane = codes >= plane
        values[outside_plane] = codes[outside_plane]
    values *= powers_of_base[: len(codes)]
    # Prefix sum at each word's end less that at its start, modulo 2**64.
    up_to = values.cumsum()
    sums = np.append(up_to[starts[1:] - 1], up_to[-1])
    sums[1:] -= sums[:-1].copy()
    return _mix_bits(sums * inverse_powers[starts])


def _code_points(text: str) -> NDArray[np.uint8] | NDArray[np.uint32]:
    """Return code points; lower-cased first if case folding needs more than a table."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    codes = _utf32(text)
    if "\u0130" in text or "\u03a3" in text or codes.max() >= _BASIC_PLANE:
        codes = _utf32(text.lower())
    return codes


def _largest_code_range(codes: NDArray[np.uint8] | NDArray[np.uint32]) -> int:
    if codes.dtype == np.uint8:
        return _ASCII
    return _ALPHABETS if codes.max() < _ALPHABETS else _BASIC_PLANE


def _utf32(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _sorted_unique(hashes: ShingleHashes) -> ShingleHashes:
    # np.unique takes twenty times as long.
    hashes.sort()
    first = np.ones(len(hashes), bool)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


def _mix_bits(hashes: ShingleHashes) -> ShingleHashes:
    """Make each bit depend on all bits (Appleby, MurmurHash3 finaliser)."""
    hashes ^= hashes >> _MIX_SHIFT
    hashes *= _MIX_FACTOR
    hashes ^= hashes >> _MIX_SHIFT
    return hashes


@cache
def _char_kinds(plane: int) -> NDArray[np.uint8]:
    """Return the kind of each of the first code points; the last entry covers the rest."""
    categories = map(unicodedata.category, map(chr, range(plane)))
    kinds = np.fromiter(map(_kind_of_category, categories), np.uint8, plane)
    for first, last in _UNSPACED:
        block = kinds[first : last + 1]
        block[block == _LETTER] = _SINGLE_CHAR_WORD
    return np.append(kinds, np.uint8(_SINGLE_CHAR_WORD))


@cache
def _kind_of_category(category: str) -> int:
    return _LETTER if category[0] == "L" or category in ("Nd", "Mn", "Mc") else _SEPARATOR


@cache
def _lower_case_code_points(plane: int) -> ShingleHashes:
    """Return the lower-case code point of each of the first code points; 0 for separators."""
    # The two letters whose lower case is longer, or differs at the end of a word.
    together = "".join(map(chr, range(plane))).replace("\u0130", "i").replace("\u03a3", "\u03c3")
    lower = _utf32(together.lower()).astype(np.uint64)
    lower[_char_kinds(plane)[:plane] == _SEPARATOR] = 0
    return lower


MIN_BAG_WORDS = 10
NO_BAG_HASH = bytes(8)
"""For pages with too few words, or not hashed."""
_MAX_BAG_CHARS = 200_000
_DIGITS = b"0123456789"
_MASK = (1 << 64) - 1


def bag_of_words_hash(page: Page) -> bytes:
    """Return an 8-byte hash of the page's words and their counts, independent of their order.

    Ignores case and digits; uses the first 200,000 characters. :data:`NO_BAG_HASH` for fewer
    than ten words.
    """
    raw = page.text[:_MAX_BAG_CHARS].lower().encode("utf-8", "replace")
    words = raw.translate(None, _DIGITS).split()
    if len(words) < MIN_BAG_WORDS:
        return NO_BAG_HASH
    # A sum is independent of order; xor would cancel pairs of equal words.
    total = sum(map(xxhash.xxh3_64_intdigest, words)) & _MASK
    return (total or 1).to_bytes(8, "big")


def may_have_sort_parameters(page: Page) -> bool:
    """Whether the page may exist in another order under another URL.

    True if its URL has a query, it links to itself with a query, or its canonical URL differs.
    """
    if "?" in page.url or page.canonical not in (None, page.url) or page.amp is not None:
        return True
    with_parameters = f"{page.url}?"
    return any(link.url.startswith(with_parameters) for link in page.links)
