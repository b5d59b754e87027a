"""Pages and short texts as weighted word vectors of a fixed vocabulary.

A page's vector joins two parts, each of length one: its visible text, and
its title, headings and description (worth :data:`HEAD_WEIGHT` of the text).
Within a part a word weighs log(1 + count) times its inverse document
frequency, so that neither long pages nor repeated words drown the rest
(Rennie, Shih, Teevan, Karger 2003, "Tackling the poor assumptions of naive
Bayes text classifiers").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from focused.learning.tokens import words
from focused.web.page import Page

HEAD_WEIGHT = 0.4
MAX_WORDS = 30_000
MAX_TEXT_CHARS = 200_000
"""Text beyond this tells nothing new and costs time; measured pages are a tenth of it."""

_MAX_HEAD_CHARS = 20_000
# From this many hosts on, a word must occur on two: words of one host name it, not a topic.
_MANY_HOSTS = 10


def page_words(page: Page) -> tuple[list[str], list[str]]:
    """The words of a page's text, and those of its title, headings, description."""
    head = " \n".join((page.title, page.description, *page.headings))
    return words(page.text[:MAX_TEXT_CHARS]), words(head[:_MAX_HEAD_CHARS])


@dataclass(frozen=True, slots=True)
class DocumentVector:
    """A sparse vector of length one: ``values[k]`` for word ``ids[k]``, ascending.

    ``ids`` has shape (n,), n the number of different words known.
    """

    ids: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Vocabulary:
    """Words (each once) and their inverse document frequencies, shape (V,), > 0."""

    words: tuple[str, ...]
    idf: NDArray[np.float32]
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {word: i for i, word in enumerate(self.words)})

    def __len__(self) -> int:
        return len(self.words)

    def page_vector(self, page: Page) -> DocumentVector:
        """The page's vector; without words when it has none that are known."""
        return self.vector(*page_words(page))

    def vector(self, text: Sequence[str], head: Sequence[str]) -> DocumentVector:
        """Join a page's two lists of words into one vector."""
        joined = np.zeros(len(self))
        for part, weight in ((text, 1.0), (head, HEAD_WEIGHT)):
            ids, values = self._part(part)
            joined[ids] += weight * values
        ids = np.flatnonzero(joined)
        values = joined[ids]
        return DocumentVector(ids, values / (np.linalg.norm(values) or 1.0))

    def _part(self, part: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        counts = np.bincount(self.ids_of(part), minlength=len(self))
        ids = np.flatnonzero(counts)
        values = np.log1p(counts[ids]) * self.idf[ids]
        return ids, values / (np.linalg.norm(values) or 1.0)

    def ids_of(self, tokens: Sequence[str]) -> NDArray[np.intp]:
        """Places of the known ones among ``tokens``, repeats kept, shape (k,)."""
        places = np.fromiter(map(self.index.get, tokens, repeat(-1)), np.intp, len(tokens))
        return places[places >= 0]


def learn_vocabulary(
    documents: Sequence[tuple[Sequence[str], Sequence[str]]], hosts: Sequence[str]
) -> Vocabulary:
    """The words that occur in at least two documents (and hosts, where hosts are many).

    ``documents`` are pairs as :func:`page_words` gives, ``hosts[i]`` the host
    of document i. At most :data:`MAX_WORDS`, the most frequent.
    """
    document_count: Counter[str] = Counter()
    host_words: dict[str, set[str]] = {}
    for (text, head), host in zip(documents, hosts, strict=True):
        present = {*text, *head}
        document_count.update(present)
        host_words.setdefault(host, set()).update(present)
    kept = {word for word, count in document_count.items() if count >= 2}
    if len(host_words) >= _MANY_HOSTS:
        host_count = Counter(word for present in host_words.values() for word in present)
        kept = {word for word in kept if host_count[word] >= 2}
    # Words in nearly all documents have no idf left and are of no use.
    idf = {word: np.log(len(documents) / (1 + document_count[word])) for word in kept}
    ranked = sorted((w for w in kept if idf[w] > 0), key=lambda w: (-document_count[w], w))
    chosen = tuple(sorted(ranked[:MAX_WORDS]))
    return Vocabulary(chosen, np.array([idf[word] for word in chosen], dtype=np.float32))


def matrix(vectors: Iterable[DocumentVector], width: int) -> sp.csr_matrix:
    """Stack vectors into a CSR matrix of shape (number of vectors, ``width``)."""
    rows = list(vectors)
    if not rows:
        return sp.csr_matrix((0, width))
    ends = np.cumsum([0, *(len(row.ids) for row in rows)])
    data = np.concatenate([row.values for row in rows])
    columns = np.concatenate([row.ids for row in rows])
    return sp.csr_matrix((data, columns, ends), shape=(len(rows), width))
