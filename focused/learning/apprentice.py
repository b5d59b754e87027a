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
from collections.abc import Container, Iterable, Sequence
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

_ANCHOR, _URL = COLUMN["anchor"], COLUMN["url"]
_MAX_LOG_ODDS = 12.0
_MAX_REMEMBERED = 40_000

Floats = NDArray[np.float64]


class _Known(NamedTuple):
    """What the topic model says of a text, and its words; pages repeat their texts."""

    verdict: float
    words: tuple[str, ...]


class _Address(NamedTuple):
    """What a URL says by itself: the topic model's verdict on its words, those, its place."""

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
        self._urls: dict[str, _Address] = {}
        self._anchors: dict[str, _Known] = {}
        self._contexts: dict[str, _Known] = {}
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
        before = [None if told is None else told.anchor for told in waiting]
        self._meet(links, [anchor for anchor in before if anchor is not None])
        rows = rounded(self._told_by_page(visit, links), np.float16)
        joined = join(rows, waiting)
        here = place_of(visit.page.url)
        anchors, parents, trails = [], [], []
        for link, other, leads in zip(links, waiting, joined.leads.tolist(), strict=True):
            if leads or other is None:
                anchors.append(link.anchor)
                parents.append(here)
                trails.append(place_of(self._urls[link.url].host, link.tag_path))
            else:
                anchors.append(other.anchor)
                parents.append(place_of(other.parent or ""))
                trails.append(other.trail)
        addresses = [self._urls[link.url] for link in links]
        self._tell_by_crawl(rows, addresses, anchors, parents, trails)
        rows = rounded(rows, np.float16)
        scores, worth = self._weighed(rows, addresses)
        return JoinedScores(scores, rows, worth, joined.leads, trails)

    def rescore(self, links: Sequence[WaitingLink]) -> Sequence[Rescored]:
        """Score queued links by what is known now."""
        if len(links) == 1:
            return [self._rescored(links[0])]
        self._meet(links)
        rows = np.array([link.evidence for link in links]).reshape(-1, len(FEATURE_NAMES))
        addresses = [self._urls[link.url] for link in links]
        for i, link in enumerate(links):
            if link.found_at <= self._judge_since:
                rows[i, _ANCHOR] = self._anchors[link.anchor].verdict
                rows[i, _URL] = addresses[i].verdict
        self._tell_by_crawl(
            rows,
            addresses,
            [link.anchor for link in links],
            [place_of(link.parent or "") for link in links],
            [link.trail for link in links],
        )
        rows = rounded(rows, np.float16)
        scores, worth = self._weighed(rows, addresses)
        told = zip(scores.tolist(), worth.tolist(), map(tuple, rows.tolist()), strict=True)
        return [Rescored(*each) for each in told]

    def _rescored(self, link: WaitingLink) -> Rescored:
        """:meth:`rescore` of one, as each link is at its turn: sooner without arrays."""
        self._meet([link])
        anchor, address = self._anchors[link.anchor], self._urls[link.url]
        row = list(link.evidence)
        if link.found_at <= self._judge_since:
            row[_ANCHOR], row[_URL] = anchor.verdict, address.verdict
        rate = self._link_words.rate
        row[COLUMN["anchor_words"]] = self._link_words.evidence_of(anchor.words)
        row[COLUMN["url_words"]] = self._link_words.evidence_of(address.words)
        row[COLUMN["page_words"]] = self._page_words.evidence_of(anchor.words)
        row[COLUMN["siblings"]] = self._siblings.evidence_of(place_of(link.parent or ""), rate)
        row[COLUMN["tag_path"]] = self._tag_paths.evidence_of(link.trail, rate)
        rows = rounded(np.array([row]), np.float16)
        scores, worth = self._weighed(rows, [address])
        return Rescored(scores.item(), worth.item(), tuple(rows[0].tolist()))

    def judge_changed(self, at: float) -> None:
        """Another judge has its office since ``at``: what was found before is asked of it anew.

        Anchor and address are, when the link's turn comes; contexts and parents are no longer
        at hand, and stay as they were judged.
        """
        self._judge_since = at
        self._forget()

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
        met = self._anchors.get(lesson.anchor), self._urls.get(lesson.url)
        of_anchor = _anchor_words(lesson.anchor) if met[0] is None else met[0].words
        of_url = _url_words(url_words(lesson.url)) if met[1] is None else met[1].words
        of_link = (*of_anchor, *of_url)
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
                "link_words": self._link_words.state(),
                "page_words": self._page_words.state(),
                "siblings": self._siblings.state(),
                "tag_paths": self._tag_paths.state(),
                "correction": self._correction.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._relevance_found = kept["relevance_found"]
        self._link_words = WordWorth.restored(kept["link_words"])
        self._page_words = WordWorth.restored(kept["page_words"])
        self._siblings = Places.restored(kept["siblings"])
        self._tag_paths = Places.restored(kept["tag_paths"])
        self._correction.restore(kept["correction"])

    def _weighed(self, rows: Floats, addresses: Sequence[_Address]) -> tuple[Floats, Floats]:
        """Scores and worths of rows of evidence, as they are kept, each of shape (n,)."""
        weights = (self.prior.weights + self._correction.weights) * self._used
        log_odds = self.prior.bias + self._correction.bias + rows @ weights
        log_odds = np.minimum(np.maximum(log_odds, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        # What a link is worth less for its place in its site's tree, in nats.
        lost = _FOUND_ENOUGH / (_FOUND_ENOUGH + self._relevance_found)
        detour = self._rootward * lost * np.array([each.levels for each in addresses])
        return rounded(expit(log_odds), np.float32), rounded(log_odds - detour, np.float32)

    def _told_by_page(self, visit: Visit, links: Sequence[Link]) -> Floats:
        rows = np.zeros((len(links), len(FEATURE_NAMES)))
        if not links:
            return rows
        relevance = parent_log_odds(visit.judgement)
        rows[:, COLUMN["parent"]] = rows[:, COLUMN["parents"]] = relevance
        rows[:, COLUMN["in_links"]] = 1.0
        rows[:, COLUMN["since"]] = since_relevant(visit)
        rows[:, COLUMN["out_degree"]] = math.log1p(len(visit.page.links))
        rows[:, COLUMN["navigation"]] = [link.navigation for link in links]
        rows[:, _ANCHOR] = [self._anchors[link.anchor].verdict for link in links]
        rows[:, _URL] = [self._urls[link.url].verdict for link in links]
        # A page repeats its contexts: menus, list items.
        contexts = {link.context: self._contexts[link.context] for link in links}
        place = dict(zip(contexts, range(len(contexts)), strict=True))
        of_words = self._page_words.evidence([each.words for each in contexts.values()])
        of_texts = np.array([each.verdict for each in contexts.values()])
        places = [place[link.context] for link in links]
        rows[:, COLUMN["context"]] = of_texts[places]
        rows[:, COLUMN["context_words"]] = of_words[places]
        return rows

    def _tell_by_crawl(
        self,
        rows: Floats,
        addresses: Sequence[_Address],
        anchors: Sequence[str],
        parents: Sequence[int],
        trails: Sequence[int],
    ) -> None:
        """Write the features that the crawl tells; ``parents`` are the linking pages' places."""
        of_anchors = [self._anchors[anchor].words for anchor in anchors]
        of_link = self._link_words.evidence([*of_anchors, *(each.words for each in addresses)])
        rows[:, COLUMN["anchor_words"]] = of_link[: len(rows)]
        rows[:, COLUMN["url_words"]] = of_link[len(rows) :]
        rows[:, COLUMN["page_words"]] = self._page_words.evidence(of_anchors)
        rate = self._link_words.rate
        rows[:, COLUMN["siblings"]] = self._siblings.evidence(parents, rate)
        rows[:, COLUMN["tag_path"]] = self._tag_paths.evidence(trails, rate)

    def _meet(self, links: Sequence[Link | WaitingLink], others: Sequence[str] = ()) -> None:
        """Ask the topic model about addresses and texts that were not met of late.

        ``others`` are further anchors.
        """
        if len(self._urls) + len(self._anchors) + len(self._contexts) > _MAX_REMEMBERED:
            self._forget()
        urls = _new((link.url for link in links), self._urls)
        anchors = _new((*(link.anchor for link in links), *others), self._anchors)
        seen = (link.context for link in links if isinstance(link, Link))
        contexts = _new(seen, self._contexts)
        if not (urls or anchors or contexts):
            return
        of_urls = [url_words(url) for url in urls]
        verdicts = iter(self._judge.verdicts([*of_urls, *anchors, *contexts]).tolist())
        for url, text in zip(urls, of_urls, strict=True):
            of_url = _url_words(text)
            self._urls[url] = _Address(next(verdicts), of_url, levels_of(url), host_of(url))
        for anchor in anchors:
            self._anchors[anchor] = _Known(next(verdicts), _anchor_words(anchor))
        for context in contexts:
            of_context = tuple(words(context)[:_CONTEXT_WORDS])
            self._contexts[context] = _Known(next(verdicts), of_context)

    def _forget(self) -> None:
        self._urls.clear()
        self._anchors.clear()
        self._contexts.clear()


def _new(texts: Iterable[str], known: Container[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text not in known]


def _url_words(text: str) -> tuple[str, ...]:
    return tuple(words(text)[:_URL_WORDS])


def _anchor_words(anchor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words(anchor)[:_ANCHOR_WORDS]))
