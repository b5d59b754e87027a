"""What the words of links have been worth so far in this crawl.

A followed link's words, those of its anchor and its address, share in the
relevance of the page it led to; so the words of host, directory and subject
tell soon where the topic is, whatever the topic model was taught. Only judged
relevance comes in here, never a label.
"""

from __future__ import annotations

import math

from focused.learning.tokens import url_words, words

MAX_WORDS = 200_000
"""Words remembered, some 150 bytes each; beyond it those met once are forgotten."""

MAX_WORDS_NATS = 6.0

_ANCHOR_WORDS = 12
_URL_WORDS = 16
# A word is taken for one of the crawl's mean until it has led to as much relevance as this
# against it. Counted in relevance, not in links: where hardly a page is on topic, the small
# relevances of a few links are noise.
_MEAN_RELEVANCE = 2.0
_SHARE_EDGE = 1e-4


class LinkWords:
    """Counts links and the sum of their targets' relevance, by word."""

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self._max_words = max_words
        self._links: dict[str, int] = {}
        self._relevance: dict[str, float] = {}
        self._all_links = 0
        self._all_relevance = 0.0

    def __len__(self) -> int:
        return len(self._links)

    def learn(self, url: str, anchor: str, relevance: float) -> None:
        """A link led to a page that was judged; ``relevance`` in [0, 1]."""
        for word in _words_of(url, anchor):
            self._links[word] = self._links.get(word, 0) + 1
            self._relevance[word] = self._relevance.get(word, 0.0) + relevance
        self._all_links += 1
        self._all_relevance += relevance
        if len(self._links) > self._max_words:
            self._forget()

    def evidence(self, url: str, anchor: str) -> float:
        """How much the link's words speak for its target, in nats within ±6; 0: unknown words.

        The sum over known words of their share's log-odds less the crawl's,
        over the root of their number: words of one link repeat each other.
        """
        mean = (self._all_relevance + 0.5) / (self._all_links + 1.0)
        log_odds = math.log(mean / (1.0 - mean))
        total, known = 0.0, 0
        for word in _words_of(url, anchor):
            links = self._links.get(word)
            if links is None:
                continue
            share = (self._relevance[word] + _MEAN_RELEVANCE) / (links + _MEAN_RELEVANCE / mean)
            share = min(max(share, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
            total += math.log(share / (1.0 - share)) - log_odds
            known += 1
        if not known:
            return 0.0
        return max(-MAX_WORDS_NATS, min(MAX_WORDS_NATS, total / math.sqrt(known)))

    def _forget(self) -> None:
        """Make room: words met once go, and when that is too little, the longest known stay."""
        kept = [word for word, links in self._links.items() if links > 1][: self._max_words // 2]
        self._links = {word: self._links[word] for word in kept}
        self._relevance = {word: self._relevance[word] for word in kept}


def _words_of(url: str, anchor: str) -> dict[str, None]:
    """The first words of anchor and address, each once, in an order that is always the same."""
    return dict.fromkeys(words(anchor)[:_ANCHOR_WORDS] + words(url_words(url))[:_URL_WORDS])
