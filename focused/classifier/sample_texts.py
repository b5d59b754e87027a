"""From a list of samples to their words: pages read, copies dropped, words counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xxhash

from focused.classifier.calibration import BoolArray, FloatArray
from focused.classifier.corpus import Corpus
from focused.directory.background_samples import background_samples, is_background
from focused.directory.directory_entry import DirectoryEntry
from focused.directory.page_folders import load_sample_page
from focused.directory.sample_set import SampleSet, is_in_category
from focused.labels.label import Label, training_labels
from focused.text.documents import page_words
from focused.web.page import Page
from focused.web.urls import host_of, normalise

FetchPage = Callable[[str], Page | None]
ProgressCallback = Callable[[int, int], None]
MessageCallback = Callable[[str], None]

TokenLists = tuple[list[str], list[str]]
# Shorter texts are alike by chance; they are copies only with their titles.
_MIN_WORDS_WITHOUT_HEAD = 20


@dataclass(frozen=True, slots=True)
class TrainingSamples:
    """n samples that have words; those are in a corpus, in the same order.

    ``languages`` are ISO 639-1 codes or ``""``. ``fetched`` samples gave a page,
    ``without_text`` had no words at all and are left out. ``copies`` repeated
    the words of a sample of their side, ``contradictions`` those of a good one
    though they are listed as others: both are left out, too. ``confirmed`` tells which
    samples a person vouched for: labels and seeds, not what keywords proposed. With
    ``halved`` the first two samples are the halves of the only good page.
    """

    categories: tuple[str, ...]
    good: BoolArray
    weights: FloatArray
    hosts: tuple[str, ...]
    titles: tuple[str, ...]
    languages: tuple[str, ...]
    fetched: int
    without_text: int
    copies: int
    contradictions: int
    confirmed: BoolArray
    halved: bool = False

    def __len__(self) -> int:
        return len(self.good)

    @classmethod
    def of(
        cls,
        categories: Sequence[str],
        good: BoolArray,
        hosts: Sequence[str],
        titles: Sequence[str],
    ) -> TrainingSamples:
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


def gather_samples(
    listed: SampleSet,
    fetch_page: FetchPage,
    corpus: Corpus,
    progress: ProgressCallback | None = None,
    confirmed: Collection[str] = (),
) -> TrainingSamples:
    """Add every sample's words to ``corpus``: the page's, else the directory's own.

    Good samples come first, so that of equal pages the good one is kept. The halves of a single
    good page stand for two pages: a trial needs one to learn from and one to try.
    ``confirmed`` are the URLs of samples that a person vouched for.
    """
    gathering = _SampleCollector(corpus, frozenset(confirmed))
    order = np.argsort(~np.array(listed.good, dtype=bool), kind="stable").tolist()
    for done, place in enumerate(order, start=1):
        gathering.take(listed.entries[place], listed.good[place], fetch_page)
        if progress:
            progress(done, len(order))
    return gathering.samples()


class _SampleCollector:
    """Samples as they come."""

    def __init__(self, corpus: Corpus, confirmed: frozenset[str]) -> None:
        self._corpus = corpus
        self._confirmed = confirmed
        self._kept: list[tuple[str, bool, float, str, str, str, bool]] = []
        self._first: TokenLists | None = (
            None  # held back until it is known whether it is the only one
        )
        self._halved = False
        self._side_of: dict[bytes, bool] = {}
        self._counts: Counter[str] = Counter()

    def take(self, entry: DirectoryEntry, good: bool, fetch_page: FetchPage) -> None:
        """Read one sample's page and count its words."""
        page, document = _read_sample(entry, fetch_page)
        self._counts["fetched"] += any(document)
        if not any(document):
            page = Page(entry.url, title=entry.title, description=entry.description)
            document = page_words(page)
        if page is None or not any(document):
            self._counts["without_text"] += 1
            return
        identity = text_identity(document)
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
        self._halved = halved and len(text) >= 2 * _MIN_WORDS_WITHOUT_HEAD
        middle = len(text) // 2
        for part in (text[:middle], text[middle:]) if self._halved else (text,):
            self._corpus.add(part, head, host)
        if self._halved:
            self._kept.insert(0, self._kept[0])

    def samples(self) -> TrainingSamples:
        """All that were taken."""
        if self._first is not None:
            self._add_first(halved=True)
        columns = zip(*self._kept, strict=True) if self._kept else ((),) * 7
        categories, good, weights, hosts, titles, languages, confirmed = columns
        return TrainingSamples(
            categories,
            np.array(good, dtype=bool),
            np.array(weights, dtype=np.float64),
            hosts,
            titles,
            languages,
            **{name: self._counts[name] for name in _COUNTER_NAMES},
            confirmed=np.array(confirmed, dtype=bool),
            halved=self._halved,
        )


_COUNTER_NAMES = ("fetched", "without_text", "copies", "contradictions")


def _read_sample(entry: DirectoryEntry, fetch_page: FetchPage) -> tuple[Page | None, TokenLists]:
    page = fetch_page(entry.url) if entry.needs_fetch else load_sample_page(entry)
    return page, page_words(page) if page else ([], [])


def text_identity(document: TokenLists) -> bytes:
    """Equal for documents of the same words in the same order."""
    text, head = document
    told = text if len(text) >= _MIN_WORDS_WITHOUT_HEAD else [*text, "", *head]
    return xxhash.xxh3_128_digest(" ".join(told).encode("utf-8", "surrogatepass"))


OTHER_CATEGORY = "Top/Labelled/Other"
"""Where a page goes that was labelled no without a category."""


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Labels that taught: yes and no, and how many of them overruled the directory."""

    yes: int = 0
    no: int = 0
    overruled: int = 0


def add_labels(
    listed: SampleSet,
    labels: Iterable[Label],
    good_prefixes: Sequence[str],
    weight: float | None = None,
) -> tuple[SampleSet, LabelCounts]:
    """The samples with those that labels teach, each URL once; the label wins.

    Only labels that may teach are taken in. Yes puts a page into the label's
    category, where that is good, else into the first of ``good_prefixes``; no
    into the label's category, where that is not good, else into :data:`OTHER`.
    A page that is in the directory keeps its category when the label agrees
    with its side. ``weight``, > 0, is that of a labelled sample; None leaves it
    as it is listed, or 1.
    """
    sides = dict(zip((entry.url for entry in listed.entries), listed.good, strict=True))
    entries = {entry.url: entry for entry in listed.entries}
    overruled = 0
    said: dict[str, bool] = {}
    for label in training_labels(labels):
        url, good = normalise(label.url) or label.url, label.verdict == "yes"
        said[url] = good
        old = entries.get(url)
        if old is not None and weight is not None:
            entries[url] = old = replace(old, weight=weight)
        if old is not None and sides[url] == good and not label.category:
            continue
        overruled += old is not None and sides[url] != good
        sides[url] = good
        category = _category_of_label(label, good, good_prefixes)
        entries[url] = (
            replace(old, category=category)
            if old is not None
            else DirectoryEntry(category, url, label.title, weight=weight or 1.0)
        )
    counts = LabelCounts(sum(said.values()), len(said) - sum(said.values()), overruled)
    return replace(listed, entries=tuple(entries.values()), good=tuple(sides.values())), counts


def _category_of_label(label: Label, good: bool, good_prefixes: Sequence[str]) -> str:
    named = label.category.strip("/")
    fits = any(is_in_category(named, prefix) for prefix in good_prefixes) == good
    if named and fits:
        return named
    return good_prefixes[0] if good else OTHER_CATEGORY


TARGET_OTHER_SAMPLES = 300
"""So many other samples are wanted; what a directory has fewer of them, the background stands for.

From here on it is left out: a topic's own neighbours tell more than the Web at large.
"""

_BACKGROUND_PAGES = 600


def add_background(listed: SampleSet) -> SampleSet:
    """The samples, and the background as others that together weigh what is missing."""
    missing = TARGET_OTHER_SAMPLES - sum(not good for good in listed.good)
    if missing <= 0:
        return listed
    added = background_samples(_BACKGROUND_PAGES)
    weighed = tuple(replace(entry, weight=missing / len(added)) for entry in added)
    return replace(
        listed, entries=(*listed.entries, *weighed), good=(*listed.good, *(False for _ in weighed))
    )
