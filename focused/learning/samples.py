"""From a list of samples to their words: pages read, copies dropped, words counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
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
    though they are listed as others: both are left out, too. ``confirmed`` tells which
    samples a person vouched for: labels and seeds, not what keywords proposed. With
    ``halved`` the first two samples are the halves of the only good page.
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
    confirmed: Bools
    halved: bool = False

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
            confirmed=np.ones(count, dtype=bool),
        )


def gather(
    listed: SampleSet,
    fetch_page: FetchPage,
    corpus: Corpus,
    progress: Progress | None = None,
    confirmed: Collection[str] = (),
) -> Samples:
    """Add every sample's words to ``corpus``: the page's, else the directory's own.

    Good samples come first, so that of equal pages the good one is kept. The halves of a single
    good page stand for two pages: a trial needs one to learn from and one to try.
    ``confirmed`` are the URLs of samples that a person vouched for.
    """
    gathering = _Gathering(corpus, frozenset(confirmed))
    order = np.argsort(~np.array(listed.good, dtype=bool), kind="stable").tolist()
    for done, place in enumerate(order, start=1):
        gathering.take(listed.entries[place], listed.good[place], fetch_page)
        if progress:
            progress(done, len(order))
    return gathering.samples()


class _Gathering:
    """Samples as they come."""

    def __init__(self, corpus: Corpus, confirmed: frozenset[str]) -> None:
        self._corpus = corpus
        self._confirmed = confirmed
        self._kept: list[tuple[str, bool, float, str, str, str, bool]] = []
        self._first: Words | None = None  # held back until it is known whether it is the only one
        self._halved = False
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
        host, title = host_of(entry.url), page.title or entry.title
        is_confirmed = entry.url in self._confirmed
        if self._first is not None:
            self._add_first(halved=not good)
        elif not self._kept and good:
            self._first = document
        if self._first is None:
            self._corpus.add(*document, host, own=not is_background(entry.category))
        self._kept.append(
            (entry.category, good, entry.weight, host, title, page.language, is_confirmed)
        )

    def _add_first(self, *, halved: bool) -> None:
        """Count the words of the first good sample; with ``halved`` each half is a sample."""
        assert self._first is not None, "it was held back"
        (text, head), host = self._first, self._kept[0][3]
        self._first = None
        self._halved = halved and len(text) >= 2 * _SHORT_WORDS
        middle = len(text) // 2
        for part in (text[:middle], text[middle:]) if self._halved else (text,):
            self._corpus.add(part, head, host)
        if self._halved:
            self._kept.insert(0, self._kept[0])

    def samples(self) -> Samples:
        """All that were taken."""
        if self._first is not None:
            self._add_first(halved=True)
        columns = zip(*self._kept, strict=True) if self._kept else ((),) * 7
        categories, good, weights, hosts, titles, languages, confirmed = columns
        return Samples(
            categories,
            np.array(good, dtype=bool),
            np.array(weights, dtype=np.float64),
            hosts,
            titles,
            languages,
            **{name: self._counts[name] for name in _COUNTED},
            confirmed=np.array(confirmed, dtype=bool),
            halved=self._halved,
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
