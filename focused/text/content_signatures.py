"""Signatures of content: sketches of shingles, and hashes for exact duplicates and for traps.

A shingle is :data:`SHINGLE_WORDS` consecutive words. The resemblance of two texts is the
Jaccard similarity of their shingle sets, estimated from each text's smallest shingle hashes
(Broder 1997, "On the resemblance and containment of documents"). Words are case-folded runs
of letters and digits; scripts without spaces give each character as a word.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.kernels.shingle_hashing import hash_shingles
from focused.kernels.sorted_hashes import hashes_without
from focused.web.page import Page

ShingleHashes = NDArray[np.uint64]

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
    return _sorted_unique(np.frombuffer(hashes, np.uint64))


def make_sketch(hashes: ShingleHashes) -> Sketch:
    """Return the smallest of ascending ``hashes``, or all if there are few."""
    if len(hashes) <= SKETCH_SHINGLES:
        return Sketch(hashes, int(np.iinfo(np.uint64).max))
    return Sketch(hashes[:SKETCH_SHINGLES].copy(), int(hashes[SKETCH_SHINGLES - 1]))


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


def _sorted_unique(hashes: ShingleHashes) -> ShingleHashes:
    # np.unique takes twenty times as long.
    ordered = np.sort(hashes)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


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
    raw = _utf8(page.text[:_MAX_BAG_CHARS].lower())
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


_ASCII = bytes(range(128))
_WHITESPACE = "".join(filter(str.isspace, map(chr, range(128)))).encode()
_LOWER = bytes(range(256)).lower()
_NO_BREAK_SPACE = "\u00a0"


def content_fingerprint(page: Page) -> bytes:
    """Return 16 bytes that pages with equal title and text share (xxHash128).

    Case, white space, markup, URL and links are ignored. The links of pages without text (sitemaps,
    framesets) are hashed instead.
    """
    words, title = _fold_text(page.text), _fold_text(page.title)
    parts = (title, words) if words else (title, *(_utf8(link.url) for link in page.links))
    return xxhash.xxh3_128_digest(b"\0".join(parts))


def _fold_text(text: str) -> bytes:
    """Return ``"".join(text.lower().split())`` in UTF-8.

    Bytes are folded where possible, which is faster for texts with some non-ASCII letters.
    """
    raw = _utf8(text)
    plain = raw.translate(_LOWER, _WHITESPACE)
    if raw.isascii():
        return plain
    beyond = plain.translate(None, _ASCII).decode()
    if _NO_BREAK_SPACE in beyond:
        plain = plain.replace(_NO_BREAK_SPACE.encode(), b"")
        beyond = beyond.replace(_NO_BREAK_SPACE, "")
    if beyond and (beyond != beyond.lower() or beyond.split() != [beyond]):
        return _utf8("".join(text.lower().split()))
    return plain


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


MIN_WORDS = 4
OPENING_WORDS = 12
_MAX_CHARS = 20_000
_FIRST_CHARS = (400, 2_000)
"""Usually enough for the opening."""
_MAX_ANCHOR_CHARS = 60_000
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_NO_LETTERS = b"0123456789_"
_IN_WORDS = _LETTERS | frozenset(_NO_LETTERS) | frozenset(range(128, 256))
_WORDS_ALONE = bytes(byte if byte in _IN_WORDS else 32 for byte in range(256)).lower()
# UTF-8 of Latin-1 signs, general punctuation and East Asian punctuation.
_PUNCTUATION = re.compile(rb"\xc2[\x80-\xbf]|\xe2[\x80-\x81].|\xe3\x80.|\xef\xbc.", re.DOTALL)
_DATE_WORDS = frozenset(
    name.lower().encode()
    for name in (*month_name, *month_abbr, *day_name, *day_abbr, "sept", "am", "pm")
    if name
)


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """The words of a page without numbers, dates, link texts and the words of its URL, in order.

    A trap generates pages that differ only in these. ``digest`` is None for fewer than four words.
    ``share`` in [0, 1] is their part of all words without digits: low for lists of links.
    """

    digest: bytes | None
    share: float


def text_digest(page: Page) -> bytes:
    """Hash the words of a page without numbers and dates; at most 20,000 characters."""
    words = _words(_title_and_text(page, _MAX_CHARS))
    return _digest(_keep_words(_plain_words(words), words))


def page_template(page: Page) -> PageTemplate:
    """Return the template of a page; at most 20,000 characters."""
    words = _words(_title_and_text(page, _MAX_CHARS))
    plain = _plain_words(words)
    template = _keep_words(plain - _variable_words(page), words)
    is_long_enough = len(template) >= MIN_WORDS
    share = len(template) / max(len(_keep_words(plain, words)), 1)
    return PageTemplate(_digest(template) if is_long_enough else None, share)


def opening_digest(page: Page) -> bytes:
    """Hash the first :data:`OPENING_WORDS` words of a page's template."""
    varying = _variable_words(page)
    for chars in (*_FIRST_CHARS, _MAX_CHARS):
        words = _words(_title_and_text(page, chars))
        if chars < _MAX_CHARS:
            del words[-1:]  # may be incomplete
        kept = (
            word
            for word in words
            if word not in varying and word not in _DATE_WORDS and _has_no_digits(word)
        )
        found = list(islice(kept, OPENING_WORDS))
        if len(found) == OPENING_WORDS:
            break
    return _digest(found)


def _title_and_text(page: Page, chars: int) -> str:
    return f"{page.title} {page.text[:chars]}"


def _variable_words(page: Page) -> set[bytes]:
    anchors = " ".join([link.anchor for link in page.links])[:_MAX_ANCHOR_CHARS]
    return {*_words(anchors), *_words(page.url)}


def _words(text: str) -> list[bytes]:
    """Return runs of letters and digits as bytes, ASCII in lower case."""
    raw = _utf8(text)
    if not raw.isascii():
        raw = _PUNCTUATION.sub(b" ", raw)
    return raw.translate(_WORDS_ALONE).split()


def _plain_words(words: Iterable[bytes]) -> set[bytes]:
    return {word for word in set(words) if word.isalpha() or _has_no_digits(word)} - _DATE_WORDS


def _has_no_digits(word: bytes) -> bool:
    return word.translate(None, _NO_LETTERS) == word


def _keep_words(kept: Collection[bytes], words: Iterable[bytes]) -> list[bytes]:
    return list(filter(kept.__contains__, words))


def _digest(words: Iterable[bytes]) -> bytes:
    return xxhash.xxh3_128_digest(b" ".join(words))
