"""From a list of samples to their words: pages read, copies dropped, words counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from focused.directory.background import is_background
from focused.directory.entry import DirectoryEntry
from focused.directory.own_pages import own_page
from focused.directory.sides import SampleSet
from focused.learning.calibration import Bools, Floats
from focused.learning.corpus import Corpus
from focused.learning.documents import page_words
from focused.web.page import Page
from focused.web.url import host_of

FetchPage = Callable[[str], Page | None]
Progress = Callable[[int, int], None]
Remark = Callable[[str], None]

Words = tuple[list[str], list[str]]
# Shorter texts are alike by chance; they are copies only with their titles.
_SHORT_WORDS = 20


@dataclass(frozen=True, slots=True)
class Samples:
    """n samples that have words; those are in a corpus, in the same order.

    ``languages`` are ISO 639-1 codes or ``""``. ``fetched`` samples gave a page,
    ``without_text`` had no words at all and are left out. ``copies`` repeated
    the words of a sample of their side, ``contradictions`` those of a good one
    though they are listed as others: both are left out, too.
    """

    categories: tuple[str, ...]
    good: Bools
    weights: Floats
    hosts: tuple[str, ...]
    titles: tuple[str, ...]
    languages: tuple[str, ...]
    fetched: int
    without_text: int
    copies: int
    contradictions: int

    def __len__(self) -> int:
        return len(self.good)

    @classmethod
    def of(
        cls,
        categories: Sequence[str],
        good: Bools,
        hosts: Sequence[str],
        titles: Sequence[str],
    ) -> Samples:
        """Samples of pages that are at hand, all of weight one."""
        count = len(good)
        return cls(
            categories=tuple(categories),
            good=good,
            weights=np.ones(count),
            hosts=tuple(hosts),
            titles=tuple(titles),
            languages=("",) * count,
            fetched=count,
            without_text=0,
            copies=0,
            contradictions=0,
        )


def gather(
    listed: SampleSet, fetch_page: FetchPage, corpus: Corpus, progress: Progress | None = None
) -> Samples:
    """Add every sample's words to ``corpus``: the page's, else the directory's own.

    Good samples come first, so that of equal pages the good one is kept.
    """
    gathering = _Gathering(corpus)
    order = np.argsort(~np.array(listed.good, dtype=bool), kind="stable").tolist()
    for done, place in enumerate(order, start=1):
        gathering.take(listed.entries[place], listed.good[place], fetch_page)
        if progress:
            progress(done, len(order))
    return gathering.samples()


class _Gathering:
    """Samples as they come."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._kept: list[tuple[str, bool, float, str, str, str]] = []
        self._side_of: dict[bytes, bool] = {}
        self._counts: Counter[str] = Counter()

    def take(self, entry: DirectoryEntry, good: bool, fetch_page: FetchPage) -> None:
        """Read one sample's page and count its words."""
        page, document = _read(entry, fetch_page)
        self._counts["fetched"] += any(document)
        if not any(document):
            page = Page(entry.url, title=entry.title, description=entry.description)
            document = page_words(page)
        if page is None or not any(document):
            self._counts["without_text"] += 1
            return
        identity = identity_of(document)
        if (side := self._side_of.get(identity)) is not None:
            self._counts["copies" if side == good else "contradictions"] += 1
            return
        self._side_of[identity] = good
        host = host_of(entry.url)
        self._corpus.add(*document, host, own=not is_background(entry.category))
        title = page.title or entry.title
        self._kept.append((entry.category, good, entry.weight, host, title, page.language))

    def samples(self) -> Samples:
        """All that were taken."""
        columns = zip(*self._kept, strict=True) if self._kept else ((),) * 6
        categories, good, weights, hosts, titles, languages = columns
        return Samples(
            categories,
            np.array(good, dtype=bool),
            np.array(weights, dtype=np.float64),
            hosts,
            titles,
            languages,
            **{name: self._counts[name] for name in _COUNTED},
        )


_COUNTED = ("fetched", "without_text", "copies", "contradictions")


def _read(entry: DirectoryEntry, fetch_page: FetchPage) -> tuple[Page | None, Words]:
    page = fetch_page(entry.url) if entry.is_fetched else own_page(entry)
    return page, page_words(page) if page else ([], [])


def identity_of(document: Words) -> bytes:
    """Equal for documents of the same words in the same order."""
    text, head = document
    told = text if len(text) >= _SHORT_WORDS else [*text, "", *head]
    return xxhash.xxh3_128_digest(" ".join(told).encode("utf-8", "surrogatepass"))
