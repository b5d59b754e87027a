"""How alike two texts are: shingles of words, and a sample of them that is fit to be kept.

A shingle is :data:`SHINGLE_WORDS` words in a row. The resemblance of two texts
is the share of their shingles that both have; it is estimated from each text's
smallest hashes, which are the same sample wherever the texts are the same
(Broder 1997, "On the resemblance and containment of documents"). Words are
runs of letters and digits of any script, in lower case; scripts that write no
spaces between words give each character as a word. All of it is arithmetic on
arrays: no word is ever made a string.
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

_SEPARATOR, _LETTER, _ALONE = range(3)
_ASCII, _ALPHABETS, _BASIC_PLANE = 0x80, 0x3000, 0x10000
"""So many characters; nearly all texts without Chinese, Japanese or Korean need the first alone,
or the second."""
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
    """A sample of a text's shingles: all whose hash is at most ``up_to``, ascending.

    ``hashes`` has shape (n,), n at most :data:`SKETCH_SHINGLES`.
    """

    hashes: ShingleHashes
    up_to: int

    def without(self, others: ShingleHashes) -> Sketch:
        """The same sample of the text without the shingles in ``others``."""
        return Sketch(hashes_not_in(self.hashes, others), self.up_to)

    def until(self, up_to: int) -> Sketch:
        """The smaller sample of the shingles whose hash is at most ``up_to``."""
        if up_to >= self.up_to:
            return self
        return Sketch(self.hashes[: self.hashes.searchsorted(np.uint64(up_to), "right")], up_to)


def shingles(text: str) -> ShingleHashes:
    """The hashes of the text's different shingles, ascending, shape (n,).

    The first :data:`MAX_TEXT_CHARS` characters count. A text of fewer words
    than a shingle has none.
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
    """The sample of a text's ascending ``hashes``: the smallest, or all where they are few."""
    if len(hashes) <= SKETCH_SHINGLES:
        return Sketch(hashes, int(np.iinfo(np.uint64).max))
    return Sketch(hashes[:SKETCH_SHINGLES].copy(), int(hashes[SKETCH_SHINGLES - 1]))


def hashes_not_in(hashes: ShingleHashes, others: ShingleHashes) -> ShingleHashes:
    """Those of ascending ``hashes`` that are not in ``others``."""
    if not len(others) or not len(hashes):
        return hashes
    places = others.searchsorted(hashes)
    # Beyond the last is put to the last, which is smaller.
    places[places == len(others)] = len(others) - 1
    kept: ShingleHashes = hashes[others[places] != hashes]
    return kept


def estimate_resemblance(one: Sketch, other: Sketch) -> tuple[float, int]:
    """The share of shingles that both texts have, in [0, 1], and of how many it was estimated.

    Its standard error is sqrt(share * (1 - share) / number). Without any
    shingle in what both samples cover it is 0 of 0.
    """
    up_to = min(one.up_to, other.up_to)
    mine, theirs = one.until(up_to).hashes, other.until(up_to).hashes
    both = len(mine) - len(hashes_not_in(mine, theirs))
    either = len(mine) + len(theirs) - both
    return (both / either if either else 0.0), either


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
    # A word is a polynomial of its characters; dividing by the power of its place makes it
    # the same word at any place.
    forth, back = powers(_WORD_BASE, len(codes))
    values = _lower_case_code_points(plane).take(codes, mode="clip")
    if plane == _BASIC_PLANE:
        beyond = codes >= plane
        values[beyond] = codes[beyond]
    values *= forth[: len(codes)]
    # Sums up to each word's end, less those up to its beginning: all is modulo 2**64.
    up_to = values.cumsum()
    sums = np.append(up_to[starts[1:] - 1], up_to[-1])
    sums[1:] -= sums[:-1].copy()
    return _mix_bits(sums * back[starts])


def _code_points(text: str) -> NDArray[np.uint8] | NDArray[np.uint32]:
    """The characters as numbers; where letter by letter does not do, in lower case."""
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
    # np.unique takes twenty times as long: it does not sort.
    hashes.sort()
    first = np.ones(len(hashes), bool)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


def _mix_bits(hashes: ShingleHashes) -> ShingleHashes:
    """Bits that each depend on all bits of each hash (Appleby, MurmurHash3's finaliser)."""
    hashes ^= hashes >> _MIX_SHIFT
    hashes *= _MIX_FACTOR
    hashes ^= hashes >> _MIX_SHIFT
    return hashes


@cache
def _char_kinds(plane: int) -> NDArray[np.uint8]:
    """What each of the first characters is; the last entry stands for those beyond."""
    categories = map(unicodedata.category, map(chr, range(plane)))
    kinds = np.fromiter(map(_kind_of_category, categories), np.uint8, plane)
    for first, last in _UNSPACED:
        block = kinds[first : last + 1]
        block[block == _LETTER] = _ALONE
    return np.append(kinds, np.uint8(_ALONE))


@cache
def _kind_of_category(category: str) -> int:
    return _LETTER if category[0] == "L" or category in ("Nd", "Mn", "Mc") else _SEPARATOR


@cache
def _lower_case_code_points(plane: int) -> ShingleHashes:
    """Each of the first characters in lower case, as a number; 0 for what separates."""
    # The two whose lower case is longer, or another at the end of a word, are looked up alone.
    together = "".join(map(chr, range(plane))).replace("\u0130", "i").replace("\u03a3", "\u03c3")
    lower = _utf32(together.lower()).astype(np.uint64)
    lower[_char_kinds(plane)[:plane] == _SEPARATOR] = 0
    return lower


MIN_BAG_WORDS = 10
NO_BAG_HASH = bytes(8)
"""Of a page that says too little, or was not asked for."""
_MAX_BAG_CHARS = 200_000
_DIGITS = b"0123456789"
_MASK = (1 << 64) - 1


def bag_of_words_hash(page: Page) -> bytes:
    """Return 8 bytes that pages share whose text has the same words as often, in any order.

    Case and digits do not count. :data:`NO_BAG_HASH` for fewer than ten words. Of
    long pages the first 200,000 characters.
    """
    raw = page.text[:_MAX_BAG_CHARS].lower().encode("utf-8", "replace")
    words = raw.translate(None, _DIGITS).split()
    if len(words) < MIN_BAG_WORDS:
        return NO_BAG_HASH
    # A sum knows no order; none of the hashes may be told from another by a mere xor (pairs).
    total = sum(map(xxhash.xxh3_64_intdigest, words)) & _MASK
    return (total or 1).to_bytes(8, "big")


def may_have_sort_parameters(page: Page) -> bool:
    """Whether the same list may stand under another URL: it has parameters, or links to itself so.

    Or it says that another URL is its own.
    """
    if "?" in page.url or page.canonical not in (None, page.url):
        return True
    with_parameters = f"{page.url}?"
    return any(link.url.startswith(with_parameters) for link in page.links)
