"""Spam sites beside a recorded web, for ``benchmarks/spam.py``.

A spammer registers sites and makes pages of the texts of good ones; links in comments of real pages
lead there, and each spam page links to more. Which real pages carry such links, and what stands on
a spam page, follow from hashes of URLs: each crawl meets the same web.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from string import ascii_lowercase

import xxhash

from focused.spam.spam_training import (
    TRAINING_FAMILIES,
    SpamFamily,
    frequent_words,
    generate_text,
)
from focused.text.hash_sampling import hash_fraction
from focused.web.http_response import outcome_from_response
from focused.web.page import Failed, Fetched, Link, Outcome, Page
from focused.web.urls import host_of
from focused_lab.simulation.simulator import Network

SPAM_SUFFIX = "-offers.test"
SITES = 10
PAGES_PER_SITE = 300
_LINKS_PER_PAGE = 20
_LINKS_TO_GOOD = 2
COMMENTED_SHARE = 0.05
COMMENTS = 3
_SOURCES = 6
_TEMPLATES = (
    "Buy the best {0} and {1} online at a low price.",
    "Find the cheapest {0} for {1} here, compare {2} and save today.",
    "Our {0} guide explains {1} and {2} in every detail.",
    "Looking for {0}? We offer {1} with free {2} delivery.",
    "Read the top ten {0} {1} reviews of the year.",
    "{0}, {1} and {2}: order now and get a discount.",
)


def quote_fragments(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Quote short pieces of texts, as pages scraped from search results do."""
    quoted: list[str] = []
    while len(quoted) < n_words:
        words = rng.choice(texts).split()
        first = rng.randrange(max(1, len(words) - 20))
        quoted += [*words[first : first + rng.randint(10, 25)], "..."]
    return " ".join(quoted)


def fill_templates(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Fill sales phrases with the topic's words, as doorway pages do."""
    keywords = rng.sample(frequent := frequent_words(texts, 300), min(20, len(frequent)))
    filled: list[str] = []
    while len(filled) < n_words:
        filled += rng.choice(_TEMPLATES).format(*rng.choices(keywords, k=3)).split()
    return " ".join(filled)


def copy_pages(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Copy a whole text, as scraped sites do, with a line of one's own."""
    return f"Mirror {rng.randrange(10**6)} {rng.choice(texts)}"


DOORWAY = "doorway"
"""Copied pages that lead to a shop."""

UNSEEN_FAMILIES: Mapping[str, SpamFamily] = {
    "fragments": quote_fragments,
    "templates": fill_templates,
    "order-1": partial(generate_text, order=1),
    "order-3": partial(generate_text, order=3),
    "copied": copy_pages,
}
"""Families that the spam classifier is not trained on."""

FAMILIES: Mapping[str, SpamFamily] = {**TRAINING_FAMILIES, **UNSEEN_FAMILIES}


def replace_words(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Copy a text, and replace every third word by one of a list of synonyms (spinning)."""
    words = rng.choice(texts).split()[:n_words]
    return " ".join(
        f"{word[:3]}{rng.choice(_SYNONYM_ENDINGS)}" if rng.random() < _REPLACED else word
        for word in words
    )


def add_random_letters(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Mix a text's words with random letters, so that no two pages are equal."""
    words = rng.choice(texts).split()[: n_words // 2]
    return " ".join(
        f"{word} {''.join(rng.choices(ascii_lowercase, k=rng.randint(4, 9)))}" for word in words
    )


_SYNONYM_ENDINGS = ("ando", "eris", "itum", "oval", "une")
_REPLACED = 1 / 3

ENDLESS_FAMILIES: Mapping[str, SpamFamily] = {
    **FAMILIES,
    "replaced": replace_words,
    "letters": add_random_letters,
    DOORWAY: copy_pages,
}
"""The families of sites without end, for ``benchmarks/endless_sites.py``."""


class SpamNetwork:
    """A network with the sites of one spammer in it, who copies from ``source``, good pages."""

    def __init__(
        self,
        network: Network,
        family: str,
        source: Sequence[Page],
        seed: int,
        *,
        sites: int = SITES,
        pages_per_site: int = PAGES_PER_SITE,
    ) -> None:
        self._network = network
        self._sites = sites
        self._pages_per_site = pages_per_site
        self._make: SpamFamily = ENDLESS_FAMILIES[family]
        self._source = source
        self._seed = seed
        self._family = family

    def is_spam(self, url: str) -> bool:
        """Whether a URL is one of the spammer's."""
        return host_of(url).endswith(SPAM_SUFFIX)

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        if not self.is_spam(url):
            return self._network.answer(url, now, elapsed_s)
        if url.endswith("/robots.txt"):
            return outcome_from_response(404, {}, url, b"", elapsed_s, now)
        return Fetched(url, 200, {"content-type": "text/html"}, bytes(10_000), elapsed_s)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse the answer."""
        if self.is_spam(fetched.url):
            return self._spam_page(fetched.url)
        page = self._network.parse(fetched)
        if isinstance(page, Failed) or hash_fraction(page.url, self._seed) >= COMMENTED_SHARE:
            return page
        rng = self._rng(page.url)
        return replace(page, links=(*page.links, *self._spam_links(rng, COMMENTS)))

    def _spam_page(self, url: str) -> Page:
        rng = self._rng(url)
        pages = self._source
        chosen = rng.sample(pages, min(_SOURCES, len(pages)))
        n_words = min(max(len(rng.choice(pages).text.split()), 100), 800)
        text = self._make([page.text for page in chosen], n_words, rng)
        good = [Link(page.url, page.title) for page in chosen[:_LINKS_TO_GOOD]]
        links = (*self._spam_links(rng, _LINKS_PER_PAGE), *good)
        anchors = " ".join(link.anchor for link in links)
        return Page(
            url,
            chosen[0].title,
            text=f"{text} {anchors}",
            links=links,
            language="en",
            refresh="http://shop.test/" if self._family == DOORWAY else None,
        )

    def _spam_links(self, rng: random.Random, count: int) -> list[Link]:
        urls = {
            f"http://{self._family}{rng.randrange(self._sites)}{SPAM_SUFFIX}/"
            f"{rng.randrange(self._pages_per_site)}"
            for _ in range(count)
        }
        return [
            Link(url, rng.choice(self._source).title, tag_path="body/p/a") for url in sorted(urls)
        ]

    def _rng(self, url: str) -> random.Random:
        return random.Random(xxhash.xxh3_64_intdigest(url.encode(), self._seed))
