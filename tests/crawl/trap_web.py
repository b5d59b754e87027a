"""Hosts that make up pages without end, each in its own way, and a few good pages on each.

A :class:`TrapWeb` answers for them, over HTTP (``served(TrapWeb())``) as well as in
a simulation (``TrapWeb()`` in place of a dictionary). What is made up follows
from the URL alone, but for session ids, which are new with each answer.
"""

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import count
from urllib.parse import parse_qsl, urlsplit

from focused.web.http_response import outcome_from_response
from focused.web.page import Outcome
from focused_lab.recorded_web.recorded_web import RecordedResponse
from tests.support.recorded_web import html, page, redirect

GOOD_PAGES = 6
WILD_HOSTS = 3_000
SEED = "http://good.test/"
KINDS = (
    *("calendar", "dates", "paths", "segments", "facets", "session", "folder-session"),
    *("soft404", "loops", "chains", "everything", "noise", "hosts"),
)
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "su", "te")
_FACETS = ("brand", "colour", "price", "size", "sort", "stock")


class TrapWeb:
    """The seed's host and those of some kinds of traps."""

    def __init__(self, *kinds: str) -> None:
        """All kinds, unless some are named."""
        self.kinds = kinds or KINDS
        wild = [f"h{n}.hosts.test" for n in range(WILD_HOSTS)] if "hosts" in self.kinds else []
        self.hosts = frozenset(["good.test", *(f"{kind}.test" for kind in self.kinds), *wild])
        self._ids = count(1)

    @property
    def good(self) -> set[str]:
        """All pages on topic that are worth a fetch."""
        hosts = ["good.test", *(f"{kind}.test" for kind in self.kinds)]
        return {f"http://{host}/whales/{name}" for host in hosts for name in _names(host)}

    def get(self, url: str, default: Outcome | None = None) -> RecordedResponse | Outcome | None:
        """What is answered: a recorded response, or for a simulation, which has a
        ``default``, its outcome."""
        found = self._answer(url)
        if default is None:
            return found
        if found is None:
            return default
        return outcome_from_response(
            found.status, found.headers, url, found.body, elapsed_s=0.1, now=0.0
        )

    def _answer(self, url: str) -> RecordedResponse | None:
        parts = urlsplit(url)
        host = parts.netloc
        if host not in self.hosts or parts.path == "/robots.txt":
            return None
        if url == SEED:
            entries = [f"http://{kind}.test{_ENTRIES[kind]}" for kind in self.kinds]
            return page(url, html("Start", *sorted(self.good), *entries, text="Where it begins."))
        if url in self.good:
            name = parts.path.rpartition("/")[2]
            return page(url, html(f"Whale {name}", text=_prose(url, 40) + f" whale {host} {name}"))
        kind = host.removesuffix(".test").rpartition(".")[2]
        return None if kind == "good" else _MAKERS[kind](self, url)

    def new_id(self) -> str:
        return f"{random.Random(next(self._ids)).getrandbits(80):020x}"


def _names(host: str) -> list[str]:
    rng = random.Random(host)
    return [_word(rng) for _ in range(GOOD_PAGES)]


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(4))


def _prose(url: str, words: int) -> str:
    rng = random.Random(url)
    return " ".join(_word(rng) for _ in range(words))


def _calendar(web: TrapWeb, url: str) -> RecordedResponse:
    day = date(*map(int, urlsplit(url).path.strip("/").split("/")[1:]))
    days = [day + timedelta(days=step) for step in (-31, -1, 1, 31, 365)]
    links = [f"/calendar/{each:%Y/%m/%d}/" for each in days]
    return page(url, html(f"{day:%d %B %Y}", *links, text=f"{_prose(url, 30)}, nothing is on."))


def _dates(web: TrapWeb, url: str) -> RecordedResponse:
    asked = dict(parse_qsl(urlsplit(url).query))
    month = int(asked["year"]) * 12 + int(asked["month"]) - 1
    links = [f"/events?year={m // 12}&month={m % 12 + 1}" for m in (month - 1, month + 1)]
    return page(url, html("Whale events", *links, text="No whale is seen in this month, sorry."))


def _paths(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    links = [f"{_word(rng)}/" for _ in range(3)]
    return page(url, html(_word(rng), *links, text=_prose(url, 50)))


def _segments(web: TrapWeb, url: str) -> RecordedResponse:
    return page(url, html(url, "shop/", "list/", "shop/list/", text=_prose(url, 50)))


def _facets(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    chosen = parse_qsl(urlsplit(url).query)
    links = []
    for name in _FACETS:
        others = [pair for pair in chosen if pair[0] != name]
        links.append([*others, (name, _word(rng))])
        rng.shuffle(others)
        links.append(others)
    items = "Whale watching tours for the whole family, boats and guides, open in all seasons."
    content = f"{rng.randrange(1000)} tours found. {items} " + " ".join(v for _, v in chosen)
    return page(url, html("Tours", *map(_listed, links), text=content))


def _listed(chosen: Sequence[tuple[str, str]]) -> str:
    return "/list?" + "&".join(f"{name}={value}" for name, value in chosen)


def _session(web: TrapWeb, url: str) -> RecordedResponse:
    number = int(urlsplit(url).path.rpartition("/")[2])
    links = [f"/page/{n}?visit={web.new_id()}" for n in range(20)]
    return page(url, html(f"{number}", *links, text=_prose(f"session {number}", 60)))


def _folder_session(web: TrapWeb, url: str) -> RecordedResponse:
    number = int(urlsplit(url).path.rpartition("/")[2])
    links = [f"/v{web.new_id()}/page/{n}" for n in range(20)]
    return page(url, html(f"{number}", *links, text=_prose(f"folder {number}", 60)))


def _soft404(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    links = [f"/{_word(rng)}/{_word(rng)}" for _ in range(4)]
    sorry = "We are so sorry, this whale has swum away. Perhaps one of these pages is of use:"
    return page(url, html(f"No {urlsplit(url).path}", *links, text=sorry))


def _loops(web: TrapWeb, url: str) -> RecordedResponse:
    path = urlsplit(url).path
    if path == "/":
        return page(url, html("Loops", "/there", "/cookie", "/one", text=_prose(url, 20)))
    if path == "/cookie":
        cookie = {"Set-Cookie": f"seen={web.new_id()}"}
        return RecordedResponse(url, 302, {"Location": url, **cookie}, b"")
    onward = {"/there": "/back", "/back": "/there", "/one": "/two", "/two": "/three"}
    return redirect(url, onward.get(path, "/one"), 302)


def _chains(web: TrapWeb, url: str) -> RecordedResponse:
    parts = urlsplit(url)
    if parts.path == "/":
        links = [f"/go?from={n}&step=0" for n in range(200)]
        return page(url, html("Chains", *links, text=_prose(url, 20)))
    asked = dict(parse_qsl(parts.query))
    return redirect(url, f"/go?from={asked['from']}&step={int(asked['step']) + 1}", 302)


def _everything(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    links = [f"/{_word(rng)}" for _ in range(5)]
    text = "Welcome to the home of everything that you were ever looking for, all of it cheap."
    return page(url, html(_word(rng), *links, text=text))


def _noise(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    links = [f"/{_word(rng)}/{_word(rng)}" for _ in range(5)]
    return page(url, html(_word(rng), *links, text=_prose(url, 80)))


def _hosts(web: TrapWeb, url: str) -> RecordedResponse:
    rng = random.Random(url)
    links = [f"http://h{rng.randrange(WILD_HOSTS)}.hosts.test/" for _ in range(5)]
    return page(url, html(_word(rng), *links, text=_prose(url, 80)))


_MAKERS: dict[str, Callable[[TrapWeb, str], RecordedResponse]] = {
    "calendar": _calendar, "dates": _dates, "paths": _paths, "segments": _segments,
    "facets": _facets, "session": _session, "folder-session": _folder_session,
    "soft404": _soft404, "loops": _loops, "chains": _chains, "everything": _everything,
    "noise": _noise, "hosts": _hosts,
}  # fmt: skip
_ENTRIES = {
    "calendar": "/calendar/2026/11/21/", "dates": "/events?year=2026&month=11", "paths": "/",
    "segments": "/shop/", "facets": "/list", "session": "/page/0", "folder-session": "/v0/page/0",
    "soft404": "/lost", "loops": "/", "chains": "/", "everything": "/", "noise": "/",
    "hosts": "/",
}  # fmt: skip
