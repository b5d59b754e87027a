"""Hosts whose pages stand under many URLs, and hosts that only say so.

An :class:`AliasWeb` answers for them in a simulation, in place of a dictionary.
Each host has :data:`PAGES` pages that differ, on topic all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlsplit

from focused.web.page import Fetched, Outcome, Redirected
from tests.support.recorded_web import html

PAGES = 40
SEED = "http://start.test/"
HONEST = 6
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "su", "te")


class AliasWeb:
    """The seed's host and those of some kinds, each named for what it does."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def get(self, url: str, default: Outcome) -> Outcome:
        """What is answered."""
        if url == SEED:
            return _page(url, "start", [f"http://{kind}.test/" for kind in self.kinds])
        parts = urlsplit(url)
        kind = parts.netloc.removesuffix(".test")
        if kind not in self.kinds or parts.path == "/robots.txt":
            return default
        return _MAKERS[kind](url, parts.path, dict(parse_qsl(parts.query))) or default


def _words(name: str, count: int = 40) -> list[str]:
    rng = random.Random(name)
    return ["".join(rng.choice(_SYLLABLES) for _ in range(4)) for _ in range(count)]


def _page(
    url: str, name: str, links: Sequence[str], canonical: str = "", words: Sequence[str] = ()
) -> Fetched:
    all_words = " ".join(["whale", *(words or _words(name))])
    headers = {"content-type": "text/html"}
    if canonical:
        headers["link"] = f'</style.css>; rel=preload, <{canonical}>; rel="canonical"'
    return Fetched(url, 200, headers, html(name, *links, text=all_words))


def _sorts(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Lists of one page each, in any order that is asked for."""
    number = path.removeprefix("/list/")
    if path == "/":
        return _page(url, "sorts", [f"/list/{n}" for n in range(PAGES)])
    words = sorted(_words(url.partition("?")[0]))
    random.Random(asked.get("sort", "name")).shuffle(words)
    links = [f"/list/{number}?sort={way}" for way in ("name", "price", "date", "rating")]
    return _page(url, f"list {number}", links, words=words)


def _pages_of_lists(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Lists of four pages; the first stands under its number, too, and all name it as canonical."""
    if path == "/":
        return _page(url, "lists", [f"/list/{n}" for n in range(PAGES // 4)])
    page = asked.get("page", "1")
    links = [f"{path}?page={n}" for n in range(1, 5)]
    return _page(url, f"{path} {page}", links, canonical=path, words=_words(f"{path} {page}"))


def _spelled(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Case does not count, and a folder's page has a name, too; links are written in all ways."""
    plain = path.lower().removesuffix("default.aspx")
    names = [f"/guide/part{chr(97 + n // 26)}{chr(97 + n % 26)}/" for n in range(PAGES)]
    if plain != "/" and plain not in names:
        return None
    rng = random.Random(plain)
    links = []
    for name in names:
        spelled = "/Guide/" + name[7:].capitalize() if rng.random() < 0.4 else name
        links.append(spelled + ("Default.aspx" if rng.random() < 0.4 else ""))
    return _page(url, plain, links)


def _redirecting(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Capitals are redirected; pages write links with them, the list of all without."""
    if path == "/":
        return _page(url, "moved", [f"/item/{n}" for n in range(PAGES)])
    if path != path.lower():
        return Redirected(url, 301, url.lower())
    number = int(path.rpartition("/")[2])
    return _page(url, path, [f"/Item/{(number + n) % PAGES}" for n in range(1, 4)])


def _canonical(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Each page has a number and a name, links to both, and says that the name is its URL."""
    names = ["-".join(_words(f"title {n}", 2)) for n in range(PAGES)]
    if path == "/":
        return _page(url, "canonical", [f"/node/{n}" for n in range(PAGES)])
    number = int(path.removeprefix("/node/")) if "/node/" in path else names.index(path[1:])
    links = [f"/{names[number]}", f"/{names[(number + 1) % PAGES]}"]
    return _page(url, f"title {number}", links, canonical=f"/{names[number]}")


def _front_liar(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """All pages say that they are the front page."""
    links = [f"/page/{n}" for n in range(PAGES)] if path == "/" else ["/"]
    return _page(url, path, links, canonical="/")


def _late_liar(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """The first pages have a copy each that they name; all others name the page after them."""
    if path == "/":
        first = [f"/page/{n}" for n in range(HONEST)]
        return _page(url, path, [*first, *(f"/copy{each}" for each in first)])
    name = path.removeprefix("/copy")
    number = int(name.rpartition("/")[2])
    canonical = f"/copy{name}" if number < HONEST else f"/page/{(number + 1) % PAGES}"
    return _page(url, name, [f"/page/{n}" for n in range(HONEST, PAGES)], canonical=canonical)


def _gone(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Half of the items are gone: one text answers for them, or they lead to their list."""
    if path == "/":
        links = [f"/item?id={n}" for n in range(2 * PAGES)]
        return _page(url, path, [*links, *(f"/old?id={n}" for n in range(2 * PAGES)), "/old"])
    number = asked.get("id", "")
    if path == "/old" and number and int(number) % 2:
        return Redirected(url, 302, "http://gone.test/old")
    if number and int(number) % 2:
        return _page(url, "No such item", [], words=_words("no such item"))
    return _page(url, f"{path} {number}", [])


_MAKERS: dict[str, Callable[[str, str, dict[str, str]], Outcome | None]] = {
    "sorts": _sorts,
    "lists": _pages_of_lists,
    "spelled": _spelled,
    "moved": _redirecting,
    "canonical": _canonical,
    "front-liar": _front_liar,
    "late-liar": _late_liar,
    "gone": _gone,
}
