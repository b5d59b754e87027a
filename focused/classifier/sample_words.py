"""Word counts of training documents, kept on disk: training in bounded memory.

The vocabulary is known only after all documents were seen, so they are read twice.
:class:`SampleWords` counts each document's words and writes the counts to a temporary file (in
memory while small); :meth:`SampleWords.batches` reads them back as vectors. One number per word
stays in memory. Rare words are dropped when there are too many (Manku, Motwani 2002,
"Approximate frequency counts over data streams"); the vocabulary of frequent words is
hardly affected.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from focused.classifier.lead_scorer import MAX_LEAD_WORDS
from focused.text.documents import HEAD_WEIGHT, MAX_VOCABULARY_WORDS, Vocabulary
from focused.text.word_hashes import WordHashes, hash_word

MAX_WORDS_COUNTED = 1_000_000
"""Maximum number of distinct words in memory, about 150 bytes each."""

_BATCH_DOCUMENTS = 1_000
_IN_MEMORY_BYTES = 64_000_000
# With this many hosts a word must occur on two: words of one host characterise the host.
_MIN_HOSTS_FOR_HOST_FILTER = 10
_NO_HOST, _SEVERAL_HOSTS = -1, -2
_MAX_COUNT = np.iinfo(np.uint16).max
_MIN_IDF = 0.05  # for a kept word that nearly all documents contain


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Consecutive documents as vectors.

    ``rows`` has shape (n, V), unit vectors as :meth:`focused.text.documents.Vocabulary.vector`
    makes them. ``known_share``, shape (n,), is each document's share of words that the
    vocabulary would contain without that document.
    """

    rows: sp.csr_matrix
    known_share: NDArray[np.float64]


class SampleWords:
    """Documents of two word lists each, text and head. Close it after use.

    ``first_words`` are the hashes of each document's first words, head first.
    """

    def __init__(self, max_words_counted: int = MAX_WORDS_COUNTED) -> None:
        self._max_words = max_words_counted
        self._numbers = _WordNumbers()
        self._documents = np.zeros(1024, dtype=np.int32)
        self._own = np.zeros(1024, dtype=np.int32)
        self._host = np.full(1024, _NO_HOST, dtype=np.int32)
        self._hosts: dict[str, int] = {}
        self._size = 0
        self.first_words: list[WordHashes] = []
        self._pending: list[Counter[str]] = []
        self._pending_hosts: list[int] = []
        self._pending_own: list[bool] = []
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115  # close() is ours

    def __len__(self) -> int:
        return self._size

    def __enter__(self) -> SampleWords:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, text: Sequence[str], head: Sequence[str], host: str, *, own: bool = True) -> None:
        """Add one document's words.

        A document that is not ``own`` adds no words to the vocabulary, only counts.
        """
        self._pending += (Counter(text), Counter(head))
        self._pending_own.append(own)
        first = [*head[:MAX_LEAD_WORDS], *text[:MAX_LEAD_WORDS]][:MAX_LEAD_WORDS]
        self.first_words.append(np.array([hash_word(word) for word in first], np.uint32))
        self._pending_hosts.append(self._hosts.setdefault(host, len(self._hosts)))
        self._size += 1
        if len(self._pending_hosts) == _BATCH_DOCUMENTS:
            self._flush()

    def words(self) -> Iterator[str]:
        """Return all counted words."""
        self._flush()
        return iter(self._numbers)

    def vocabulary(self, kept_words: Collection[str] = ()) -> Vocabulary:
        """Return words of at least two documents (and hosts, if many), and ``kept_words``.

        At most :data:`focused.text.documents.MAX_VOCABULARY_WORDS`, the most frequent, plus
        ``kept_words``, which may be in no document.
        """
        self._flush()
        enough = (self._documents >= 2) & (self._own >= 1)
        if len(self._hosts) >= _MIN_HOSTS_FOR_HOST_FILTER:
            enough &= self._host == _SEVERAL_HOSTS
        # Words in nearly all documents have an idf near 0 and are useless.
        idf = np.log(max(self._size, 1) / (1.0 + self._documents))
        enough &= idf > 0
        kept = [(word, number) for word, number in self._numbers.items() if enough[number]]
        kept.sort(key=lambda one: (-self._documents[one[1]], one[0]))
        rarity = {word: float(idf[number]) for word, number in kept[:MAX_VOCABULARY_WORDS]}
        for word in kept_words:
            number = self._numbers.get(word)
            known = math.log(max(self._size, 1)) if number is None else float(idf[number])
            rarity[word] = max(known, _MIN_IDF)
        chosen = sorted(rarity)
        return Vocabulary(
            tuple(chosen), np.array([rarity[word] for word in chosen], dtype=np.float32)
        )

    def batches(self, vocabulary: Vocabulary) -> Iterator[SampleBatch]:
        """Yield all documents as vectors over ``vocabulary``."""
        self._flush()
        column = np.full(len(self._documents), -1, dtype=np.int32)
        for word, index in vocabulary.index.items():
            if (number := self._numbers.get(word)) is not None:
                column[number] = index
        sure = (column >= 0) & (self._documents > 2) & (self._own > 1)
        self._file.seek(0)
        done = 0
        while done < self._size:
            numbers, counts, lengths = (_read_array(self._file) for _ in range(3))
            done += len(lengths) // 2
            share = _known_shares(sure[numbers], counts, lengths)
            yield SampleBatch(_vectorize(column[numbers], counts, lengths, vocabulary), share)
        self._file.seek(0, io.SEEK_END)

    def _flush(self) -> None:
        """Count the pending documents and write them to the file."""
        if not self._pending:
            return
        lengths = np.fromiter(map(len, self._pending), np.int32, len(self._pending))
        total = int(lengths.sum())
        look_up = self._numbers.__getitem__
        numbers = np.fromiter(
            (number for part in self._pending for number in map(look_up, part)), np.int32, total
        )
        counts = np.fromiter((n for part in self._pending for n in part.values()), np.int64, total)
        self._update_counts(numbers, lengths, _counts_document_once(self._pending, total))
        for array in (numbers, np.minimum(counts, _MAX_COUNT).astype(np.uint16), lengths):
            np.save(self._file, array, allow_pickle=False)
        self._pending, self._pending_hosts, self._pending_own = [], [], []
        if len(self._numbers) > self._max_words:
            self._drop_rare_words()

    def _update_counts(
        self, numbers: NDArray[np.int32], lengths: NDArray[np.int32], once: NDArray[np.bool_]
    ) -> None:
        self._documents = _grow_array(self._documents, self._numbers.next, 0)
        self._own = _grow_array(self._own, self._numbers.next, 0)
        self._host = _grow_array(self._host, self._numbers.next, _NO_HOST)
        owner = np.repeat(np.arange(len(lengths)) // 2, lengths)[once]
        numbers = numbers[once]
        self._documents += np.bincount(numbers, minlength=len(self._documents)).astype(np.int32)
        own = numbers[np.array(self._pending_own)[owner]]
        self._own += np.bincount(own, minlength=len(self._own)).astype(np.int32)
        hosts = np.array(self._pending_hosts, dtype=np.int32)[owner]
        first = np.full(len(self._host), _NO_HOST, dtype=np.int32)
        first[numbers] = hosts  # one of its hosts in this batch
        several = np.zeros(len(self._host), dtype=np.bool_)
        several[numbers[hosts != first[numbers]]] = True
        met, old = first != _NO_HOST, self._host
        several |= met & (old != _NO_HOST) & (old != first)
        self._host = np.where(several, _SEVERAL_HOSTS, np.where(old == _NO_HOST, first, old))

    def _drop_rare_words(self) -> None:
        """Drop words of one document; if that is not enough, of two, and so on."""
        least = 1
        while len(self._numbers) > self._max_words // 2:
            rare = [word for word, n in self._numbers.items() if self._documents[n] <= least]
            for word in rare:
                del self._numbers[word]
            least += 1


class _WordNumbers(dict[str, int]):
    """Word numbers, assigned in order and never reused."""

    def __init__(self) -> None:
        super().__init__()
        self.next = 0

    def __missing__(self, word: str) -> int:
        number = self[word] = self.next
        self.next += 1
        return number


def _counts_document_once(parts: Sequence[Counter[str]], total: int) -> NDArray[np.bool_]:
    """False for words of a head that its text also has: they are one document."""
    texts, heads = parts[::2], parts[1::2]
    pairs = zip(texts, heads, strict=True)
    flags = (flag for text, head in pairs for flag in (*(True,) * len(text), *_not_in(head, text)))
    return np.fromiter(flags, np.bool_, total)


def _not_in(head: Counter[str], text: Counter[str]) -> Iterator[bool]:
    return (word not in text for word in head)


def _read_array(file: SpooledTemporaryFile[bytes]) -> NDArray[np.int64]:
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _grow_array(array: NDArray[np.int32], size: int, fill: int) -> NDArray[np.int32]:
    if size <= len(array):
        return array
    more = np.full(max(size, 2 * len(array)) - len(array), fill, dtype=np.int32)
    return np.concatenate([array, more])


def _known_shares(
    known: NDArray[np.bool_], counts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    owner = np.repeat(np.arange(len(lengths)) // 2, lengths)
    size = len(lengths) // 2
    found = np.bincount(owner, counts * known, minlength=size)
    return np.asarray(found / np.maximum(np.bincount(owner, counts, minlength=size), 1))


def _vectorize(
    columns: NDArray[np.int32],
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    vocabulary: Vocabulary,
) -> sp.csr_matrix:
    """Return unit rows; parts 2i and 2i + 1 are text and head of document i."""
    known = columns >= 0
    part = np.repeat(np.arange(len(lengths)), lengths)[known]
    columns = columns[known]
    values = np.log1p(counts[known].astype(np.float64)) * vocabulary.idf[columns]
    norms = np.sqrt(np.bincount(part, values**2, minlength=len(lengths)))
    values *= np.where(part % 2, HEAD_WEIGHT, 1.0) / norms[part]
    shape = (len(lengths) // 2, len(vocabulary))
    rows = sp.csr_matrix((values, (part // 2, columns)), shape=shape)  # sums text and head
    lengths_of = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / np.where(lengths_of, lengths_of, 1.0)) @ rows)
