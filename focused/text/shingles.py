"""Shingles: how alike two texts are.

A shingle is :data:`SHINGLE_WORDS` consecutive words. The resemblance of two texts is the
Jaccard similarity of their shingle sets, estimated from each text's smallest shingle hashes
(Broder 1997, "On the resemblance and containment of documents"). Words are case-folded runs
of letters and digits; scripts without spaces give each character as a word.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from focused.kernels.shingle_hashing import hash_shingles
from focused.kernels.sorted_hashes import hashes_without

ShingleHashes = NDArray[np.uint64]
Hashes = TypeVar("Hashes", NDArray[np.uint64], NDArray[np.uint32])

SHINGLE_WORDS = 5
SKETCH_SHINGLES = 128
MAX_TEXT_CHARS = 200_000

# The first two cover nearly all texts that are not CJK; the last is all of Unicode.
_TABLE_SIZES = _ASCII_SIZE, _, _BASIC_PLANE, _ = 0x80, 0x3000, 0x10000, 0x110000
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
# Their lower case is longer, or differs at the end of a word.
_FOLDED_BY_CONTEXT = "\u0130\u03a3"


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
    text = text[:MAX_TEXT_CHARS]
    codes, size = _code_points(text)
    if size > _BASIC_PLANE or (
        size > _ASCII_SIZE and any(char in text for char in _FOLDED_BY_CONTEXT)
    ):
        codes, size = _code_points(text.lower())
    hashes = hash_shingles(codes, _characters(min(size, _BASIC_PLANE)))
    return unique_hashes(np.sort(np.frombuffer(hashes, np.uint64)))


def make_sketch(hashes: ShingleHashes) -> Sketch:
    """Return the smallest of ascending ``hashes``, or all if there are few."""
    if len(hashes) <= SKETCH_SHINGLES:
        return Sketch(hashes, int(np.iinfo(np.uint64).max))
    return Sketch(hashes[:SKETCH_SHINGLES].copy(), int(hashes[SKETCH_SHINGLES - 1]))


def unique_hashes(hashes: Hashes) -> Hashes:
    """Return ascending ``hashes``, of any width, without repeats."""
    # np.unique takes twenty times as long, and imports numpy.ma.
    first = np.ones(len(hashes), bool)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


def hashes_not_in(hashes: ShingleHashes, others: ShingleHashes) -> ShingleHashes:
    """Return those of ascending ``hashes`` that are not in ``others``."""
    return np.frombuffer(hashes_without(hashes.tobytes(), others.tobytes()), np.uint64)


def count_common_hashes(one: ShingleHashes, other: ShingleHashes) -> int:
    """Return the number of hashes that are in both."""
    return len(one) - len(hashes_not_in(one, other))


def estimate_resemblance(one: Sketch, other: Sketch) -> tuple[float, int]:
    """Return the estimated Jaccard similarity in [0, 1], and the sample size n.

    The standard error is sqrt(s * (1 - s) / n). Without common coverage the result is 0 of 0.
    """
    up_to = min(one.up_to, other.up_to)
    mine, theirs = one.until(up_to).hashes, other.until(up_to).hashes
    both = count_common_hashes(mine, theirs)
    either = len(mine) + len(theirs) - both
    return (both / either if either else 0.0), either


def estimate_containment(one: Sketch, other: Sketch) -> tuple[float, int]:
    """Return the estimated share of the smaller text that the larger contains, in [0, 1].

    Broder's containment, of whichever text has fewer shingles; the last value is the sample size.
    """
    up_to = min(one.up_to, other.up_to)
    mine, theirs = one.until(up_to).hashes, other.until(up_to).hashes
    both = count_common_hashes(mine, theirs)
    smaller = min(len(mine), len(theirs))
    return (both / smaller if smaller else 0.0), smaller


def _code_points(text: str) -> tuple[bytes, int]:
    """Return the code points, and the smallest size of a table that holds all of them."""
    codes = _encode_utf32(text)
    if text.isascii():
        return codes, _ASCII_SIZE
    largest = int(np.frombuffer(codes, np.uint32).max())
    return codes, next(size for size in _TABLE_SIZES if largest < size)


def _encode_utf32(text: str) -> bytes:
    return text.encode("utf-32-le", "surrogatepass")


@cache
def _characters(size: int) -> bytes:
    """Return the table of the first code points that :func:`hash_shingles` takes."""
    together = "".join(map(chr, range(size)))
    lower = together.translate(dict.fromkeys(map(ord, _FOLDED_BY_CONTEXT), "\0")).lower()
    letters = np.frombuffer(_encode_utf32(lower), np.int32).copy()
    letters[[not _is_letter(char) for char in together]] = 0
    for first, last in _UNSPACED:
        letters[first : last + 1] *= -1
    return letters.tobytes()


def _is_letter(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] == "L" or category in ("Nd", "Mn", "Mc")
