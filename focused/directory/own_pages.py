"""The pages that samples bring along."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from focused.directory.entry import DirectoryEntry
from focused.directory.page_folders import MAX_PAGE_BYTES
from focused.web.page import Fetched, Page
from focused.web.parse import parse_page


def own_page(entry: DirectoryEntry) -> Page | None:
    """The sample's page from its text or file, with its ``url``.

    None when it has neither, or nothing that can be read.
    """
    if entry.text:
        page = _parsed(entry.url, "text/plain; charset=utf-8", entry.text.encode())
    elif entry.file is not None:
        kind = "text/plain" if entry.file.suffix.lower() == ".txt" else "text/html"
        page = _parsed(entry.url, kind, _content(entry.file))
    else:
        return None
    if page is None:
        return None
    return replace(
        page,
        title=page.title or entry.title,
        description=page.description or entry.description,
    )


def _content(saved: Path) -> bytes:
    try:
        with saved.open("rb") as file:
            return file.read(MAX_PAGE_BYTES)
    except OSError:
        return b""


def _parsed(url: str, content_type: str, content: bytes) -> Page | None:
    page = parse_page(Fetched(url, 200, {"content-type": content_type}, content))
    return page if isinstance(page, Page) else None
