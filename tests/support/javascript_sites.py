"""Sites with the same pages: built with three frameworks, as plain HTML, as HTML with scripts.

See ``javascript_builds/README.md``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

BUILDS = Path(__file__).parent / "javascript_builds"
FRAMEWORKS = ("react", "vue", "svelte")
SITES = (*FRAMEWORKS, "plain", "decorated")

_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8"}
_DECORATION = """<script src="/menu.js" defer></script>
<script>window.dataLayer = []; dataLayer.push({page: location.pathname})</script>
<noscript><img src="https://tracker.example/pixel.gif"></noscript>"""
_MENU = """document.addEventListener('DOMContentLoaded', () => {
  document.querySelectorAll('a').forEach((link) => link.classList.add('decorated'))
  document.body.insertAdjacentHTML('beforeend', '<p>Press a key to search</p>')
})"""


@dataclass(frozen=True, slots=True)
class SitePage:
    """The content of one page; links are paths with their texts."""

    title: str
    paragraphs: Sequence[str]
    links: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SiteResponse:
    status: int
    content_type: str
    body: bytes


def site_responses(kind: str, pages: Mapping[str, SitePage]) -> dict[str, SiteResponse]:
    """All responses of a site of that kind, by path; ``pages`` by path, with "/"."""
    if kind in FRAMEWORKS:
        return _framework(kind, pages)
    scripts = _DECORATION if kind == "decorated" else ""
    found = {path: _html(_static(page, scripts)) for path, page in pages.items()}
    if kind == "decorated":
        found["/menu.js"] = SiteResponse(200, _TYPES[".js"], _MENU.encode())
    return found


def _framework(kind: str, pages: Mapping[str, SitePage]) -> dict[str, SiteResponse]:
    built = BUILDS / kind / "built"
    found = {
        f"/{path.relative_to(built)}": SiteResponse(200, _TYPES[path.suffix], path.read_bytes())
        for path in sorted(built.rglob("*.*"))
    }
    shell = found.pop("/index.html")
    for path, page in pages.items():
        found[path] = shell
        name = "/index" if path == "/" else path
        content = {
            "title": page.title,
            "paragraphs": list(page.paragraphs),
            "links": [{"href": href, "text": text} for href, text in page.links],
        }
        body = json.dumps(content).encode()
        found[f"/api{name}.json"] = SiteResponse(200, "application/json", body)
    return found


def _static(page: SitePage, scripts: str) -> str:
    text = "".join(f"<p>{escape(each)}</p>" for each in page.paragraphs)
    links = "".join(f'<li><a href="{escape(h)}">{escape(t)}</a></li>' for h, t in page.links)
    return (
        f'<!doctype html><html lang="en"><head><title>{escape(page.title)}</title>{scripts}</head>'
        f"<body><main><h1>{escape(page.title)}</h1>{text}<ul>{links}</ul></main></body></html>"
    )


def _html(text: str) -> SiteResponse:
    return SiteResponse(200, _TYPES[".html"], text.encode())
