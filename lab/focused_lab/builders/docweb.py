"""Build the documentation web: Debian's documentation packages under their public URLs.

Each tier contains the pages of the previous one. The map says from which tier on a package's
generated API pages are included.

Pages are recorded as they are in the packages, so that relative links work. Four things are added:

- links to ``/usr/share/...`` are rewritten to public URLs;
- other URLs of pages redirect to them, if a page links there;
- a documentation root without an index page gets a listing;
- each host's ``robots.txt`` is made up (``data/robots.toml``).
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from focused.errors import RecordedWebError
from focused.web.urls import host_of, normalize_url
from focused.web.warc_reader import EPOCH
from focused_lab.builders.built_web import BuiltWeb, build_details, existing_web
from focused_lab.builders.debian_packages import ProgressLine, fetch_packages, unpacked
from focused_lab.builders.docweb_rules import (
    DATA_FILES,
    RULES_FILE,
    TIERS,
    DocPackage,
    UrlAlias,
    load_aliases,
    load_disallowed_paths,
    load_doc_packages,
    page_categories,
)
from focused_lab.builders.package_pages import find_page_files, read_page
from focused_lab.recorded_web.recorded_web import RecordedWebWriter
from focused_lab.recorded_web.web_import import modified_at, page_headers
from focused_lab.recorded_web.web_index import INDEX_PAGE, key_variants

_ABSOLUTE_LINK = re.compile(rb"""<a\s[^>]*?href\s*=\s*["']?(https?://[^"'\s>]+)""", re.I)
_LOCAL_LINK = re.compile(
    rb"""((?:href|src)\s*=\s*["']?)(?:file://)?(/usr/share/[^"'\s>#]*)""", re.I
)
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title", re.I | re.S)


@dataclass(slots=True)
class DocRecorder:
    """Records unpacked packages one by one; :meth:`finish` adds redirects and robots.txt.

    ``packages`` are all packages of the web, whose public URLs pages may link to.
    """

    writer: RecordedWebWriter
    packages: Sequence[DocPackage]
    pages: list[str] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    _linked: set[str] = field(default_factory=set)

    def record(self, package: DocPackage, unpacked: Path) -> int:
        """Record the pages of a package unpacked at ``unpacked``; return their number."""
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
        """Record redirects and robots.txt; return the number of redirects."""
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
        """Record a listing with links to the pages directly below the root, else to all."""
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
    """Return where an absolute path of the package is, following its symbolic links."""
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
    """Yield (url, text) of each robots.txt; about a third of the hosts have none."""
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
    """A redirect from ``url`` to ``target``; both normalised."""

    url: str
    target: str


class RedirectFinder:
    """Finds the recorded page that a URL refers to.

    Pages link by many URLs: older versions, other hosts, http for https, with and without ``www.``,
    trailing slash or ``.html``. ``pages`` are the recorded URLs, ``bases`` the URLs of
    documentation roots. The root of a host without a page refers to its first base.
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
        """Return the redirect for an absolute URL; None if it needs or has none."""
        url = normalize_url(address)
        if url is None or self._is_served(url):
            return None
        requested = _without_scheme(url).partition("?")[0]
        for candidate in self._candidates(requested):
            target = self._pages.get(candidate)
            if target is not None:
                return Redirect(url, target)
        return None

    def redirects(self, addresses: Iterable[str]) -> Iterator[Redirect]:
        """Yield the redirects for many URLs, each once, sorted by URL."""
        found: Mapping[str, Redirect] = {
            redirect.url: redirect for redirect in map(self.find, addresses) if redirect is not None
        }
        return (found[url] for url in sorted(found))

    def _is_served(self, url: str) -> bool:
        """Whether look-up finds the page without a redirect, in the same scheme."""
        return any(
            variant in self._urls
            for variant in key_variants(url)
            if variant.partition(":")[0] == url.partition(":")[0]
        )

    def _candidates(self, requested: str) -> Iterator[str]:
        aliased = [requested, *self._aliased(requested)]
        for address in aliased:
            for host_form in _with_and_without_www(address):
                yield from _path_forms(host_form)
        host, _, path = requested.partition("/")
        if not path:
            for form in _with_and_without_www(host):
                yield from (f"{form}/{base}" for base in self._bases.get(form, ())[:1])

    def _aliased(self, requested: str) -> Iterator[str]:
        for rule in self._rules:
            aliased, count = rule.pattern.subn(rule.replacement, requested, count=1)
            if count:
                host, star, rest = aliased.partition("/*/")
                if not star:
                    yield aliased
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


BUILDER = "focused docweb 1"


def build_docweb(folder: Path, tier: str, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the documentation web of a tier at ``folder``, unless it is up to date.

    ``tier`` is ``small``, ``medium`` or ``full``. Packages are downloaded to ``cache`` and kept. A
    web of another tier or an older builder is replaced. Raises RecordedWebError for an unknown
    tier, without apt or network, or if the folder contains something else.
    """
    if tier not in TIERS:
        raise RecordedWebError(f"tier {tier!r} is unknown: take one of {', '.join(TIERS)}")
    fingerprint = _fingerprint(tier)
    if (existing := existing_web(folder, fingerprint)) is not None:
        progress(f"{folder} is up to date")
        return existing
    wanted = load_doc_packages(tier)
    with RecordedWebWriter(folder, f"docweb-{tier}", BUILDER) as writer:
        debs = fetch_packages([package.package for package in wanted], cache / "debs", progress)
        chosen = [package for package in wanted if package.package in debs]
        recorder = DocRecorder(writer, chosen)
        for number, package in enumerate(chosen, start=1):
            folder_of = cache / "unpacked" / package.package
            with unpacked(debs[package.package], folder_of) as files:
                count = recorder.record(package, files)
            progress(f"{number}/{len(chosen)} {package.package}: {count} pages")
        redirects = recorder.finish()
        built = BuiltWeb(
            folder,
            fresh=True,
            pages=len(recorder.pages),
            redirects=redirects,
            hosts=len({host_of(page) for page in recorder.pages}),
            download_bytes=sum(deb.stat().st_size for deb in debs.values()),
        )
        writer.finish(recorder.labels, {"tier": tier, **build_details(built, fingerprint)})
    return built


def _fingerprint(tier: str) -> str:
    """Return a hash of the tier, the builder and the data files."""
    digest = hashlib.sha256(f"{BUILDER} {tier}".encode())
    for name in (*DATA_FILES, RULES_FILE):
        digest.update((files("focused_lab.builders") / "data" / name).read_bytes())
    return digest.hexdigest()[:16]
