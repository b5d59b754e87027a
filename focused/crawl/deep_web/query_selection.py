"""Select queries for a search form by the new relevant pages that they are expected to bring.

A greedy selection after Ntoulas, Zerfos and Cho (2005), "Downloading textual hidden web content
through keyword queries": words of the pages found so far are candidates, and the word with the
largest expected number of new relevant pages is next. The expectation is learned: words are grouped
by how many found pages have them (a group per power of two), the yield of a group is the discounted
mean of its queries, and an upper confidence bound lets groups be tried. Within a group words of
relevant pages come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MAX_CANDIDATES = 4_000
MIN_WORD_CHARS = 3

_DISCOUNT = 0.9
_BONUS = 0.5


@dataclass(slots=True)
class _Word:
    """A word of the pages found: how many have it, and the sum of their relevance."""

    pages: int = 0
    relevance: float = 0.0


@dataclass(slots=True)
class _Group:
    """The queries of words with about as many pages; weights and yields are discounted."""

    weight: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class QuerySelector:
    """Proposes one-word queries; deterministic.

    ``keywords`` are the first queries. The fields are its state, plain data.
    """

    keywords: Sequence[str] = ()
    asked: dict[str, float] = field(default_factory=dict)
    """New relevance that each query brought, in the order asked."""
    words: dict[str, _Word] = field(default_factory=dict)
    groups: dict[int, _Group] = field(default_factory=dict)
    group_of: dict[str, int] = field(default_factory=dict)

    def observe(self, words: Iterable[str], relevance: float) -> None:
        """Learn the words of a page that a query found; ``relevance`` in [0, 1]."""
        for word in set(words):
            if len(word) < MIN_WORD_CHARS or not word.isalpha():
                continue
            known = self.words.get(word)
            if known is None:
                known = self.words[word] = _Word()
            known.pages += 1
            known.relevance += relevance
        if len(self.words) > MAX_CANDIDATES:
            self._forget_rare_words()

    def next_query(self) -> str | None:
        """Return the next query and count it as asked; None without candidates."""
        query = next((each for each in self.keywords if each not in self.asked), None)
        if query is None:
            query = self._best_word()
        if query is None:
            return None
        known = self.words.get(query)
        group = _group_number(known.pages) if known is not None else 0
        for each in self.groups.values():
            each.weight *= _DISCOUNT
            each.total *= _DISCOUNT
        self.groups.setdefault(group, _Group()).weight += 1.0
        self.group_of[query] = group
        self.asked[query] = 0.0
        return query

    def credit(self, query: str, relevance: float) -> None:
        """Record a new page that a query found, by its relevance in [0, 1]."""
        if query in self.asked:
            self.asked[query] += relevance
            self.groups[self.group_of[query]].total += relevance

    def last_yields(self, count: int) -> Sequence[float]:
        """Return the new relevance of the last ``count`` queries, or of fewer."""
        return list(self.asked.values())[-count:]

    def _best_word(self) -> str | None:
        expected = self._expected_yields()
        mean = self._mean_relevance()
        best, best_value = None, (-math.inf, -math.inf, "")
        for word, known in self.words.items():
            if word in self.asked:
                continue
            share = (known.relevance + mean) / (known.pages + 1.0)
            value = (expected[_group_number(known.pages)] * share, known.relevance, word)
            if value > best_value:
                best, best_value = word, value
        return best

    def _expected_yields(self) -> dict[int, float]:
        """Return the expected yield of each group of words, with its confidence bonus."""
        numbers = {_group_number(each.pages) for each in self.words.values()}
        asked = sum(each.weight for each in self.groups.values()) + 1.0
        mean = sum(each.total for each in self.groups.values()) / asked
        expected = {}
        for number in numbers:
            group = self.groups.get(number) or _Group()
            value = (group.total + mean) / (group.weight + 1.0)
            bonus = (
                _BONUS * max(mean, 1.0) * math.sqrt(math.log(asked + 1.0) / (group.weight + 1.0))
            )
            expected[number] = value + bonus
        return expected

    def _mean_relevance(self) -> float:
        pages = sum(each.pages for each in self.words.values())
        return sum(each.relevance for each in self.words.values()) / pages if pages else 0.5

    def _forget_rare_words(self) -> None:
        order = sorted(self.words, key=lambda word: (-self.words[word].relevance, word))
        self.words = {word: self.words[word] for word in order[: MAX_CANDIDATES // 2]}


def _group_number(pages: int) -> int:
    return max(1, pages).bit_length()
