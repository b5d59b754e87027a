"""When two pages are the same page: a hash of what a reader would see."""

from __future__ import annotations

import xxhash

from focused.web.page import Page


def content_fingerprint(page: Page) -> bytes:
    """Return 16 bytes that pages with the same title and text share (xxHash128).

    Case and white space do not count, nor do markup, URL and links. Pages
    without any text (sitemaps, framesets) share nothing: their links count.
    """
    words = " ".join(page.text.lower().split())
    title = " ".join(page.title.lower().split())
    parts = (title, words) if words else (title, *(link.url for link in page.links))
    return xxhash.xxh3_128_digest("\0".join(parts).encode("utf-8", "replace"))
