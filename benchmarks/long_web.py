"""A web that is generated on request: millions of pages, none of which is stored.

Everything about a page follows from its host, its number and a seed, by hashing: its subject, words
and links. Twenty thousand hosts with sizes by Zipf's law; pages of 300 to 400 words, sampled from
the model's categories; 18 links per page, most within the host and its section, the others mostly
to hosts of the page's subject. A few URLs in a hundred are missing, redirect, are no page, or
repeat another page exactly or nearly; a few hosts are dead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import xxhash
from long_hosts import DRAWS, Host, Words, generate_hosts, generate_word, sample_words

from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.web.page import Failed, FailureKind, Fetched, Outcome, Redirected

LINKS = 18
_WORDS, _MORE_WORDS = 300, 100
_PARAGRAPHS = 7
_NAVIGATION = 4
_RARE_WORDS = 1 << 22
_STYLES = 3
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{description}">
<link rel="stylesheet" href="/static/site.css"><script src="/static/site.js" defer></script>
<style>body {{ margin: 0 auto; max-width: 60em }} nav li {{ display: inline }}</style></head>
<body class="page"><header class="top"><nav class="menu"><ul>
{menu}
</ul></nav></header><main id="content"><h1>{title}</h1>
{body}
</main><footer class="bottom"><p>Copyright {host}. All rights reserved.</p></footer></body></html>
"""


class LongWeb:
    """Answers requests for pages and robots.txt; see the module's docstring."""

    def __init__(
        self,
        model: LinearTopicClassifier,
        *,
        hosts: int = 20_000,
        pages: int = 20_000_000,
        seed: int = 0,
    ) -> None:
        self._seed = seed
        self._words: Sequence[Words] = sample_words(model, seed)
        self._hosts = generate_hosts(hosts, pages, len(self._words), seed)
        self._by_name = {host.name: host for host in self._hosts}
        self._on_subject: list[list[Host]] = [[] for _ in self._words]
        for host in self._hosts:
            self._on_subject[host.subject].append(host)

    def seeds(self, subject: int, count: int) -> list[str]:
        """The roots of ``count`` hosts of that subject, without the very largest."""
        reachable = [host for host in self._on_subject[subject] if not (host.dead or host.failing)]
        return [f"{host.scheme}://{host.name}/" for host in reachable[10 : 10 + count]]

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """The outcome of a request for a normalised URL."""
        name, _, path = url.partition("://")[2].partition("/")
        host = self._by_name.get(name)
        if host is None or host.dead:
            return Failed(url, FailureKind.NO_HOST, elapsed_s=elapsed_s)
        if path == "robots.txt":
            if host.robots is None:
                return Failed(url, FailureKind.GONE, 404, elapsed_s=elapsed_s)
            headers = {"content-type": "text/plain"}
            return Fetched(url, 200, headers, host.robots.encode(), elapsed_s, host.address)
        if host.failing:
            kind = FailureKind.SERVER_ERROR
            return Failed(url, kind, 503, elapsed_s=elapsed_s, address=host.address)
        number = _number_in(path, host.style)
        if number is None or number >= host.pages:
            return Failed(url, FailureKind.GONE, 404, elapsed_s=elapsed_s, address=host.address)
        return self._page(url, host, number, elapsed_s)

    def subject_of(self, url: str) -> int | None:
        """The number of a page's subject; None without a page."""
        name, _, path = url.partition("://")[2].partition("/")
        host = self._by_name.get(name)
        number = None if host is None else _number_in(path, host.style)
        return None if host is None or number is None else self._about(host, number)[1]

    def _page(self, url: str, host: Host, number: int, elapsed_s: float) -> Outcome:
        bits, _ = self._about(host, number)
        kind = (bits >> 64) % 1_000 if number else 999
        shown = number
        if kind < 20:
            return Failed(url, FailureKind.GONE, 404, elapsed_s=elapsed_s, address=host.address)
        if kind < 40:
            target = f"{host.scheme}://{host.name}{self._path(host, (bits >> 76) % host.pages)}"
            if target != url:
                return Redirected(url, 301, target, elapsed_s, host.address)
        if kind < 45:
            pdf = {"content-type": "application/pdf"}
            return Fetched(url, 200, pdf, b"%PDF-1.4", elapsed_s, host.address)
        if kind < 65:
            shown = (bits >> 76) % (number or 1)
        words = ("newly", "changed", str(number)) if 55 <= kind < 65 else ()
        headers = {"content-type": "text/html; charset=utf-8", "server": "long"}
        body = self._html(host, shown, words).encode()
        return Fetched(url, 200, headers, body, elapsed_s, host.address)

    def _html(self, host: Host, number: int, changed: Sequence[str]) -> str:
        bits, subject = self._about(host, number)
        length = _WORDS + bits % _MORE_WORDS
        drawn = hashlib.shake_128(f"{self._seed} {host.number} {number}".encode()).digest(
            2 * length + 8 * LINKS
        )
        places = np.frombuffer(drawn, np.uint16, length)
        words: list[str] = self._words[subject][places].tolist()
        words[50] = generate_word(bits % _RARE_WORDS)
        words[150] = generate_word((bits >> 22) % _RARE_WORDS)
        words[200 : 200 + len(changed)] = changed
        choices = np.frombuffer(drawn, np.uint64, LINKS, 2 * length).tolist()
        links = [self._link(host, number, subject, choice) for choice in choices]
        title = " ".join(self._title(bits, subject))
        menu = [f'<li class="item"><a href="/">{host.name}</a></li>']
        for section in range(min(_NAVIGATION, len(host.sections))):
            path = self._path(host, section)
            menu.append(f'<li class="item"><a href="{path}">{host.sections[section]}</a></li>')
        return _PAGE.format(
            title=title,
            description=" ".join(words[:15]),
            menu="\n".join(menu),
            body="\n".join(_paragraphs(words, links)),
            host=host.name,
        )

    def _about(self, host: Host, number: int) -> tuple[int, int]:
        """128 random bits of a page, and its subject, usually its section's."""
        bits = xxhash.xxh3_128_intdigest(f"{self._seed} {host.number} {number}".encode())
        section = number % len(host.sections)
        if (bits >> 100) % 8 == 0:
            return bits, (bits >> 104) % len(self._words)
        if section < host.pure:
            return bits, host.subject
        return bits, xxhash.xxh3_64_intdigest(f"{host.number} {section}".encode()) % len(
            self._words
        )

    def _title(self, bits: int, subject: int) -> tuple[str, str]:
        words = self._words[subject]
        return words[(bits >> 16) % DRAWS], words[(bits >> 32) % DRAWS]

    def _link(self, host: Host, number: int, subject: int, choice: int) -> str:
        """One link of a page, selected by 64 random bits."""
        kind, choice = choice & 0xFF, choice >> 8
        nearness = (choice & 0xFFFF) / 65_536
        among = ((choice >> 16) & 0xFFFF) / 65_536
        sections = len(host.sections)
        if kind < 80:  # the same section
            target = number % sections + sections * int(nearness**2 * (host.pages // sections))
            return self._anchor(host, min(target, host.pages - 1), "")
        if kind < 150:  # the same host
            return self._anchor(host, int(nearness**2 * host.pages), "")
        if kind < 215:  # a host of the page's subject, in a section on it
            others = self._on_subject[subject]
            other = others[int(among**2 * len(others))]
            section = (choice >> 32) % other.pure
            sections = len(other.sections)
            target = section + sections * int(nearness**3 * (other.pages // sections))
        else:
            other = self._hosts[int(among**2 * len(self._hosts))]
            target = int(nearness**3 * other.pages)
        return self._anchor(other, min(target, other.pages - 1), f"{other.scheme}://{other.name}")

    def _anchor(self, host: Host, number: int, origin: str) -> str:
        bits, subject = self._about(host, number)
        one, two = self._title(bits, subject)
        path = self._path_of(host, number, one, two)
        return f'<a class="link" href="{origin}{path}">{one} {two}</a>'

    def _path(self, host: Host, number: int) -> str:
        return self._path_of(host, number, *self._title(*self._about(host, number)))

    def _path_of(self, host: Host, number: int, one: str, two: str) -> str:
        if number == 0:
            return "/"
        section = host.sections[number % len(host.sections)]
        if host.style == 0:
            return f"/{section}/{number}.html"
        if host.style == 1:
            return f"/{section}/{one}-{two}-{number}"
        return f"/{section}/{one}-{two}-{_in_letters(number)}.html"


def _paragraphs(words: Sequence[str], links: Sequence[str]) -> list[str]:
    """The words as paragraphs with headings and links."""
    parts = []
    size = len(words) // _PARAGRAPHS
    links_each = -(-len(links) // _PARAGRAPHS)
    for number in range(_PARAGRAPHS):
        own = words[number * size : (number + 1) * size]
        if number % 3 == 1:
            parts.append(f'<h2 id="part-{number}">{" ".join(own[:4])}</h2>')
        step = size // (links_each + 1)
        text = []
        for place, link in enumerate(links[number * links_each : (number + 1) * links_each]):
            text += [*own[place * step : (place + 1) * step], link]
        text += own[links_each * step :]
        parts.append(f'<p class="text">{" ".join(text)}.</p>')
    return parts


def _in_letters(number: int) -> str:
    letters = []
    while True:
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
        if not number:
            return "".join(letters)


def _number_in(path: str, style: int) -> int | None:
    """The page's number from a path without its first slash."""
    if not path:
        return 0
    last = path.rpartition("/")[2].removesuffix(".html")
    if style != _STYLES - 1:
        last = last.rpartition("-")[2]
        return int(last) if last.isascii() and last.isdigit() else None
    number = 0
    for letter in reversed(last.rpartition("-")[2]):
        place = _LETTERS.find(letter)
        if place < 0:
            return None
        number = number * len(_LETTERS) + place
    return number
