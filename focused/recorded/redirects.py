"""Redirects for the other addresses of recorded pages.

Pages link to each other by many addresses: older versions, other hosts, http
for https, with and without ``www.``, trailing slash or ``.html``. Live servers
redirect those, so the recorded web does, too: for every address that is linked
to and that leads to a recorded page, one permanent redirect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from focused.recorded.addresses import INDEX_FILE, key_variants
from focused.recorded.docmap import Alias
from focused.web.url import normalise


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
        self, pages: Iterable[str], bases: Iterable[str], rules: Iterable[Alias] = ()
    ) -> None:
        self._pages = {_schemeless(page): page for page in pages}
        self._urls = frozenset(self._pages.values())
        self._rules = tuple(rules)
        self._bases: dict[str, list[str]] = {}
        for base in bases:
            host, _, path = _schemeless(base).partition("/")
            self._bases.setdefault(host, []).append(path)

    def find(self, address: str) -> Redirect | None:
        """The redirect for an absolute address; None when it needs or has none."""
        url = normalise(address)
        if url is None or self._is_served(url):
            return None
        asked = _schemeless(url).partition("?")[0]
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


def _schemeless(url: str) -> str:
    return url.partition("://")[2]


def _with_and_without_www(address: str) -> tuple[str, str]:
    other = address[4:] if address.startswith("www.") else f"www.{address}"
    return address, other


def _path_forms(address: str) -> Iterator[str]:
    yield address
    if address.endswith("/"):
        yield address + INDEX_FILE
        yield address.removesuffix("/") + ".html"
        yield address.removesuffix("/")
        return
    yield address + "/"
    yield address + ".html"
    if address.endswith("/" + INDEX_FILE):
        yield address.removesuffix(INDEX_FILE)
    elif address.endswith(".html"):
        yield address.removesuffix(".html") + "/"
    elif address.endswith(".htm"):
        yield address + "l"
