"""Records documentation packages page by page, then what holds them together.

Pages stand as the packages hold them, which keep their folders, so relative
links work. Four things are ours, as live servers have them:

- links to ``/usr/share/...`` (Debian points its pages at each other's files)
  are rewritten to public addresses;
- other addresses of pages that are linked to answer with redirects
  (:mod:`focused.recorded_web.builders.docweb_recorder`);
- a documentation root without an index page answers with a listing;
- every host's ``robots.txt`` is made up (``data/robots.toml``).
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from focused.recorded_web.builders.docweb_rules import (
    DocPackage,
    UrlAlias,
    load_aliases,
    load_disallowed_paths,
    page_categories,
)
from focused.recorded_web.html_files import find_page_files, modified_at, page_headers, read_page
from focused.recorded_web.recorded_web import RecordedWebWriter
from focused.recorded_web.web_index import INDEX_PAGE, key_variants
from focused.web.urls import host_of, normalise
from focused.web.warc_reader import EPOCH

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
        root = _path_inside(unpacked, package.root)
        before = len(self.pages)
        newest = EPOCH
        if root.is_dir():
            for page in find_page_files(root):
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
        finder = RedirectFinder(self.pages, bases, load_aliases())
        count = 0
        for redirect in finder.redirects(self._linked):
            target = html.escape(redirect.target)
            body = f'<html><body>Moved to <a href="{target}">{target}</a>.</body></html>\n'
            headers = {"content-type": "text/html; charset=utf-8", "location": redirect.target}
            count += self.writer.add(redirect.url, 301, headers, body.encode())
        for url, text in _robots_files(self.pages):
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


def _path_inside(unpacked: Path, absolute: str) -> Path:
    """Where an absolute path of the package lies, through its own symbolic links."""
    path = unpacked
    for part in Path(absolute).parts[1:]:
        path = path / part
        if path.is_symlink():
            target = path.readlink()
            path = _path_inside(unpacked, str(target)) if target.is_absolute() else path.resolve()
    return path if path.resolve().is_relative_to(unpacked.resolve()) else unpacked / "outside"


def _title(body: bytes) -> str:
    match = _TITLE.search(body)
    text = html.unescape(match[1].decode("utf-8", "replace")) if match else ""
    return " ".join(text.split())


def _robots_files(pages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(url, text) of the hosts that have rules; about a third has none, which allows all."""
    disallowed = load_disallowed_paths()
    origins = sorted({page[: page.index("/", 8)] for page in pages})
    for origin in origins:
        host = host_of(origin + "/")
        paths = disallowed.get(host, [])
        if not paths and hashlib.sha256(host.encode()).digest()[0] % 3 == 0:
            continue
        rules = "".join(f"Disallow: {path}\n" for path in paths) or "Allow: /\n"
        yield f"{origin}/robots.txt", f"User-agent: *\n{rules}"


@dataclass(frozen=True, slots=True)
class Redirect:
    """``url`` leads to ``target``; both normalised."""

    url: str
    target: str


class RedirectFinder:
    """Finds the recorded page that an address means.

    ``pages`` are the recorded URLs, ``bases`` the addresses of documentation
    roots. The root of a host that has no page of its own means its first base,
    as on hosts that serve nothing but documentation.
    """

    def __init__(
        self, pages: Iterable[str], bases: Iterable[str], rules: Iterable[UrlAlias] = ()
    ) -> None:
        self._pages = {_without_scheme(page): page for page in pages}
        self._urls = frozenset(self._pages.values())
        self._rules = tuple(rules)
        self._bases: dict[str, list[str]] = {}
        for base in bases:
            host, _, path = _without_scheme(base).partition("/")
            self._bases.setdefault(host, []).append(path)

    def find(self, address: str) -> Redirect | None:
        """The redirect for an absolute address; None when it needs or has none."""
        url = normalise(address)
        if url is None or self._is_served(url):
            return None
        asked = _without_scheme(url).partition("?")[0]
        for candidate in self._candidates(asked):
            target = self._pages.get(candidate)
            if target is not None:
                return Redirect(url, target)
        return None

    def redirects(self, addresses: Iterable[str]) -> Iterator[Redirect]:
        """The redirects for many addresses, each URL once, in order of the URLs."""
        found: Mapping[str, Redirect] = {
            redirect.url: redirect for redirect in map(self.find, addresses) if redirect is not None
        }
        return (found[url] for url in sorted(found))

    def _is_served(self, url: str) -> bool:
        """Whether look-up finds the page without a redirect, over the scheme asked for."""
        return any(
            variant in self._urls
            for variant in key_variants(url)
            if variant.partition(":")[0] == url.partition(":")[0]
        )

    def _candidates(self, asked: str) -> Iterator[str]:
        meant = [asked, *self._aliased(asked)]
        for address in meant:
            for host_form in _with_and_without_www(address):
                yield from _path_forms(host_form)
        host, _, path = asked.partition("/")
        if not path:
            for form in _with_and_without_www(host):
                yield from (f"{form}/{base}" for base in self._bases.get(form, ())[:1])

    def _aliased(self, asked: str) -> Iterator[str]:
        for rule in self._rules:
            meant, count = rule.pattern.subn(rule.replacement, asked, count=1)
            if count:
                host, star, rest = meant.partition("/*/")
                if not star:
                    yield meant
                for base in self._bases.get(host, ()) if star else ():
                    yield f"{host}/{base}{rest}"
                return


def _without_scheme(url: str) -> str:
    return url.partition("://")[2]


def _with_and_without_www(address: str) -> tuple[str, str]:
    other = address[4:] if address.startswith("www.") else f"www.{address}"
    return address, other


def _path_forms(address: str) -> Iterator[str]:
    yield address
    if address.endswith("/"):
        yield address + INDEX_PAGE
        yield address.removesuffix("/") + ".html"
        yield address.removesuffix("/")
        return
    yield address + "/"
    yield address + ".html"
    if address.endswith("/" + INDEX_PAGE):
        yield address.removesuffix(INDEX_PAGE)
    elif address.endswith(".html"):
        yield address.removesuffix(".html") + "/"
    elif address.endswith(".htm"):
        yield address + "l"
