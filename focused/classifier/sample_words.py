"""Word counts of training documents, as one sparse matrix.

The vocabulary is known only after all documents were counted: :class:`SampleWords` collects the
counts, and :meth:`SampleWords.rows` makes vectors of them.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from focused.classifier.lead_scorer import MAX_LEAD_WORDS
from focused.text.documents import HEAD_WEIGHT, MAX_VOCABULARY_WORDS, Vocabulary
from focused.text.word_hashes import WordHashes, hash_word

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
