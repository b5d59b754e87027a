"""Good pages with text that people wrote: sections of this project's documentation of one day."""

from functools import cache
from pathlib import Path

from focused.web.page import Page

_PAGES = Path(__file__).with_suffix(".tsv")


@cache
def prose_pages() -> tuple[Page, ...]:
    """Return some 200 pages of 150 words, on one host."""
    lines = _PAGES.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return tuple(Page(url, title, text=text) for url, title, text in rows)
