"""What is left of a page without what a trap makes anew for each, as hashes of 16 bytes.

A page made for a URL that does not exist repeats itself, but for a number, a
date, the words of the URL and the links it makes up. An error's words alone
tell nothing: pages on errors have them, too. Pages with one frame have one
beginning, which costs a fraction of it.
"""

from __future__ import annotations

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

import xxhash

from focused.web.page import Page

MIN_WORDS = 4
BEGINNING_WORDS = 12
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
class Frame:
    """A page's words that are neither numbers' nor dates', links' nor its URL's, in order.

    ``digest`` hashes them; None where they say too little: fewer than four.
    ``share`` in [0, 1] is their part of all words without digits: low where a
    page is a list of links.
    """

    digest: bytes | None
    share: float


def text_of(page: Page) -> bytes:
    """Hash the words of a page but numbers and dates; of long pages the first 20,000 characters."""
    said = _words(_said(page, _MAX_CHARS))
    return _hash(_those_in(_plain(said), said))


def frame_of(page: Page) -> Frame:
    """Reduce a page to its frame; of long pages the first 20,000 characters."""
    said = _words(_said(page, _MAX_CHARS))
    plain = _plain(said)
    frame = _those_in(plain - _varying(page), said)
    tells = len(frame) >= MIN_WORDS
    share = len(frame) / max(len(_those_in(plain, said)), 1)
    return Frame(_hash(frame) if tells else None, share)


def beginning_of(page: Page) -> bytes:
    """Hash the first :data:`BEGINNING_WORDS` words of a page's frame."""
    varying = _varying(page)
    for chars in (*_FIRST_CHARS, _MAX_CHARS):
        said = _words(_said(page, chars))
        if chars < _MAX_CHARS:
            del said[-1:]  # it may have been cut
        words = (
            word
            for word in said
            if word not in varying and word not in _DATE_WORDS and _is_plain(word)
        )
        found = list(islice(words, BEGINNING_WORDS))
        if len(found) == BEGINNING_WORDS:
            break
    return _hash(found)


def _said(page: Page, chars: int) -> str:
    return f"{page.title} {page.text[:chars]}"


def _varying(page: Page) -> set[bytes]:
    anchors = " ".join([link.anchor for link in page.links])[:_MAX_ANCHOR_CHARS]
    return {*_words(anchors), *_words(page.url)}


def _words(text: str) -> list[bytes]:
    """Runs of letters and digits, ASCII in lower case; bytes cost a third of what strings do."""
    raw = text.encode("utf-8", "replace")
    if not raw.isascii():
        raw = _PUNCTUATION.sub(b" ", raw)
    return raw.translate(_WORDS_ALONE).split()


def _plain(said: Iterable[bytes]) -> set[bytes]:
    return {word for word in set(said) if _is_plain(word)} - _DATE_WORDS


def _is_plain(word: bytes) -> bool:
    return word.translate(None, _NO_LETTERS) == word


def _those_in(kept: Collection[bytes], said: Iterable[bytes]) -> list[bytes]:
    return list(filter(kept.__contains__, said))


def _hash(words: Iterable[bytes]) -> bytes:
    return xxhash.xxh3_128_digest(b" ".join(words))
