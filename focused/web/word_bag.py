"""What a page says whatever the order in which it says it: lists are sorted in many ways."""

from __future__ import annotations

import xxhash

from focused.web.page import Page

MIN_WORDS = 10
NO_BAG = bytes(8)
"""Of a page that says too little, or was not asked for."""
_MAX_CHARS = 200_000
_DIGITS = b"0123456789"
_MASK = (1 << 64) - 1


def word_bag(page: Page) -> bytes:
    """Return 8 bytes that pages share whose text has the same words as often, in any order.

    Case and digits do not count. :data:`NO_BAG` for fewer than ten words. Of
    long pages the first 200,000 characters.
    """
    raw = page.text[:_MAX_CHARS].lower().encode("utf-8", "replace")
    words = raw.translate(None, _DIGITS).split()
    if len(words) < MIN_WORDS:
        return NO_BAG
    # A sum knows no order; none of the hashes may be told from another by a mere xor (pairs).
    total = sum(map(xxhash.xxh3_64_intdigest, words)) & _MASK
    return (total or 1).to_bytes(8, "big")


def may_be_sorted(page: Page) -> bool:
    """Whether the same list may stand under another URL: it has parameters, or links to itself so.

    Or it says that another URL is its own.
    """
    if "?" in page.url or page.canonical not in (None, page.url):
        return True
    with_parameters = f"{page.url}?"
    return any(link.url.startswith(with_parameters) for link in page.links)
