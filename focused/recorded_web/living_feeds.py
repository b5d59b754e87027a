"""Sitemaps, Atom feeds and robots.txt files of a living web."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from focused.recorded_web.recorded_web import RecordedResponse

_MAX_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class Announcement:
    """A page and its last announced change; ``is_new``: its creation."""

    url: str
    at: float
    is_new: bool
    title: str


def sitemap(announced: Sequence[Announcement]) -> bytes:
    """Return a sitemap with the time of the last announced change of each page."""
    urls = "".join(
        f"<url><loc>{escape(each.url)}</loc><lastmod>{_w3c_time(each.at)}</lastmod></url>\n"
        for each in announced
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
    ).encode()


def atom_feed(site: str, announced: Sequence[Announcement], start: float) -> bytes:
    """Return an Atom feed (RFC 4287) of the latest changes."""
    latest = sorted(announced, key=lambda each: (-each.at, each.url))[:_MAX_ENTRIES]
    entries = "".join(
        f"<entry><id>{escape(each.url)}</id><title>{escape(each.title)}</title>"
        f'<link href="{escape(each.url, {chr(34): "&quot;"})}"/>'
        f"<updated>{_w3c_time(each.at)}</updated>"
        f"<summary>{'New page' if each.is_new else 'Changed page'}</summary></entry>\n"
        for each in latest
    )
    updated = latest[0].at if latest else start
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{escape(site)}</id><title>Changes</title><updated>{_w3c_time(updated)}</updated>\n"
        f"{entries}</feed>\n"
    ).encode()


def robots_with_sitemap(
    url: str, recorded: RecordedResponse | None, sitemap_url: str
) -> RecordedResponse:
    """Return the recorded robots.txt, or one that allows everything, with a Sitemap line."""
    rules = b"User-agent: *\nDisallow:\n"
    if recorded is not None and recorded.status == 200:
        rules = recorded.body.rstrip() + b"\n"
    body = rules + f"\nSitemap: {sitemap_url}\n".encode()
    return RecordedResponse(url, 200, {"content-type": "text/plain"}, body)


def _w3c_time(time: float) -> str:
    return datetime.fromtimestamp(int(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
