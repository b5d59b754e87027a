"""Reference sites of our own making: pages of lists and text, as HTML.

What the webs of FOLDOC, WordNet and Debian's packages have in common: where
their links look alike, their pages are recorded alike.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from focused.recorded_web.html_files import page_headers
from focused.recorded_web.recorded_web import RecordedWebWriter


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page: its absolute URL, its title as plain text, its body as HTML."""

    url: str
    title: str
    body: str


def record_site(writer: RecordedWebWriter, pages: Iterable[SitePage], written_at: datetime) -> int:
    """Record the pages as if a web server sent them; returns how many."""
    count = 0
    for page in pages:
        body = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(page.title)}</title></head>\n<body>\n{page.body}\n</body></html>\n"
        ).encode()
        count += writer.add(page.url, 200, page_headers(body, written_at), body, written_at)
    return count


def link(url: str, text: str) -> str:
    """An anchor; ``url`` and ``text`` are plain text."""
    return f'<a href="{html.escape(url)}">{html.escape(text)}</a>'


def headed_list(heading: str, items: Sequence[str]) -> str:
    """A heading with a list of items of HTML under it; ``""`` when there are none."""
    if not items:
        return ""
    rows = "\n".join(f"<li>{item}</li>" for item in items)
    return f"<h2>{html.escape(heading)}</h2>\n<ul>\n{rows}\n</ul>\n"


def contents_pages(
    home: SitePage, folder_url: str, groups: Mapping[str, Sequence[str]]
) -> list[SitePage]:
    """The home page with links to contents pages, and these.

    ``groups`` are items of HTML by the name of their contents page, which
    stands at ``folder_url`` + name + ``.html``; all pages link to each other.
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
