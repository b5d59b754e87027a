"""The pages that all contenders crawl: small ones, and those of the recorded doc web.

Both are files below a folder for each of 250 loopback addresses. The real pages are the doc web's,
byte for byte, except for their links: links to available pages point to their new URL, others to
some page of the doc web, always the same, so that all links can be followed. Pages of one directory
share an address.
"""

from __future__ import annotations

import json
import posixpath
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import xxhash

from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused_lab.recorded_web.recorded_web import RecordedWeb

HOSTS = 250
SMALL_PAGES_A_HOST = 24
SMALL_BYTES = 10_000
SMALL_LINKS = 20
MIN_WORDS = 400
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /search\n"
_HREF = re.compile(rb"""(?<=\shref=)(["'])(.*?)\1""", re.IGNORECASE | re.DOTALL)
_SEEDS = 25


@dataclass(frozen=True, slots=True)
class Site:
    """Pages in a folder, one subfolder per address, and seeds."""

    folder: Path
    port: int
    seeds: tuple[str, ...]
    pages: int
    mean_bytes: int


def addresses() -> list[str]:
    """The loopback addresses of all hosts."""
    return [f"127.0.1.{number}" for number in range(1, HOSTS + 1)]


def site_of(kind: str, web: Path, folder: Path, port: int) -> Site:
    """The pages of a kind, ``small`` or ``real``, created if missing."""
    site_file = folder / "site.json"
    if not site_file.exists():
        pages = _small_pages(web, port) if kind == "small" else _real_pages(web, port)
        _write(pages, folder, port)
    site = json.loads(site_file.read_text())
    return Site(folder, port, tuple(site["seeds"]), site["pages"], site["mean_bytes"])


def _write(pages: Iterator[tuple[str, bytes]], folder: Path, port: int) -> None:
    urls, total = [], 0
    for address in addresses():
        (folder / address).mkdir(parents=True, exist_ok=True)
        (folder / address / "robots.txt").write_text(ROBOTS)
    for url, body in pages:
        parts = urlsplit(url)
        path = folder / str(parts.hostname) / unquote(parts.path).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        urls.append(url)
        total += len(body)
    seeds = random.Random(8).sample(urls, _SEEDS)
    site = {"seeds": seeds, "pages": len(urls), "mean_bytes": total // len(urls)}
    (folder / "site.json").write_text(json.dumps(site))


def _small_pages(web: Path, port: int) -> Iterator[tuple[str, bytes]]:
    """Ten kilobytes each: text of the doc web with random links between them.

    Each word of it is used once, or pages would be taken for copies, and their sites for scrapers.
    """
    rng = random.Random(8)
    urls = [
        f"http://{address}:{port}/guide/page-{number}.html"
        for address in addresses()
        for number in range(SMALL_PAGES_A_HOST)
    ]
    words = _words(web, rng)
    for url in urls:
        title = " ".join(islice(words, 5))
        head = (
            f"<!doctype html><html lang=en><title>{escape(title)}</title><h1>{escape(title)}</h1>"
        )
        room = (SMALL_BYTES - len(head)) // SMALL_LINKS
        parts = [head]
        for target in rng.sample(urls, SMALL_LINKS):
            anchor = " ".join(islice(words, 4))
            link = f'<a href="{target}">{escape(anchor)}</a>'
            text: list[str] = []
            left = room - len(link) - len("<p> ")
            while left > 0:
                word = escape(next(words))
                text.append(word)
                left -= len(word) + 1
            parts.append(f"<p>{' '.join(text)} {link}")
        yield url, "\n".join(parts).encode()


def _words(web: Path, rng: random.Random) -> Iterator[str]:
    """Yield the words of the long texts, page by page in random order, again and again."""
    with RecordedWeb.open(web) as recorded:
        urls = list(recorded.page_urls)
        rng.shuffle(urls)
        for url in cycle(urls):
            answer = recorded.get(url)
            assert answer is not None
            page = parse_page(Fetched(answer.url, answer.status, answer.headers, answer.body))
            words = page.text.split() if isinstance(page, Page) else []
            if len(words) > MIN_WORDS:
                yield from words


def _real_pages(web: Path, port: int) -> Iterator[tuple[str, bytes]]:
    with RecordedWeb.open(web) as recorded:
        here = {url: _rehosted(url, port) for url in recorded.page_urls}
        moved = list(here.values())
        for url, at in here.items():
            answer = recorded.get(url)
            assert answer is not None

            def link(match: re.Match[bytes], base: str = url) -> bytes:
                target, hash_, fragment = match[2].decode("utf-8", "replace").partition("#")
                joined = _joined(base, target) if target else ""
                if not joined.startswith("http"):
                    return match[0]
                to = here.get(recorded.find(joined) or "")
                to = to or moved[xxhash.xxh3_64_intdigest(joined.encode()) % len(moved)]
                return match[1] + f"{to}{hash_}{fragment}".encode() + match[1]

            yield at, _HREF.sub(link, answer.body)


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target.strip())
    except ValueError:
        return ""


def _rehosted(url: str, port: int) -> str:
    parts = urlsplit(url)
    path = parts.path
    if path.endswith("/") or not path:
        path = f"{path or '/'}index.html"
    elif not posixpath.splitext(path)[1]:
        path = f"{path}.html"
    directory = posixpath.dirname(path)
    number = xxhash.xxh3_64_intdigest(f"{parts.netloc}{directory}".encode()) % HOSTS
    query = f"/q-{xxhash.xxh3_64_hexdigest(parts.query.encode())}.html" if parts.query else ""
    return f"http://{addresses()[number]}:{port}/{parts.netloc}{path}{query}"
