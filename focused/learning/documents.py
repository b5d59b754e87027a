"""Pages and short texts as weighted word vectors of a fixed vocabulary.

A page's vector joins two parts, each of length one: its visible text, and
its title, headings and description (worth :data:`HEAD_WEIGHT` of the text).
Within a part a word weighs log(1 + count) times its inverse document
frequency, so that neither long pages nor repeated words drown the rest
(Rennie, Shih, Teevan, Karger 2003, "Tackling the poor assumptions of naive
Bayes text classifiers").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from focused.learning.tokens import words
from focused.web.page import Page

HEAD_WEIGHT = 0.4
MAX_WORDS = 30_000
MAX_TEXT_CHARS = 200_000
"""Text beyond this tells nothing new and costs time; measured pages are a tenth of it."""

_MAX_HEAD_CHARS = 20_000


def page_words(page: Page) -> tuple[list[str], list[str]]:
    """The words of a page's text, and those of its title, headings, description."""
    head = " \n".join((page.title, page.description, *page.headings))
    return words(page.text[:MAX_TEXT_CHARS]), words(head[:_MAX_HEAD_CHARS])


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

    def page_vector(self, page: Page) -> DocumentVector:
        """The page's vector; without words when it has none that are known."""
        return self.vector(*page_words(page))

    def vector(self, text: Sequence[str], head: Sequence[str]) -> DocumentVector:
        """Join a page's two lists of words into one vector."""
        joined = np.zeros(len(self))
        known = 0
        for part, weight in ((text, 1.0), (head, HEAD_WEIGHT)):
            places = self.ids_of(part)
            known += len(places)
            ids, values = self._weighed(places)
            joined[ids] += weight * values
        ids = np.flatnonzero(joined)
        values = joined[ids]
        share = known / max(len(text) + len(head), 1)
        return DocumentVector(ids, values / (np.linalg.norm(values) or 1.0), share)

    def _weighed(self, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        counts = np.bincount(places, minlength=len(self))
        ids = np.flatnonzero(counts)
        values = np.log1p(counts[ids]) * self.idf[ids]
        return ids, values / (np.linalg.norm(values) or 1.0)

    def ids_of(self, tokens: Sequence[str]) -> NDArray[np.intp]:
        """Places of the known ones among ``tokens``, repeats kept, shape (k,)."""
        places = np.fromiter(map(self.index.get, tokens, repeat(-1)), np.intp, len(tokens))
        return places[places >= 0]
