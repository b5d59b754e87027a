"""What is left of a page without what a trap makes anew for each: two hashes, in one pass.

A page made for a URL that does not exist repeats itself, but for a number, a
date, the words of the URL and the links it makes up. An error's words alone
tell nothing: pages on errors have them, too.
"""

from __future__ import annotations

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from dataclasses import dataclass

import xxhash

from focused.web.page import Page

MIN_WORDS = 4
_MAX_CHARS = 20_000
_WORD = re.compile(r"\w+")
_DATE_WORDS = frozenset(
    name.lower()
    for name in (*month_name, *month_abbr, *day_name, *day_abbr, "sept", "am", "pm")
    if name
)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """``text`` hashes words without digits; ``frame`` of these neither links' nor the URL's own.

    16 bytes each. ``frame`` is None where it says too little: fewer than four
    words. ``share`` in [0, 1] is the frame's part of the words: low where a
    page is a list of links.
    """

    text: bytes
    frame: bytes | None
    share: float


def skeleton_of(page: Page) -> Skeleton:
    """Reduce a page to its skeleton; of long pages the first 20,000 characters."""
    said = _WORD.findall(f"{page.title} {page.text[:_MAX_CHARS]}".lower())
    plain = [word for word in said if word.isalpha() and word not in _DATE_WORDS]
    varying = set(_WORD.findall(" ".join(link.anchor for link in page.links).lower()))
    varying.update(_WORD.findall(page.url.lower()))
    frame = [word for word in plain if word not in varying]
    tells = len(frame) >= MIN_WORDS
    share = len(frame) / max(len(plain), 1)
    return Skeleton(_hash(plain), _hash(frame) if tells else None, share)


def _hash(words: list[str]) -> bytes:
    return xxhash.xxh3_128_digest(" ".join(words).encode("utf-8", "replace"))
