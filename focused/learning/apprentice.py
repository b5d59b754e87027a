"""The apprentice: how relevant will a link's target be?

It adds up its evidence (:mod:`focused.learning.evidence`) with weights that
were fitted on recorded webs (:mod:`focused.learning.link_prior`), moved by what
this crawl has taught (:mod:`focused.learning.correction`), and turns the sum
into a probability. After each judged page the words and places of the link
that led there are worth more or less (in the spirit of Chakrabarti, Punera,
Subramanyam, WWW 2002); what was scored before is scored again when its turn
comes.

While the crawl has found little, pages near their host's root come first:
from there the ways part. That is in a link's *worth*, which orders, and not in
its score, which stays a probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.learning.calibration import expit
from focused.learning.correction import Correction
from focused.learning.evidence import (
    COLUMN,
    FEATURE_NAMES,
    join,
    parent_log_odds,
    rounded,
    since_relevant,
)
from focused.learning.lesson import Lesson
from focused.learning.link_prior import LinkPrior, load_prior
from focused.learning.places import Places, place_of
from focused.learning.protocols import (
    JoinedScores,
    Rescored,
    ScoredLinks,
    TopicJudge,
    Visit,
    WaitingLink,
)
from focused.learning.tokens import url_words, words
from focused.learning.word_worth import WordWorth
from focused.web.page import Link, Page
from focused.web.url import host_of, levels_of

_ANCHOR_WORDS = 12
_URL_WORDS = 16
_CONTEXT_WORDS = 40
_PAGE_WORDS = 400
_PAGE_CHARS = 5_000

# Measured on recorded webs from seeds off topic (docs/apprentice.md).
_ROOTWARD = 0.5
_FOUND_ENOUGH = 3.0

_BY_CRAWL = [
    COLUMN[name] for name in ("anchor_words", "url_words", "page_words", "siblings", "tag_path")
]
_BY_JUDGE = [COLUMN["anchor"], COLUMN["url"]]
_MAX_LOG_ODDS = 12.0
_MAX_REMEMBERED = 40_000


class _Told(NamedTuple):
    """What the topic model says of a URL, and its words; pages repeat their links."""

    verdict: float
    words: tuple[str, ...]
    levels: int
    host: str


class Apprentice:
    """A :class:`focused.learning.protocols.LearningScorer`; one crawl's own.

    Memory: at most two tables of words, two of places and the last lessons,
    some 200 MB when all are full; a crawl of a thousand pages needs a few.
    """

    feature_names = FEATURE_NAMES

    def __init__(
        self,
        judge: TopicJudge,
        prior: LinkPrior | None = None,
        *,
        without: Sequence[str] = (),
        learns: bool = True,
        rootward: float = _ROOTWARD,
    ) -> None:
        """``without`` names features that are given no weight, to see what they are worth.

        ``learns`` False: the prior stays as it is, what words and places were
        worth is all that the crawl teaches. ``rootward`` is in nats a level of
        the path. Raises ConfigurationError when the prior cannot be loaded.
        """
        self._judge = judge
        self.prior = prior or load_prior()
        self._used = np.array([float(name not in without) for name in FEATURE_NAMES])
        self._learns = learns
        self._rootward = rootward
        used = replace(self.prior, weights=self.prior.weights * self._used)
        self._correction = Correction(used)
        self._link_words = WordWorth()
        self._page_words = WordWorth()
        self._siblings = Places()
        self._tag_paths = Places()
        self._relevance_found = 0.0
        self._urls: dict[str, _Told] = {}
        self._anchors: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._judge_since = -math.inf

    def variant(
        self,
        *,
        prior: LinkPrior | None = None,
        without: Sequence[str] = (),
        learns: bool = True,
        rootward: float = _ROOTWARD,
    ) -> Apprentice:
        """A new apprentice with the same judge and, unless told otherwise, the same prior."""
        return Apprentice(
            self._judge, prior or self.prior, without=without, learns=learns, rootward=rootward
        )

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch, as if no other page linked there."""
        joined = self.score_joined(visit, links, [None] * len(links))
        return ScoredLinks(joined.scores, joined.features)

    def score_joined(
        self, visit: Visit, links: Sequence[Link], waiting: Sequence[WaitingLink | None]
    ) -> JoinedScores:
        """Score links of one judged page together with what is known of those that wait."""
        # Before they are held against those that were kept, which were rounded, too.
        rows = rounded(self._told_by_page(visit, links), np.float16)
        joined = join(rows, waiting)
        here = place_of(visit.page.url)
        trails, by_crawl = [], []
        for link, before, leads in zip(links, waiting, joined.leads.tolist(), strict=True):
            if leads or before is None:
                trails.append(self._trail(link))
                by_crawl.append(self._told_by_crawl(link.url, link.anchor, here, trails[-1]))
            else:
                trails.append(before.trail)
                by_crawl.append(self._told_of_waiting(before))
        if links:
            rows[:, _BY_CRAWL] = by_crawl
        rows = rounded(rows, np.float16)
        log_odds = self._log_odds(rows)
        detour = self._detour(np.array([self._url(link.url).levels for link in links]))
        worth = rounded(log_odds - detour, np.float32)
        scores = rounded(expit(log_odds), np.float32)
        return JoinedScores(scores, rows, worth, joined.leads, trails)

    def rescore(self, link: WaitingLink) -> Rescored:
        """Score a queued link by what is known now."""
        row = np.array(link.evidence)
        if link.found_at <= self._judge_since:
            self._meet([link])
            row[_BY_JUDGE] = self._anchors[link.anchor][0], self._urls[link.url].verdict
        row[_BY_CRAWL] = self._told_of_waiting(link)
        row = rounded(row, np.float16)
        log_odds = self._log_odds(row[None, :])
        detour = self._detour(np.array([self._url(link.url).levels]))
        told = np.concatenate([expit(log_odds), log_odds - detour])
        score, worth = rounded(told, np.float32).tolist()
        return Rescored(score, worth, tuple(row.tolist()))

    def judge_changed(self, at: float) -> None:
        """Another judge has its office since ``at``: what was found before is asked of it anew.

        Anchor and address are, when the link's turn comes; contexts and parents are no longer
        at hand, and stay as they were judged.
        """
        self._judge_since = at
        self._urls.clear()
        self._anchors.clear()

    def lesson(self, link: WaitingLink, page: Page, relevance: float) -> Lesson:
        """What a fetched page teaches; ``relevance`` in [0, 1] is the judge's."""
        text = " ".join((page.title, *page.headings, page.text[:_PAGE_CHARS]))
        return Lesson(
            url=link.url,
            anchor=link.anchor,
            parent=link.parent or "",
            trail=link.trail,
            evidence=tuple(link.evidence) if len(link.evidence) == len(FEATURE_NAMES) else (),
            words=tuple(dict.fromkeys(words(text)[:_PAGE_WORDS])),
            relevance=relevance,
        )

    def learn(self, lesson: Lesson) -> None:
        """Take a lesson in."""
        relevance = lesson.relevance
        self._relevance_found += relevance
        self._page_words.learn(lesson.words, relevance)
        if not lesson.evidence:  # a seed: nobody's link led there
            return
        of_link = (*_anchor_words(lesson.anchor), *self._url(lesson.url).words)
        self._link_words.learn(dict.fromkeys(of_link), relevance)
        self._siblings.learn(place_of(lesson.parent), relevance)
        self._tag_paths.learn(lesson.trail, relevance)
        if self._learns:
            self._correction.learn(np.array(lesson.evidence) * self._used, relevance)

    def state(self) -> bytes:
        """All that was learned, as plain data; see :meth:`restore`."""
        return msgspec.msgpack.encode(
            {
                "relevance_found": self._relevance_found,
                "link_words": self._link_words.rows(),
                "page_words": self._page_words.rows(),
                "siblings": self._siblings.rows(),
                "tag_paths": self._tag_paths.rows(),
                "correction": self._correction.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._relevance_found = kept["relevance_found"]
        self._link_words = WordWorth.restored(kept["link_words"])
        self._page_words = WordWorth.restored(kept["page_words"])
        self._siblings = Places(kept["siblings"])
        self._tag_paths = Places(kept["tag_paths"])
        self._correction.restore(kept["correction"])

    def _log_odds(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = (self.prior.weights + self._correction.weights) * self._used
        total = self.prior.bias + self._correction.bias + rows @ weights
        return np.asarray(np.clip(total, -_MAX_LOG_ODDS, _MAX_LOG_ODDS))

    def _detour(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a link is worth less for its place in its site's tree, in nats."""
        lost = _FOUND_ENOUGH / (_FOUND_ENOUGH + self._relevance_found)
        return np.asarray(self._rootward * lost * levels, dtype=np.float64)

    def _told_by_page(self, visit: Visit, links: Sequence[Link]) -> NDArray[np.float64]:
        rows = np.zeros((len(links), len(FEATURE_NAMES)))
        if not links:
            return rows
        self._meet(links)
        relevance = parent_log_odds(visit.judgement)
        rows[:, COLUMN["parent"]] = rows[:, COLUMN["parents"]] = relevance
        rows[:, COLUMN["in_links"]] = 1.0
        rows[:, COLUMN["since"]] = since_relevant(visit)
        rows[:, COLUMN["out_degree"]] = np.log1p(len(visit.page.links))
        rows[:, COLUMN["navigation"]] = [link.navigation for link in links]
        rows[:, COLUMN["anchor"]] = [self._anchors[link.anchor][0] for link in links]
        rows[:, COLUMN["context"]] = self._judge.verdicts([link.context for link in links])
        rows[:, COLUMN["url"]] = [self._urls[link.url].verdict for link in links]
        rows[:, COLUMN["context_words"]] = [
            self._page_words.evidence(words(link.context)[:_CONTEXT_WORDS]) for link in links
        ]
        return rows

    def _told_of_waiting(self, link: WaitingLink) -> tuple[float, ...]:
        return self._told_by_crawl(link.url, link.anchor, place_of(link.parent or ""), link.trail)

    def _told_by_crawl(self, url: str, anchor: str, parent: int, trail: int) -> tuple[float, ...]:
        """The features of :data:`_BY_CRAWL`; ``parent`` is the linking page's place."""
        known = self._anchors.get(anchor)
        of_anchor = known[1] if known else _anchor_words(anchor)
        rate = self._link_words.rate
        return (
            self._link_words.evidence(of_anchor),
            self._link_words.evidence(self._url(url).words),
            self._page_words.evidence(of_anchor),
            self._siblings.evidence(parent, rate),
            self._tag_paths.evidence(trail, rate),
        )

    def _meet(self, links: Sequence[Link | WaitingLink]) -> None:
        """Ask the topic model about addresses and anchors that were not met of late."""
        if len(self._urls) + len(self._anchors) > _MAX_REMEMBERED:
            self._urls.clear()
            self._anchors.clear()
        new = [url for url in dict.fromkeys(each.url for each in links) if url not in self._urls]
        of_urls = [url_words(url) for url in new]
        anchors = dict.fromkeys(link.anchor for link in links if link.anchor not in self._anchors)
        verdicts = self._judge.verdicts([*of_urls, *anchors]).tolist()
        for url, text, verdict in zip(new, of_urls, verdicts, strict=False):
            self._urls[url] = _told(verdict, url, text)
        for anchor, verdict in zip(anchors, verdicts[len(new) :], strict=True):
            self._anchors[anchor] = (verdict, _anchor_words(anchor))

    def _trail(self, link: Link) -> int:
        """The place of a link to its host: host and path of tags, as a number."""
        return place_of(self._url(link.url).host, link.tag_path)

    def _url(self, url: str) -> _Told:
        told = self._urls.get(url)
        if told is None:
            # Its verdict is in the link's evidence already.
            told = _told(0.0, url, url_words(url))
        return told


def _told(verdict: float, url: str, text: str) -> _Told:
    return _Told(verdict, tuple(words(text)[:_URL_WORDS]), levels_of(url), host_of(url))


def _anchor_words(anchor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words(anchor)[:_ANCHOR_WORDS]))
