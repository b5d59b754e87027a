"""A database behind a search form: its records are linked from results only."""

from __future__ import annotations

import random
from collections.abc import Sequence
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

from focused.web.page import Failed, FailureKind, Fetched, Outcome

HOST = "db.test"
ROOT = f"http://{HOST}/"
FORM = (
    "<form action=/find method=get role=search><input type=search name=q>"
    "<input type=hidden name=lang value=en><button>Search</button></form>"
    "<form action=/newsletter><input name=email></form>"
)
RESULTS_A_PAGE = 10
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "su", "te")


def made_words(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words = {"".join(rng.choice(_SYLLABLES) for _ in range(3)) for _ in range(2 * count)}
    return sorted(words)[:count]


class SearchSite:
    """Answers in a simulation; ``queries`` holds the queries in order, each page of results once.

    A third of the records are about whales. Words of a record are drawn by Zipf's law from one of
    two vocabularies.
    """

    def __init__(self, records: int = 300, robots: str = "") -> None:
        rng = random.Random(5)
        subjects = [made_words(120, seed) for seed in (1, 2)]
        weights = [1.0 / (rank + 1) for rank in range(120)]
        self.records: list[Sequence[str]] = []
        for number in range(records):
            is_relevant = number % 3 == 0
            words = rng.choices(subjects[is_relevant], weights, k=30)
            self.records.append(["whale" if is_relevant else "stone", f"record{number}", *words])
        self.relevant = {f"{ROOT}record/{n}" for n in range(0, records, 3)}
        self.queries: list[str] = []
        self.robots = robots

    def get(self, url: str, default: Outcome) -> Outcome:
        parts = urlsplit(url)
        if parts.netloc != HOST:
            return default
        asked = dict(parse_qsl(parts.query))
        if parts.path == "/":
            return _page(url, f"Whale database {FORM}")
        if parts.path == "/find":
            return self._results(url, asked)
        if parts.path.startswith("/record/"):
            words = self.records[int(parts.path.rpartition("/")[2])]
            return _page(url, f"{FORM}<p>{escape(' '.join(words))}")
        if parts.path == "/robots.txt" and self.robots:
            return Fetched(url, 200, {"content-type": "text/plain"}, self.robots.encode())
        return Failed(url, FailureKind.GONE, 404)

    def _results(self, url: str, asked: dict[str, str]) -> Outcome:
        query, start = asked["q"], int(asked.get("start", 0))
        self.queries.append(query)
        found = [n for n, words in enumerate(self.records) if query in words]
        links = [f"<li><a href=/record/{n}>{n}</a>" for n in found[start : start + RESULTS_A_PAGE]]
        if start + RESULTS_A_PAGE < len(found):
            onward = urlencode({"lang": "en", "q": query, "start": start + RESULTS_A_PAGE})
            links.append(f"<a rel=next href='/find?{onward}'>next</a>")
        return _page(url, f"{FORM}<p>{len(found)} results for {query}<ul>{''.join(links)}</ul>")


def _page(url: str, html: str) -> Fetched:
    return Fetched(url, 200, {"content-type": "text/html"}, f"<title>db</title>{html}".encode())
