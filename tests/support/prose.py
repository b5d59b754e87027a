"""Good pages with text that people wrote: the sections of this project's documentation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from focused.web.page import Page

_DOCS = Path(__file__).parents[2] / "docs"
_MARKUP = re.compile(r"[`*#|]|\]\([^)]*\)|\[")
_WORDS = 150


@cache
def prose_pages() -> tuple[Page, ...]:
    """Return pages of about 150 words, on one host, in alphabetical order of their files."""
    pages = []
    for path in sorted((_DOCS / "explanation").glob("*.md")) + sorted(
        (_DOCS / "how-to").glob("*.md")
    ):
        words = _MARKUP.sub("", path.read_text(encoding="utf-8")).split()
        for first in range(0, len(words) - _WORDS, _WORDS):
            text = " ".join(words[first : first + _WORDS])
            pages.append(Page(f"http://docs.test/{path.stem}/{first}", path.stem, text=text))
    return tuple(pages)
