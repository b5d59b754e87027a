"""When two pages are the same page: a hash of what a reader would see."""

from __future__ import annotations

import xxhash

from focused.web.page import Page

_ASCII = bytes(range(128))
_WHITE = "".join(filter(str.isspace, map(chr, range(128)))).encode()
_LOWER = bytes(range(256)).lower()
_NO_BREAK_SPACE = "\u00a0"


def content_fingerprint(page: Page) -> bytes:
    """Return 16 bytes that pages with the same title and text share (xxHash128).

    Case and white space do not count, nor do markup, URL and links. Pages
    without any text (sitemaps, framesets) share nothing: their links count.
    """
    words, title = _plain(page.text), _plain(page.title)
    parts = (title, words) if words else (title, *(_encoded(link.url) for link in page.links))
    return xxhash.xxh3_128_digest(b"\0".join(parts))


def _plain(text: str) -> bytes:
    """``"".join(text.lower().split())`` in bytes.

    Letter by letter that takes long where a single one is beyond ASCII. So
    bytes are folded, wherever what is beyond ASCII is in lower case already
    and no white space but the no-break space.
    """
    raw = _encoded(text)
    plain = raw.translate(_LOWER, _WHITE)
    if raw.isascii():
        return plain
    beyond = plain.translate(None, _ASCII).decode()
    if _NO_BREAK_SPACE in beyond:
        plain = plain.replace(_NO_BREAK_SPACE.encode(), b"")
        beyond = beyond.replace(_NO_BREAK_SPACE, "")
    if beyond and (beyond != beyond.lower() or beyond.split() != [beyond]):
        return _encoded("".join(text.lower().split()))
    return plain


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
