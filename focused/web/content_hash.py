"""When two pages are the same page: a hash of what a reader would see."""

from __future__ import annotations

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

import xxhash

from focused.web.page import Page

_ASCII = bytes(range(128))
_WHITESPACE = "".join(filter(str.isspace, map(chr, range(128)))).encode()
_LOWER = bytes(range(256)).lower()
_NO_BREAK_SPACE = "\u00a0"


def content_fingerprint(page: Page) -> bytes:
    """Return 16 bytes that pages with the same title and text share (xxHash128).

    Case and white space do not count, nor do markup, URL and links. Pages
    without any text (sitemaps, framesets) share nothing: their links count.
    """
    words, title = _fold_text(page.text), _fold_text(page.title)
    parts = (title, words) if words else (title, *(_utf8(link.url) for link in page.links))
    return xxhash.xxh3_128_digest(b"\0".join(parts))


def _fold_text(text: str) -> bytes:
    """``"".join(text.lower().split())`` in bytes.

    Letter by letter that takes long where a single one is beyond ASCII. So
    bytes are folded, wherever what is beyond ASCII is in lower case already
    and no white space but the no-break space.
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
"""Nearly always enough for a beginning."""
_MAX_ANCHOR_CHARS = 60_000
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_NO_LETTERS = b"0123456789_"
_IN_WORDS = _LETTERS | frozenset(_NO_LETTERS) | frozenset(range(128, 256))
_WORDS_ALONE = bytes(byte if byte in _IN_WORDS else 32 for byte in range(256)).lower()
# UTF-8 of Latin-1's signs, general punctuation, and that of East Asia in both widths.
_PUNCTUATION = re.compile(rb"\xc2[\x80-\xbf]|\xe2[\x80-\x81].|\xe3\x80.|\xef\xbc.", re.DOTALL)
_DATE_WORDS = frozenset(
    name.lower().encode()
    for name in (*month_name, *month_abbr, *day_name, *day_abbr, "sept", "am", "pm")
    if name
)


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """A page's words that are neither numbers' nor dates', links' nor its URL's, in order.

    ``digest`` hashes them; None where they say too little: fewer than four.
    ``share`` in [0, 1] is their part of all words without digits: low where a
    page is a list of links.
    """

    digest: bytes | None
    share: float


def text_of(page: Page) -> bytes:
    """Hash the words of a page but numbers and dates; of long pages the first 20,000 characters."""
    said = _words(_title_and_text(page, _MAX_CHARS))
    return _digest(_keep_words(_plain_words(said), said))


def page_template(page: Page) -> PageTemplate:
    """Reduce a page to its frame; of long pages the first 20,000 characters."""
    said = _words(_title_and_text(page, _MAX_CHARS))
    plain = _plain_words(said)
    frame = _keep_words(plain - _variable_words(page), said)
    tells = len(frame) >= MIN_WORDS
    share = len(frame) / max(len(_keep_words(plain, said)), 1)
    return PageTemplate(_digest(frame) if tells else None, share)


def opening_digest(page: Page) -> bytes:
    """Hash the first :data:`OPENING_WORDS` words of a page's frame."""
    varying = _variable_words(page)
    for chars in (*_FIRST_CHARS, _MAX_CHARS):
        said = _words(_title_and_text(page, chars))
        if chars < _MAX_CHARS:
            del said[-1:]  # it may have been cut
        words = (
            word
            for word in said
            if word not in varying and word not in _DATE_WORDS and _has_no_digits(word)
        )
        found = list(islice(words, OPENING_WORDS))
        if len(found) == OPENING_WORDS:
            break
    return _digest(found)


def _title_and_text(page: Page, chars: int) -> str:
    return f"{page.title} {page.text[:chars]}"


def _variable_words(page: Page) -> set[bytes]:
    anchors = " ".join([link.anchor for link in page.links])[:_MAX_ANCHOR_CHARS]
    return {*_words(anchors), *_words(page.url)}


def _words(text: str) -> list[bytes]:
    """Runs of letters and digits, ASCII in lower case; bytes cost a third of what strings do."""
    raw = text.encode("utf-8", "replace")
    if not raw.isascii():
        raw = _PUNCTUATION.sub(b" ", raw)
    return raw.translate(_WORDS_ALONE).split()


def _plain_words(said: Iterable[bytes]) -> set[bytes]:
    return {word for word in set(said) if _has_no_digits(word)} - _DATE_WORDS


def _has_no_digits(word: bytes) -> bool:
    return word.translate(None, _NO_LETTERS) == word


def _keep_words(kept: Collection[bytes], said: Iterable[bytes]) -> list[bytes]:
    return list(filter(kept.__contains__, said))


def _digest(words: Iterable[bytes]) -> bytes:
    return xxhash.xxh3_128_digest(b" ".join(words))
