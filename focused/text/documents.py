"""Pages and short texts as weighted word vectors of a fixed vocabulary.

A page's vector joins two parts, each of length one: its visible text, and
its title, headings and description (worth :data:`HEAD_WEIGHT` of the text).
Within a part a word weighs log(1 + count) times its inverse document
frequency, so that neither long pages nor repeated words drown the rest
(Rennie, Shih, Teevan, Karger 2003, "Tackling the poor assumptions of naive
Bayes text classifiers").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from focused.text.tokens import tokenize
from focused.text.word_hashes import HashIndex, WordHashes, hash_texts
from focused.web.page import Page

HEAD_WEIGHT = 0.4
MAX_VOCABULARY_WORDS = 30_000
MAX_TEXT_CHARS = 200_000
"""Text beyond this tells nothing new and costs time; measured pages are a tenth of it."""

_MAX_HEAD_CHARS = 20_000


def page_words(page: Page) -> tuple[list[str], list[str]]:
    """The words of a page's text, and those of its title, headings, description."""
    return tokenize(page.text[:MAX_TEXT_CHARS]), tokenize(_head_text(page))


class HashedPage(NamedTuple):
    """:func:`page_words` as hashes: of the text, and of title, headings, description."""

    text: WordHashes
    head: WordHashes

    def first(self, most: int) -> WordHashes:
        """The first words of the page: of its head, then of its text."""
        return np.concatenate((self.head[:most], self.text[: max(0, most - len(self.head))]))


def hash_page(page: Page, *, most_chars: int = MAX_TEXT_CHARS) -> HashedPage:
    """The words of a page; of its text those of the first ``most_chars``."""
    tokenize = hash_texts((page.text[:most_chars], _head_text(page)))
    of_text = int(tokenize.lengths[0])
    return HashedPage(tokenize.hashes[:of_text], tokenize.hashes[of_text:])


def _head_text(page: Page) -> str:
    head = " \n".join((page.title, page.description, *page.headings))
    return head[:_MAX_HEAD_CHARS]


@dataclass(frozen=True, slots=True)
class DocumentVector:
    """A sparse vector of length one: ``values[k]`` for word ``ids[k]``, ascending.

    ``ids`` has shape (n,), n the number of different words known.
    ``known_share`` in [0, 1] is the known words' share of all, repeats counted.
    """

    ids: NDArray[np.intp]
    values: NDArray[np.float64]
    known_share: float = 1.0


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

    @cached_property
    def _hash_index(self) -> HashIndex:
        return HashIndex(hash_texts(self.words).hashes)

    def vectorize_page(self, page: HashedPage) -> DocumentVector:
        """The page's vector; without words when it has none that are known."""
        of_text, of_head = self.indices_of_hashes(page.text), self.indices_of_hashes(page.head)
        many = len(of_text) + len(of_head)
        return self._combine(of_text[of_text >= 0], of_head[of_head >= 0], many)

    def indices_of_hashes(self, hashes: WordHashes) -> NDArray[np.intp]:
        """Places of words by their hashes, -1 for unknown ones, shape (n,)."""
        return self._hash_index.places(hashes).astype(np.intp)

    def vector(self, text: Sequence[str], head: Sequence[str]) -> DocumentVector:
        """Join a page's two lists of words into one vector."""
        return self._combine(
            self.indices_of_words(text), self.indices_of_words(head), len(text) + len(head)
        )

    def _combine(
        self, of_text: NDArray[np.intp], of_head: NDArray[np.intp], many: int
    ) -> DocumentVector:
        """``many`` is the number of all words, known or not."""
        share = (len(of_text) + len(of_head)) / max(many, 1)
        ids, values = self._tf_idf(of_text)
        head_ids, head_values = self._tf_idf(of_head)
        joined = _unique_counts(np.concatenate((ids, head_ids)))[0]
        sums = np.zeros(len(joined))
        sums[joined.searchsorted(ids)] = values
        sums[joined.searchsorted(head_ids)] += HEAD_WEIGHT * head_values
        return DocumentVector(joined, _normalise(sums), share)

    def _tf_idf(self, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        # Arrays as long as the page's own words: most of the vocabulary's are none of them.
        ids, counts = _unique_counts(places)
        return ids, _normalise(np.log1p(counts) * self.idf[ids])

    def indices_of_words(self, tokens: Sequence[str]) -> NDArray[np.intp]:
        """Places of the known ones among ``tokens``, repeats kept, shape (k,)."""
        places = np.fromiter(map(self.index.get, tokens, repeat(-1)), np.intp, len(tokens))
        return places[places >= 0]


def _unique_counts(places: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The different ones of ``places``, ascending, and how often each is there.

    Sorts ``places`` itself.
    """
    if not len(places):
        return places, places
    places.sort()
    ends = np.append(np.flatnonzero(places[1:] != places[:-1]) + 1, len(places))
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    return places[ends - 1], counts


def _normalise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values / (math.sqrt(values @ values) or 1.0)
