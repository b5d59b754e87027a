"""Pages as weighted word vectors over a fixed vocabulary.

A vector is the sum of two unit vectors: the visible text, and the head (title, headings,
description) weighted by :data:`HEAD_WEIGHT`. Within a part a word weighs log(1 + count)
times its inverse document frequency (Rennie, Shih, Teevan, Karger 2003, "Tackling the poor
assumptions of naive Bayes text classifiers").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from focused.kernels.word_vectors import unit_vector
from focused.text.tokens import tokenize
from focused.text.word_hashes import HashIndex, WordHashes, hash_texts
from focused.web.page import Page

HEAD_WEIGHT = 0.4
MAX_VOCABULARY_WORDS = 30_000
MAX_TEXT_CHARS = 200_000
"""Text beyond this limit is ignored; typical pages have a tenth of it."""

_MAX_HEAD_CHARS = 20_000


def page_words(page: Page) -> tuple[list[str], list[str]]:
    """Return the words of a page's text, and of its title, headings and description."""
    return tokenize(page.text[:MAX_TEXT_CHARS]), tokenize(_head_text(page))


class HashedPage(NamedTuple):
    """The word hashes of a page: its text; its title, headings and description."""

    text: WordHashes
    head: WordHashes

    def first(self, most: int) -> WordHashes:
        """Return the first ``most`` hashes of the page: head first, then text."""
        return np.concatenate((self.head[:most], self.text[: max(0, most - len(self.head))]))


def hash_page(page: Page) -> HashedPage:
    """Hash the words of a page, of the first :data:`MAX_TEXT_CHARS` characters of its text."""
    hashed = hash_texts((page.text[:MAX_TEXT_CHARS], _head_text(page)))
    text_words = hashed.lengths[0]
    return HashedPage(hashed.hashes[:text_words], hashed.hashes[text_words:])


def _head_text(page: Page) -> str:
    head = " \n".join((page.title, page.description, *page.headings))
    return head[:_MAX_HEAD_CHARS]


@dataclass(frozen=True, slots=True)
class DocumentVector:
    """A sparse unit vector: ``values[k]`` for word ``ids[k]``, ascending.

    ``ids`` has shape (n,), n distinct known words. ``known_share`` in [0, 1] is the known
    words' share of all words, with repeats.
    """

    ids: NDArray[np.intp]
    values: NDArray[np.float64]
    known_share: float = 1.0


@dataclass(frozen=True)
class Vocabulary:
    """Distinct words and their inverse document frequencies, shape (V,), > 0."""

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

    @cached_property
    def _packed_idf(self) -> bytes:
        return self.idf.astype(np.float32).tobytes()

    def vectorize_page(self, page: HashedPage) -> DocumentVector:
        """Return the page's vector; it is empty if no word is known."""
        text, head = (self._hash_index.find_sorted(part) for part in page)
        ids, values, known = unit_vector(text, head, self._packed_idf, HEAD_WEIGHT)
        share = known / max(len(page.text) + len(page.head), 1)
        return DocumentVector(np.frombuffer(ids, np.intp), np.frombuffer(values), share)

    def find_hashes(self, hashes: WordHashes) -> bytes:
        """Return the index of each hash, -1 if unknown, in 32 bits each."""
        return self._hash_index.find(hashes).tobytes()
