"""Signatures of content: hashes for exact duplicates and for traps."""

from __future__ import annotations

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import filterfalse, islice

import xxhash

from focused.web.page import Page

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
    return _digest(_plain_words(_title_and_text(page, _MAX_CHARS)))


def page_template(page: Page) -> PageTemplate:
    """Return the template of a page; at most 20,000 characters."""
    words = _plain_words(_title_and_text(page, _MAX_CHARS))
    template = list(filterfalse(_variable_words(page).__contains__, words))
    is_long_enough = len(template) >= MIN_WORDS
    share = len(template) / max(len(words), 1)
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


def _plain_words(text: str) -> list[bytes]:
    """Return the words without digits and names of dates, in order."""
    words = _words(text)
    plain = {word for word in set(words) if word.isalpha() or _has_no_digits(word)} - _DATE_WORDS
    return list(filter(plain.__contains__, words))


def _has_no_digits(word: bytes) -> bool:
    return word.translate(None, _NO_LETTERS) == word


def _digest(words: Iterable[bytes]) -> bytes:
    return xxhash.xxh3_128_digest(b" ".join(words))
