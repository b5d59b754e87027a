"""From listed samples to word counts: adds labels and background, reads pages, drops copies.

The vocabulary is known only after all documents were counted: :class:`SampleWords` collects the
counts, and :meth:`SampleWords.rows` makes vectors of them.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
import xxhash
from numpy.typing import NDArray

from focused.classifier.calibration import BoolArray, FloatArray
from focused.classifier.semantic_scorer import MAX_LEAD_WORDS
from focused.directory import DirectoryEntry, is_in_category
from focused.directory.sample_files import load_sample_page
from focused.directory.sample_set import (
    SampleSet,
    background_samples,
    is_background,
)
from focused.labels.label_file import Label, spam_labels, training_labels
from focused.spam.spam_classifier import READ_CHARS as SPAM_READ_CHARS
from focused.spam.spam_training import MAX_SAMPLES as MAX_SPAM_SAMPLES
from focused.text import hash_fraction
from focused.text.documents import HEAD_WEIGHT, MAX_VOCABULARY_WORDS, Vocabulary, page_words
from focused.text.word_hashes import WordHashes, hash_word
from focused.web.page import Page
from focused.web.urls import host_of, normalize_url

# With this many hosts a word must occur on two: words of one host characterise the host.
_MIN_HOSTS_FOR_HOST_FILTER = 10
_MAX_COUNT = np.iinfo(np.uint16).max
_MIN_IDF = 0.05  # for a kept word that nearly all documents contain


class SampleWords:
    """Documents of two word lists each, text and head.

    ``first_words`` are the hashes of each document's first words, head first.
    """

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        # The distinct words of all parts, one after the other: number and count of each, and where
        # a part ends. Parts 2i and 2i + 1 are text and head of document i.
        self._words, self._counts, self._ends = array("i"), array("H"), array("q", [0])
        self._own: list[bool] = []
        self._hosts: dict[str, int] = {}
        self._host: list[int] = []
        self.first_words: list[WordHashes] = []

    def __len__(self) -> int:
        return len(self._host)

    def add(self, text: Sequence[str], head: Sequence[str], host: str, *, own: bool = True) -> None:
        """Add one document's words.

        A document that is not ``own`` adds no words to the vocabulary, only counts.
        """
        for part in (text, head):
            counts = Counter(part)
            self._words.extend(map(self._numbers.__getitem__, counts))
            self._counts.extend(min(n, _MAX_COUNT) for n in counts.values())
            self._ends.append(len(self._words))
        self._own.append(own)
        self._host.append(self._hosts.setdefault(host, len(self._hosts)))
        first = [*head[:MAX_LEAD_WORDS], *text[:MAX_LEAD_WORDS]][:MAX_LEAD_WORDS]
        self.first_words.append(np.array([hash_word(word) for word in first], np.uint32))

    def words(self) -> Iterator[str]:
        """Return all counted words."""
        return iter(self._numbers)

    def vocabulary(self, kept_words: Collection[str] = ()) -> Vocabulary:
        """Return words of at least two documents (and hosts, if many), and ``kept_words``.

        At most :data:`focused.text.documents.MAX_VOCABULARY_WORDS`, the most frequent, plus
        ``kept_words``, which may be in no document.
        """
        present, size = self._presence(), max(len(self), 1)
        documents = present.getnnz(axis=0)
        enough = (documents >= 2) & (present[self._own].getnnz(axis=0) >= 1)
        if len(self._hosts) >= _MIN_HOSTS_FOR_HOST_FILTER:
            places = (self._host, np.arange(len(self)))
            by_host = sp.csr_matrix((np.ones(len(self), np.bool_), places)) @ present
            enough &= by_host.getnnz(axis=0) >= 2
        # Words in nearly all documents have an idf near 0 and are useless.
        idf = np.log(size / (1.0 + documents))
        enough &= idf > 0
        kept = [(word, number) for word, number in self._numbers.items() if enough[number]]
        kept.sort(key=lambda one: (-documents[one[1]], one[0]))
        rarity = {word: float(idf[number]) for word, number in kept[:MAX_VOCABULARY_WORDS]}
        for word in kept_words:
            number = self._numbers.get(word)
            known = math.log(size) if number is None else float(idf[number])
            rarity[word] = max(known, _MIN_IDF)
        chosen = sorted(rarity)
        return Vocabulary(
            tuple(chosen), np.array([rarity[word] for word in chosen], dtype=np.float32)
        )

    def rows(self, vocabulary: Vocabulary) -> sp.csr_matrix:
        """Return the documents as unit vectors over ``vocabulary``, shape (n, V).

        They are those of :meth:`focused.text.documents.Vocabulary.vectorize_page`.
        """
        columns = self._columns(vocabulary)[np.array(self._words)]
        known = columns >= 0
        ends = np.concatenate(([0], np.cumsum(known)))[np.array(self._ends)]
        values = np.log1p(np.array(self._counts)[known].astype(np.float64))
        columns = columns[known]
        values *= vocabulary.idf[columns]
        parts = sp.csr_matrix(
            (values, columns, ends), shape=(2 * len(self), len(vocabulary)), copy=False
        )
        _normalize_rows(parts)
        parts.data *= np.repeat([1.0, HEAD_WEIGHT] * len(self), np.diff(parts.indptr))
        rows = sp.csr_matrix(
            (parts.data, parts.indices, parts.indptr[::2].copy()),
            shape=(len(self), len(vocabulary)),
        )
        rows.sum_duplicates()
        _normalize_rows(rows)
        return rows

    def known_shares(self, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """Return each document's share of words known without that document, shape (n,)."""
        present = self._presence()
        in_others = (present.getnnz(axis=0) > 2) & (present[self._own].getnnz(axis=0) > 1)
        known = (self._columns(vocabulary) >= 0) & in_others
        counts, documents = np.array(self._counts), np.array(self._ends[::2])

        def by_document(of: NDArray[Any]) -> NDArray[np.int64]:
            return np.asarray(
                np.diff(np.concatenate(([0], np.cumsum(of, dtype=np.int64)))[documents])
            )

        in_all = by_document(counts)
        return by_document(counts * known[np.array(self._words)]) / np.maximum(in_all, 1)

    def _columns(self, vocabulary: Vocabulary) -> NDArray[np.int32]:
        """Return the index in ``vocabulary`` of each counted word, -1 for others."""
        return np.fromiter(
            (vocabulary.index.get(word, -1) for word in self._numbers), np.int32, len(self._numbers)
        )

    def _presence(self) -> sp.csr_matrix:
        """Return whether each document contains each word."""
        present = sp.csr_matrix(
            (np.ones(len(self._words), np.bool_), np.array(self._words), np.array(self._ends[::2])),
            shape=(len(self), len(self._numbers)),
        )
        present.sum_duplicates()
        return present


def _normalize_rows(rows: sp.csr_matrix) -> None:
    """Divide rows of positive values by their lengths, in place."""
    row_of = np.repeat(np.arange(rows.shape[0], dtype=np.int32), np.diff(rows.indptr))
    rows.data /= np.sqrt(np.bincount(row_of, rows.data**2))[row_of]


FetchPage = Callable[[str], Page | None]
MessageCallback = Callable[[str], None]

TokenLists = tuple[list[str], list[str]]
# Shorter texts coincide by chance; they are copies only with the same head.
_MIN_WORDS_WITHOUT_HEAD = 20
_MAX_LEAD_CHARS = 400
_MAX_LINKS = 100


@dataclass(frozen=True, slots=True)
class TrainingSamples:
    """n samples with words; the words are in a :class:`SampleWords`, in the same order.

    ``leads`` are titles with the description or the beginning of the text. ``languages`` are
    ISO 639-1 codes or "". ``fetched`` counts samples with a page. Left out
    are samples ``without_text``, ``copies`` of a sample of the same class, and
    ``contradictions``, others with the words of a good sample. ``confirmed`` marks samples that
    a person confirmed (labels and seeds). With ``halved`` the first two samples are the halves
    of the only good page. ``pages`` are the title and the beginning of the text of up to 200
    samples, for the spam classifier; those of the background only fill up.
    """

    categories: tuple[str, ...]
    good: BoolArray
    weights: FloatArray
    hosts: tuple[str, ...]
    titles: tuple[str, ...]
    leads: tuple[str, ...]
    languages: tuple[str, ...]
    fetched: int
    without_text: int
    copies: int
    contradictions: int
    confirmed: BoolArray
    halved: bool = False
    pages: tuple[Page, ...] = ()

    def __len__(self) -> int:
        return len(self.good)


def gather_samples(
    listed: SampleSet,
    fetch_page: FetchPage,
    sample_words: SampleWords,
    confirmed: Collection[str] = (),
) -> TrainingSamples:
    """Add the words of each sample: the page's, else those of the directory's title and text.

    Good samples come first, so that the good one of equal pages is kept. A single good page is
    split into halves: validation needs one to train on and one to test. ``confirmed`` are the
    URLs of samples that a person confirmed.
    """
    gathering = _SampleCollector(sample_words, frozenset(confirmed))
    order = np.argsort(~np.array(listed.good, dtype=bool), kind="stable").tolist()
    for index in order:
        gathering.collect(listed.entries[index], listed.good[index], fetch_page)
    return gathering.samples()


class _SampleCollector:
    """Collects samples one by one."""

    def __init__(self, sample_words: SampleWords, confirmed: frozenset[str]) -> None:
        self._sample_words = sample_words
        self._confirmed = confirmed
        self._kept: list[tuple[str, bool, float, str, str, str, str, bool]] = []
        self._first: TokenLists | None = None  # held back until a second good sample appears
        self._halved = False
        self._class_by_identity: dict[bytes, bool] = {}
        self._counts: Counter[str] = Counter()
        self._pages: list[tuple[float, str, Page]] = []  # a heap: the largest keys

    def collect(self, entry: DirectoryEntry, good: bool, fetch_page: FetchPage) -> None:
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
        if (is_good_copy := self._class_by_identity.get(identity)) is not None:
            self._counts["copies" if is_good_copy == good else "contradictions"] += 1
            return
        self._class_by_identity[identity] = good
        host, title = host_of(entry.url), page.title or entry.title
        lead = f"{title} {page.description or entry.description or page.text[:_MAX_LEAD_CHARS]}"
        is_confirmed = entry.url in self._confirmed
        self._sample_page(entry, page)
        if self._first is not None:
            self._add_first(halved=not good)
        elif not self._kept and good:
            self._first = document
        if self._first is None:
            self._sample_words.add(*document, host, own=not is_background(entry.category))
        self._kept.append(
            (entry.category, good, entry.weight, host, title, lead, page.language, is_confirmed)
        )

    def _sample_page(self, entry: DirectoryEntry, page: Page) -> None:
        """Keep a seeded random sample of pages, those of the background last."""
        key = hash_fraction(entry.url) - is_background(entry.category)
        short = Page(
            entry.url,
            title=page.title,
            text=page.text[:SPAM_READ_CHARS],
            links=page.links[:_MAX_LINKS],
        )
        heapq.heappush(self._pages, (key, entry.url, short))
        if len(self._pages) > MAX_SPAM_SAMPLES:
            heapq.heappop(self._pages)

    def _add_first(self, *, halved: bool) -> None:
        """Add the first good sample; with ``halved`` each half is a sample."""
        assert self._first is not None, "the first sample was held back"
        (text, head), host = self._first, self._kept[0][3]
        self._first = None
        self._halved = halved and len(text) >= 2 * _MIN_WORDS_WITHOUT_HEAD
        middle = len(text) // 2
        for part in (text[:middle], text[middle:]) if self._halved else (text,):
            self._sample_words.add(part, head, host)
        if self._halved:
            self._kept.insert(0, self._kept[0])

    def samples(self) -> TrainingSamples:
        """Return all collected samples."""
        if self._first is not None:
            self._add_first(halved=True)
        columns = zip(*self._kept, strict=True) if self._kept else ((),) * 8
        categories, good, weights, hosts, titles, leads, languages, confirmed = columns
        return TrainingSamples(
            categories,
            np.array(good, dtype=bool),
            np.array(weights, dtype=np.float64),
            hosts,
            titles,
            leads,
            languages,
            **{name: self._counts[name] for name in _COUNTER_NAMES},
            confirmed=np.array(confirmed, dtype=bool),
            halved=self._halved,
            pages=tuple(page for _, _, page in sorted(self._pages, key=lambda each: each[:2])),
        )


_COUNTER_NAMES = ("fetched", "without_text", "copies", "contradictions")


def _read_sample(entry: DirectoryEntry, fetch_page: FetchPage) -> tuple[Page | None, TokenLists]:
    page = fetch_page(entry.url) if entry.needs_fetch else load_sample_page(entry)
    return page, page_words(page) if page else ([], [])


def text_identity(document: TokenLists) -> bytes:
    """Return a hash of the words in order; short texts include the head."""
    text, head = document
    words = text if len(text) >= _MIN_WORDS_WITHOUT_HEAD else [*text, "", *head]
    return xxhash.xxh3_128_digest(" ".join(words).encode("utf-8", "surrogatepass"))


OTHER_CATEGORY = "Top/Labelled/Other"
"""The category of a page labelled no without a category."""


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Training labels: yes, no, and how many of them overruled the directory."""

    yes: int = 0
    no: int = 0
    overruled: int = 0


def add_labels(
    listed: SampleSet,
    labels: Iterable[Label],
    good_prefixes: Sequence[str],
    weight: float | None = None,
) -> tuple[SampleSet, LabelCounts]:
    """Merge training labels into the samples, each URL once; labels take precedence.

    A yes goes into the label's category if that is good, else into the first of
    ``good_prefixes``; a no into the label's category if that is not good, else into
    :data:`OTHER_CATEGORY`. A listed page keeps its category if the label agrees with its class.
    ``weight``, > 0, is that of a labelled sample; None keeps the listed weight, or 1. A listed page
    that was labelled spam is no sample.
    """
    labels = tuple(labels)
    spam = {normalize_url(label.url) or label.url for label in spam_labels(labels)}
    is_good_by_url = dict(zip((entry.url for entry in listed.entries), listed.good, strict=True))
    for url in spam & is_good_by_url.keys():
        del is_good_by_url[url]
    entries = {entry.url: entry for entry in listed.entries if entry.url not in spam}
    overruled = 0
    labelled: dict[str, bool] = {}
    for label in training_labels(labels):
        url, good = normalize_url(label.url) or label.url, label.verdict == "yes"
        labelled[url] = good
        old = entries.get(url)
        if old is not None and weight is not None:
            entries[url] = old = replace(old, weight=weight)
        if old is not None and is_good_by_url[url] == good and not label.category:
            continue
        overruled += old is not None and is_good_by_url[url] != good
        is_good_by_url[url] = good
        category = _category_of_label(label, good, good_prefixes)
        entries[url] = (
            replace(old, category=category)
            if old is not None
            else DirectoryEntry(category, url, label.title, weight=weight or 1.0)
        )
    counts = LabelCounts(sum(labelled.values()), len(labelled) - sum(labelled.values()), overruled)
    return replace(
        listed, entries=tuple(entries.values()), good=tuple(is_good_by_url.values())
    ), counts


def _category_of_label(label: Label, good: bool, good_prefixes: Sequence[str]) -> str:
    named = label.category.strip("/")
    fits = any(is_in_category(named, prefix) for prefix in good_prefixes) == good
    if named and fits:
        return named
    return good_prefixes[0] if good else OTHER_CATEGORY


TARGET_OTHER_SAMPLES = 300
"""The background makes up for missing other samples below this number.

With more it is left out: neighbours of the topic are more informative than the background.
"""

_BACKGROUND_PAGES = 600


def add_background(listed: SampleSet) -> SampleSet:
    """Add the background as other samples whose total weight is the missing number."""
    n_missing = TARGET_OTHER_SAMPLES - sum(not good for good in listed.good)
    if n_missing <= 0:
        return listed
    added = background_samples(_BACKGROUND_PAGES)
    weighed = tuple(replace(entry, weight=n_missing / len(added)) for entry in added)
    return replace(
        listed, entries=(*listed.entries, *weighed), good=(*listed.good, *(False for _ in weighed))
    )
