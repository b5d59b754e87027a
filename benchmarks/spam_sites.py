"""A web of 40 real sites and 44 spam sites, for ``benchmarks/spam.py``.

The real sites are hosts of a recorded web. The spam sites are of five kinds:

========== ===== ==================================================================================
kind       sites pages
========== ===== ==================================================================================
scraper    16    copies of real pages between advertisements: whole articles, halves of articles,
                 two articles on one page, or articles as they are in a frame of the site's own
doorway    8     sales phrases filled with the topic's words; half of them refresh to a shop
stuffing   8     repeated keywords beside a piece of an article
farm       8     little text, 40 links to pages of other farms under titles of real pages
endless    4     a generated text for every number: Markov chain, stitched sentences, replaced
                 words, filled templates
========== ===== ==================================================================================

Comments on 5% of the real pages link to them. Everything follows from hashes of URLs: each crawl
meets the same web.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import xxhash

from focused.spam.spam_training import (
    frequent_words,
    generate_text,
    repeat_keywords,
    stitch_sentences,
)
from focused.text import hash_fraction
from focused.web.http_response import outcome_from_response
from focused.web.page import Failed, FailureKind, Fetched, Link, Outcome, Page
from focused.web.urls import host_of
from focused_lab.simulation.simulator import Network

PAGES_PER_SITE = 300
SPAM_SUFFIX = "-pages.test"
SHOP = "shop.test"
_ENDLESS = 10**9
_COMMENTED_SHARE, _COMMENTS = 0.05, 3
_SOURCES = 6
_LINKS_TO_GOOD = 2
_ADVERTISEMENT_EVERY = 60
_ADVERTISEMENTS = (
    "Save up to {0}% today with code {1} at checkout",
    "Compare {0} hosting offers and get the first month free",
    "Sponsored: the {0} tools that professionals buy, from {1} dollars",
    "Free webinar: {0} mistakes that cost companies {1} thousand a year",
    "Our readers also bought these {0} courses, now {1}% off",
    "Subscribe to the newsletter and win one of {0} vouchers",
    "Your computer may be slow: download the cleaner, {0} million users",
    "Earn {1} dollars a week from home, {0} places left",
    "Limited offer: cloud servers from {0} dollars, {1} locations",
    "Rated {0} of 5 by {1} customers, order now and pay later",
)
_FRAME_WORDS = (
    *("home", "latest", "popular", "categories", "contact", "privacy", "terms", "advertise"),
    *("login", "register", "newsletter", "share", "tweet", "comments", "tags", "archive"),
    *("trending", "tutorials", "questions", "answers", "jobs", "deals", "reviews", "forum"),
    *("about", "imprint", "search", "menu", "next", "previous", "related", "sponsored"),
)

_TEMPLATES = (
    "Buy the best {0} and {1} online at a low price.",
    "Find the cheapest {0} for {1} here, compare {2} and save today.",
    "Our {0} guide explains {1} and {2} in every detail.",
    "Looking for {0}? We offer {1} with free {2} delivery.",
    "Read the top ten {0} {1} reviews of the year.",
    "{0}, {1} and {2}: order now and get a discount.",
)
_SYNONYM_ENDINGS = ("ando", "eris", "itum", "oval", "une")
_REPLACED = 1 / 3

MakePage = Callable[["SpamWeb", str, random.Random], Page]


@dataclass(frozen=True, slots=True)
class SpamKind:
    """A kind of spam site."""

    name: str
    sites: int
    make: MakePage
    pages_per_site: int = PAGES_PER_SITE


class SpamWeb:
    """A network of some hosts of ``network`` and of the spam sites, which copy from ``source``."""

    def __init__(
        self, network: Network, honest_hosts: frozenset[str], source: Sequence[Page], seed: int
    ) -> None:
        self._network = network
        self._honest_hosts = honest_hosts
        self.source = source
        self.seed = seed
        self._kinds = {
            f"{kind.name}{n}{SPAM_SUFFIX}": kind for kind in KINDS for n in range(kind.sites)
        }
        self._hosts = sorted(self._kinds)

    def kind(self, url: str) -> str:
        """Return the kind of spam of a URL, ``""`` for a real page."""
        host = host_of(url)
        if host == SHOP:
            return "shop"
        return self._kinds[host].name if host in self._kinds else ""

    def is_spam(self, url: str) -> bool:
        """Whether a URL is of a spam site."""
        return bool(self.kind(url))

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        if not self.is_spam(url):
            if host_of(url) not in self._honest_hosts:
                return Failed(url, FailureKind.NO_HOST, detail="not in this web")
            return self._network.answer(url, now, elapsed_s)
        if url.endswith("/robots.txt"):
            return outcome_from_response(404, {}, url, b"", elapsed_s, now)
        return Fetched(url, 200, {"content-type": "text/html"}, bytes(10_000), elapsed_s)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse the answer."""
        url = fetched.url
        if host_of(url) == SHOP:
            text = " ".join(self._rng(url).choices(_FRAME_WORDS, k=200))
            return Page(url, "Shop", text=text, language="en")
        kind = self._kinds.get(host_of(url))
        if kind is not None:
            return replace(kind.make(self, url, self._rng(url)), language="en")
        page = self._network.parse(fetched)
        if isinstance(page, Failed) or hash_fraction(page.url, self.seed) >= _COMMENTED_SHARE:
            return page
        rng = self._rng(page.url)
        comments = [self.link(rng.choice(self._hosts), rng) for _ in range(_COMMENTS)]
        return replace(page, links=(*page.links, *comments))

    def link(self, host: str, rng: random.Random) -> Link:
        """Return a link to a random page of a spam site, under the title of a real page."""
        number = rng.randrange(self._kinds[host].pages_per_site)
        anchor = rng.choice(self.source).title
        return Link(f"http://{host}/{number}", anchor, tag_path="body/div/p/a")

    def links(self, host: str, rng: random.Random, own: int, others: int) -> list[Link]:
        """Return links to pages of a site, and of other sites of its kind."""
        kind = self._kinds[host]
        partners = [each for each in self._hosts if self._kinds[each] is kind and each != host]
        found = [self.link(host, rng) for _ in range(own)]
        return found + [self.link(rng.choice(partners), rng) for _ in range(others)]

    def _rng(self, url: str) -> random.Random:
        return random.Random(xxhash.xxh3_64_intdigest(url.encode(), self.seed))


def _fill_templates(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Fill sales phrases with the topic's words, as doorway pages do."""
    keywords = rng.sample(frequent := frequent_words(texts, 300), min(20, len(frequent)))
    filled: list[str] = []
    while len(filled) < n_words:
        filled += rng.choice(_TEMPLATES).format(*rng.choices(keywords, k=3)).split()
    return " ".join(filled)


def _replace_words(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Copy a text, and replace every third word by one of a list of synonyms (spinning)."""
    words = rng.choice(texts).split()[:n_words]
    return " ".join(
        f"{word[:3]}{rng.choice(_SYNONYM_ENDINGS)}" if rng.random() < _REPLACED else word
        for word in words
    )


def _page(
    url: str, title: str, text: str, links: Sequence[Link], refresh: str | None = None
) -> Page:
    """Return a page whose text ends with the anchors of its links, each target once."""
    once = tuple({link.url: link for link in links if link.url != url}.values())
    anchors = " ".join(link.anchor for link in once)
    return Page(url, title, text=f"{text} {anchors}", links=once, refresh=refresh)


def _good_links(pages: Sequence[Page]) -> list[Link]:
    return [Link(page.url, page.title, tag_path="body/div/p/a") for page in pages[:_LINKS_TO_GOOD]]


def _advertisement(rng: random.Random) -> str:
    return rng.choice(_ADVERTISEMENTS).format(rng.randint(2, 90), rng.randint(100, 999))


def _frame(host: str) -> str:
    """Return the menu of a site."""
    rng = random.Random(host)
    return " ".join([host.partition(".")[0], *rng.sample(_FRAME_WORDS, 20)])


def _with_advertisements(words: Sequence[str], rng: random.Random) -> Iterator[str]:
    for first in range(0, len(words), _ADVERTISEMENT_EVERY):
        yield " ".join(words[first : first + _ADVERTISEMENT_EVERY])
        yield _advertisement(rng)


def _site_number(url: str) -> int:
    return int("".join(filter(str.isdigit, host_of(url))))


def _scraped(web: SpamWeb, url: str, rng: random.Random) -> Page:
    """Copy articles; a site copies in one of four ways, and links to the original or does not."""
    number = _site_number(url)
    originals = rng.sample(web.source, 2)
    words = originals[0].text.split()
    if number >= 13:
        body = " ".join(words)
    elif number >= 10:
        body = " ".join([*words, _advertisement(rng), *originals[1].text.split()])
    elif number >= 6:
        half = len(words) // 2
        part = words[:half] if rng.random() < 0.5 else words[half:]
        body = " ".join(_with_advertisements(part, rng))
    else:
        body = " ".join(_with_advertisements(words, rng))
    host = host_of(url)
    text = f"{_frame(host)} {body} {' '.join(_advertisement(rng) for _ in range(2))}"
    links = web.links(host, rng, 12, 3)
    if number % 2:
        links += _good_links(originals[:1])
    return _page(url, originals[0].title, text, links)


def _generated(
    make: Callable[[Sequence[str], int, random.Random], str],
    own: int,
    others: int,
    web: SpamWeb,
    url: str,
    rng: random.Random,
) -> Page:
    """Make a text of the length of a real page from six real pages."""
    chosen = rng.sample(web.source, _SOURCES)
    n_words = min(max(len(rng.choice(chosen).text.split()), 100), 800)
    text = f"{_frame(host_of(url))} {make([page.text for page in chosen], n_words, rng)}"
    return _page(
        url,
        chosen[0].title,
        text,
        [*web.links(host_of(url), rng, own, others), *_good_links(chosen)],
    )


def _doorway(web: SpamWeb, url: str, rng: random.Random) -> Page:
    made = _generated(_fill_templates, 8, 4, web, url, rng)
    if _site_number(url) % 2:
        return replace(made, refresh=f"http://{SHOP}/")
    shop = Link(f"http://{SHOP}/{rng.randrange(1000)}", "Order now", tag_path="body/div/a")
    return replace(made, links=(*made.links, shop))


def _farm(web: SpamWeb, url: str, rng: random.Random) -> Page:
    chosen = rng.sample(web.source, _SOURCES)
    links = web.links(host_of(url), rng, 10, 30)
    return _page(url, chosen[0].title, _frame(host_of(url)), [*links, *_good_links(chosen)])


def _endless(web: SpamWeb, url: str, rng: random.Random) -> Page:
    make = (partial(generate_text, order=3), stitch_sentences, _replace_words, _fill_templates)
    return _generated(make[_site_number(url)], 15, 1, web, url, rng)


KINDS = (
    SpamKind("scraper", 16, _scraped),
    SpamKind("doorway", 8, _doorway),
    SpamKind("stuffing", 8, partial(_generated, repeat_keywords, 12, 3)),
    SpamKind("farm", 8, _farm),
    SpamKind("endless", 4, _endless, _ENDLESS),
)
