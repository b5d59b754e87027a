"""What a page's links say by themselves: nothing of it changes while a judge is in office.

So it may be read ahead of the page's turn, and in another process, as the page itself may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from focused.learning.places import place_of
from focused.learning.protocols import TopicJudge
from focused.learning.tokens import url_words
from focused.learning.word_hashes import Texts, Words, hashes_of
from focused.web.page import Link
from focused.web.url import host_of, levels_of

_COUNTED_WORDS = _URL_WORDS, _ANCHOR_WORDS, _CONTEXT_WORDS = 16, 12, 40

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ToldByLinks:
    """Of n links with m different anchors and k different contexts.

    ``words`` are those of n addresses, m anchors, k contexts: the first ones of each. ``anchors``
    and ``contexts``, shape (n,), are each link's place among these. ``of_urls``, ``of_anchors``
    and ``of_contexts``, shape (n,), are the topic model's verdicts in nats. ``levels``, shape (n,),
    is the depth of the paths, ``navigation`` tells which links are some; ``trails`` are the
    numbers of the links' places in the tree of tags.
    """

    words: Words
    anchors: Numbers
    contexts: Numbers
    of_urls: Floats
    of_anchors: Floats
    of_contexts: Floats
    levels: Floats
    navigation: Floats
    trails: Sequence[int]

    @property
    def words_as_links(self) -> Words:
        """Of the addresses, then of the anchors."""
        return self.words.of_texts(0, len(self.trails) + self._many_anchors)

    @property
    def words_as_pages(self) -> Words:
        """Of the anchors, then of the contexts."""
        return self.words.of_texts(len(self.trails), len(self.words.lengths))

    @property
    def anchor_places(self) -> Numbers:
        """Each link's anchor's place among :attr:`words_as_links`."""
        return self.anchors + len(self.trails)

    @property
    def context_places(self) -> Numbers:
        """Each link's context's place among :attr:`words_as_pages`."""
        return self.contexts + self._many_anchors

    @property
    def _many_anchors(self) -> int:
        return int(self.anchors.max(initial=-1)) + 1


def told_by(judge: TopicJudge, links: Sequence[Link]) -> ToldByLinks:
    """Read links, and ask the topic model about their texts."""
    # A page repeats its anchors and contexts: menus, list items.
    different_anchors, anchors = _numbered(link.anchor for link in links)
    different_contexts, contexts = _numbered(link.context for link in links)
    urls = [link.url for link in links]
    texts = _texts(urls, different_anchors, different_contexts)
    verdicts = judge.verdicts(texts)
    till_anchors = len(urls) + len(different_anchors)
    return ToldByLinks(
        words=_first_words(texts, len(urls), len(different_anchors), len(different_contexts)),
        anchors=anchors,
        contexts=contexts,
        of_urls=verdicts[: len(urls)],
        of_anchors=verdicts[len(urls) : till_anchors][anchors],
        of_contexts=verdicts[till_anchors:][contexts],
        levels=np.array([levels_of(url) for url in urls], np.float64),
        navigation=np.array([link.navigation for link in links], np.float64),
        trails=[place_of(host_of(link.url), link.tag_path) for link in links],
    )


def words_of_links(urls: Sequence[str], anchors: Sequence[str]) -> Words:
    """The words of addresses, then of anchors, as they count."""
    return _first_words(_texts(urls, anchors), len(urls), len(anchors))


def address_words(url: str) -> list[int]:
    """The hashes of an address's words, as they count."""
    return hashes_of(url_words(url))[:_URL_WORDS]


def anchor_words(anchor: str) -> list[int]:
    """The hashes of an anchor's words, as they count."""
    return hashes_of(anchor)[:_ANCHOR_WORDS]


def _texts(urls: Sequence[str], *others: Sequence[str]) -> Texts:
    return Texts([*map(url_words, urls), *chain.from_iterable(others)])


def _first_words(texts: Texts, *many: int) -> Words:
    """Those that count of so ``many`` addresses, anchors, contexts."""
    return texts.words.at_most(np.repeat(_COUNTED_WORDS[: len(many)], many))


def _numbered(texts: Iterable[str]) -> tuple[Sequence[str], Numbers]:
    """The different texts, and each one's place among them."""
    places: dict[str, int] = {}
    numbers = [places.setdefault(text, len(places)) for text in texts]
    return list(places), np.array(numbers, np.intp)
