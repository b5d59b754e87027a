"""Shared by the builders: the result of a build, and the HTML of reference sites."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from focused.errors import RecordedWebError
from focused_lab.builders.debian_packages import ProgressLine
from focused_lab.recorded_web.recorded_web import WEB_FILE, RecordedWebWriter, read_details
from focused_lab.recorded_web.web_import import page_headers


@dataclass(frozen=True, slots=True)
class BuiltWeb:
    """Result of a build; ``fresh`` is False if the web existed already.

    ``pages`` counts pages and listings; ``download_bytes`` is the size of the packages.
    """

    folder: Path
    fresh: bool
    pages: int
    redirects: int
    hosts: int
    download_bytes: int


def build_details(built: BuiltWeb, fingerprint: str) -> dict[str, object]:
    """Return what ``web.json`` keeps of a build, for :func:`existing_web`."""
    return {
        "fingerprint": fingerprint,
        "pages": built.pages,
        "redirects": built.redirects,
        "hosts": built.hosts,
        "download_bytes": built.download_bytes,
    }


def existing_web(folder: Path, fingerprint: str) -> BuiltWeb | None:
    """Return the web at ``folder`` if it was built with this fingerprint, else None."""
    if not (folder / WEB_FILE).is_file():
        return None
    try:
        details = read_details(folder)
        if details.get("fingerprint") != fingerprint:
            return None
        counts = {
            name: int(str(details[name]))
            for name in ("pages", "redirects", "hosts", "download_bytes")
        }
    except (RecordedWebError, KeyError, ValueError):
        return None
    return BuiltWeb(folder, fresh=False, **counts)


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page: absolute URL, title as plain text, body as HTML."""

    url: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ReferenceSite:
    """What a builder makes of a package: the pages, and (URL, category) of the labels."""

    pages: Iterable[SitePage]
    labels: Iterable[tuple[str, str]]
    written_at: datetime
    hosts: int
    download_bytes: int


def build_site(
    folder: Path, name: str, builder: str, progress: ProgressLine, make: Callable[[], ReferenceSite]
) -> BuiltWeb:
    """Record the site that ``make`` returns at ``folder``, unless it is up to date.

    Raises RecordedWebError if the folder contains something else.
    """
    fingerprint = hashlib.sha256(builder.encode()).hexdigest()[:16]
    if (existing := existing_web(folder, fingerprint)) is not None:
        progress(f"{folder} is up to date")
        return existing
    with RecordedWebWriter(folder, name, builder) as writer:
        site = make()
        pages = record_site(writer, site.pages, site.written_at)
        progress(f"{pages} pages")
        built = BuiltWeb(folder, True, pages, 0, site.hosts, site.download_bytes)
        writer.finish(site.labels, build_details(built, fingerprint))
    return built


def letter_of(title: str) -> str:
    """The contents page of a title: its first letter, or ``other``."""
    first = title[0].lower()
    return first if "a" <= first <= "z" else "other"


def record_site(writer: RecordedWebWriter, pages: Iterable[SitePage], written_at: datetime) -> int:
    """Record the pages; return their number."""
    count = 0
    for page in pages:
        body = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(page.title)}</title></head>\n<body>\n{page.body}\n</body></html>\n"
        ).encode()
        count += writer.add(page.url, 200, page_headers(body, written_at), body, written_at)
    return count


def link(url: str, text: str) -> str:
    """Return an anchor; ``url`` and ``text`` are plain text."""
    return f'<a href="{html.escape(url)}">{html.escape(text)}</a>'


def headed_list(heading: str, items: Sequence[str]) -> str:
    """Return a heading with a list of HTML items, or ``""`` without items."""
    if not items:
        return ""
    rows = "\n".join(f"<li>{item}</li>" for item in items)
    return f"<h2>{html.escape(heading)}</h2>\n<ul>\n{rows}\n</ul>\n"


def contents_pages(
    home: SitePage, folder_url: str, groups: Mapping[str, Sequence[str]]
) -> list[SitePage]:
    """Return the home page with links to contents pages, and the contents pages.

    ``groups`` are HTML items by the name of their contents page at ``folder_url`` + name +
    ``.html``; all pages link to each other.
    """
    addresses = {name: f"{folder_url}{name}.html" for name in sorted(groups)}
    navigation = " ".join(
        [link(home.url, "Home"), *(link(url, name) for name, url in addresses.items())]
    )
    menu = f'<p class="nav">{navigation}</p>'
    pages = [SitePage(home.url, home.title, f"{home.body}\n{menu}")]
    for name, url in addresses.items():
        title = f"Contents: {name}"
        body = f"<h1>{html.escape(title)}</h1>\n{menu}\n{headed_list(name, groups[name])}"
        pages.append(SitePage(url, title, body))
    return pages
