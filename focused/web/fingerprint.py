"""When two pages are the same page: a hash of what a reader would see."""

from __future__ import annotations

import xxhash

from focused.web.page import Page

_ASCII = bytes(range(128))


def content_fingerprint(page: Page) -> bytes:
    """Return 16 bytes that pages with the same title and text share (xxHash128).

    Case and white space do not count, nor do markup, URL and links. Pages
    without any text (sitemaps, framesets) share nothing: their links count.
    """
    words, title = _plain(page.text), _plain(page.title)
    parts = (title, words) if words else (title, *(_encoded(link.url) for link in page.links))
    return xxhash.xxh3_128_digest(b"\0".join(parts))


def _plain(text: str) -> bytes:
    """``" ".join(text.lower().split())`` in bytes.

    Folding a text with a single letter beyond ASCII takes ten times longer,
    so that letters are folded as bytes where those beyond ASCII are lower
    case already.
    """
    plain = _encoded(" ".join(text.split()))
    beyond = plain.translate(None, _ASCII)
    if beyond:
        odd = beyond.decode()
        if odd != odd.lower():
            return _encoded(plain.decode().lower())
    return plain.lower()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
