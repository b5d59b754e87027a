"""Records documentation packages page by page, then what holds them together.

Pages stand as the packages hold them, which keep their folders, so relative
links work. Four things are ours, as live servers have them:

- links to ``/usr/share/...`` (Debian points its pages at each other's files)
  are rewritten to public addresses;
- other addresses of pages that are linked to answer with redirects
  (:mod:`focused.recorded.redirects`);
- a documentation root without an index page answers with a listing;
- every host's ``robots.txt`` is made up (``data/robots.toml``).
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from focused.recorded.docmap import DocPackage, aliases, disallowed_paths
from focused.recorded.docpages import modified_at, page_files, page_headers, read_page
from focused.recorded.page_topics import page_categories
from focused.recorded.redirects import RedirectFinder
from focused.recorded.store import RecordedWebWriter
from focused.recorded.warc_records import EPOCH
from focused.web.url import host_of

_ABSOLUTE_LINK = re.compile(rb"""<a\s[^>]*?href\s*=\s*["']?(https?://[^"'\s>]+)""", re.I)
_LOCAL_LINK = re.compile(
    rb"""((?:href|src)\s*=\s*["']?)(?:file://)?(/usr/share/[^"'\s>#]*)""", re.I
)
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title", re.I | re.S)


@dataclass(slots=True)
class DocRecorder:
    """Takes unpacked packages, one after the other; ``finish`` adds what belongs to all.

    ``packages`` are all that will be recorded, so that pages can point at each
    other's public addresses.
    """

    writer: RecordedWebWriter
    packages: Sequence[DocPackage]
    pages: list[str] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    _linked: set[str] = field(default_factory=set)

    def record(self, package: DocPackage, unpacked: Path) -> int:
        """Record the pages of a package unpacked at ``unpacked``; returns their number."""
        root = _inside(unpacked, package.root)
        before = len(self.pages)
        newest = EPOCH
        if root.is_dir():
            for page in page_files(root):
                if page.is_api and not package.with_api:
                    continue
                body = read_page(page.file)
                if body is not None:
                    modified = modified_at(page.file)
                    newest = max(newest, modified)
                    self._record_page(package, package.base + page.path, body, modified)
            if len(self.pages) > before and package.base not in self.writer:
                self._record_listing(package, self.pages[before:], newest)
        return len(self.pages) - before

    def finish(self) -> int:
        """Record redirects and robots.txt; returns the number of redirects."""
        bases = [package.base for package in self.packages]
        finder = RedirectFinder(self.pages, bases, aliases())
        count = 0
        for redirect in finder.redirects(self._linked):
            target = html.escape(redirect.target)
            body = f'<html><body>Moved to <a href="{target}">{target}</a>.</body></html>\n'
            headers = {"content-type": "text/html; charset=utf-8", "location": redirect.target}
            count += self.writer.add(redirect.url, 301, headers, body.encode())
        for url, text in _robots(self.pages):
            self.writer.add(url, 200, {"content-type": "text/plain; charset=utf-8"}, text.encode())
        return count

    def _record_page(self, package: DocPackage, url: str, body: bytes, modified: datetime) -> None:
        body = _LOCAL_LINK.sub(self._public_link, body)
        if not self.writer.add(url, 200, page_headers(body, modified), body, modified):
            return
        self.pages.append(url)
        self._linked.update(
            html.unescape(link.decode("utf-8", "replace")) for link in _ABSOLUTE_LINK.findall(body)
        )
        self.labels.append((url, package.category))
        self.labels += [(url, category) for category in page_categories(url, _title(body))]

    def _record_listing(
        self, package: DocPackage, pages: Sequence[str], modified: datetime
    ) -> None:
        """What Apache calls an index: a link to each page right below the root, or to all."""
        names = [page.removeprefix(package.base) for page in pages]
        names = [name for name in names if "/" not in name.rstrip("/")] or names
        path = html.escape("/" + package.base.split("/", 3)[3])
        rows = "\n".join(
            f'<li><a href="{html.escape(name)}">{html.escape(name)}</a></li>' for name in names
        )
        body = (
            f"<html><head><title>Index of {path}</title></head>\n"
            f"<body><h1>Index of {path}</h1>\n<ul>\n{rows}\n</ul></body></html>\n"
        ).encode()
        self.writer.add(package.base, 200, page_headers(body, modified), body, modified)
        self.pages.append(package.base)
        self.labels.append((package.base, package.category))

    def _public_link(self, match: re.Match[bytes]) -> bytes:
        path = match[2].decode("utf-8", "replace")
        public = next(
            (
                base + path.removeprefix(root)
                for root, base in self._roots()
                if path.startswith(root)
            ),
            None,
        )
        return match[0] if public is None else match[1] + public.encode()

    def _roots(self) -> Iterator[tuple[str, str]]:
        for package in self.packages:
            yield package.root.rstrip("/") + "/", package.base
            if package.package.startswith("python3."):
                yield "/usr/share/doc/python3-doc/html/", package.base
                yield "/usr/share/doc/python3/html/", package.base


def _inside(unpacked: Path, absolute: str) -> Path:
    """Where an absolute path of the package lies, through its own symbolic links."""
    path = unpacked
    for part in Path(absolute).parts[1:]:
        path = path / part
        if path.is_symlink():
            target = path.readlink()
            path = _inside(unpacked, str(target)) if target.is_absolute() else path.resolve()
    return path if path.resolve().is_relative_to(unpacked.resolve()) else unpacked / "outside"


def _title(body: bytes) -> str:
    match = _TITLE.search(body)
    text = html.unescape(match[1].decode("utf-8", "replace")) if match else ""
    return " ".join(text.split())


def _robots(pages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(url, text) of the hosts that have rules; about a third has none, which allows all."""
    disallowed = disallowed_paths()
    origins = sorted({page[: page.index("/", 8)] for page in pages})
    for origin in origins:
        host = host_of(origin + "/")
        paths = disallowed.get(host, [])
        if not paths and hashlib.sha256(host.encode()).digest()[0] % 3 == 0:
            continue
        rules = "".join(f"Disallow: {path}\n" for path in paths) or "Allow: /\n"
        yield f"{origin}/robots.txt", f"User-agent: *\n{rules}"
