"""The apprentice: how relevant will a link's target be?

It gathers evidence of the target (:mod:`focused.learning.evidence`), and weighs
it (:mod:`focused.learning.weighing`) into a probability. After each judged page
the words and places of the link that led there are worth more or less (in the
spirit of Chakrabarti, Punera, Subramanyam, WWW 2002); what was scored before is
scored again when its turn comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.learning.documents import HashedPage, hashed
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
from focused.learning.tokens import url_words
from focused.learning.told_by_links import (
    ToldByLinks,
    address_words,
    anchor_words,
    told_by,
    words_of_links,
)
from focused.learning.weighing import ROOTWARD, Weighing
from focused.learning.word_worth import WordWorth
from focused.web.page import Link, Page
from focused.web.url import levels_of

_PAGE_WORDS = 400
_PAGE_CHARS = 5_000

_ANCHOR, _URL = COLUMN["anchor"], COLUMN["url"]
_OF_ANCHOR = [COLUMN["anchor_words"], COLUMN["page_words"]]

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


class Apprentice:
    """A :class:`focused.learning.protocols.LearningScorer`; one crawl's own.

    Memory: two tables of words, 8 MB each, two of places, 30 MB each when they are full, and the
    last lessons.
    """

    feature_names = FEATURE_NAMES
    takes_told = True

    def __init__(
        self,
        judge: TopicJudge,
        prior: LinkPrior | None = None,
        *,
        without: Sequence[str] = (),
        learns: bool = True,
        rootward: float = ROOTWARD,
    ) -> None:
        """``without`` names features that are given no weight, to see what they are worth.

        ``learns`` False: the prior stays as it is, what words and places were
        worth is all that the crawl teaches. ``rootward`` is in nats a level of
        the path. Raises ConfigurationError when the prior cannot be loaded.
        """
        self._judge = judge
        self.prior = prior or load_prior()
        self._weighing = Weighing(self.prior, without, learns=learns, rootward=rootward)
        self._link_words = WordWorth()
        self._page_words = WordWorth()
        self._siblings = Places()
        self._tag_paths = Places()
        self._judge_since = -math.inf

    def variant(
        self,
        *,
        prior: LinkPrior | None = None,
        without: Sequence[str] = (),
        learns: bool = True,
        rootward: float = ROOTWARD,
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
        told, at = self._told_by(visit, links)
        as_links = self._link_words.evidence(told.words_as_links)
        as_pages = self._page_words.evidence(told.words_as_pages)
        rows = self._told_by_page(visit, told, at)
        rows[:, COLUMN["context_words"]] = as_pages[told.context_places[at]]
        # Before they are held against those that were kept, which were rounded, too.
        joined = join(rounded(rows, np.float16), waiting)
        rows, trails = joined.rows, [told.trails[i] for i in at]
        rate = self._link_words.rate
        rows[:, COLUMN["url_words"]] = as_links[at]
        rows[:, COLUMN["anchor_words"]] = as_links[told.anchor_places[at]]
        rows[:, COLUMN["page_words"]] = as_pages[told.anchors[at]]
        rows[:, COLUMN["siblings"]] = self._siblings.evidence_of(place_of(visit.page.url), rate)
        for i in np.flatnonzero(~joined.leads).tolist():
            # It is asked anew when its turn comes.
            other = waiting[i]
            assert other is not None, "another link leads where none waits"
            rows[i, _OF_ANCHOR] = [other.evidence[column] for column in _OF_ANCHOR]
            parent = place_of(other.parent or "")
            rows[i, COLUMN["siblings"]] = self._siblings.evidence_of(parent, rate)
            trails[i] = other.trail
        rows[:, COLUMN["tag_path"]] = self._tag_paths.evidence(trails, rate)
        rows = rounded(rows, np.float16)
        scores, worth = self._weighing.weigh(rows, told.levels[at])
        return JoinedScores(scores, rows, worth, joined.leads, trails)

    def _told_by(self, visit: Visit, links: Sequence[Link]) -> tuple[ToldByLinks, Numbers]:
        """What the links say, and the place of each of ``links`` in it."""
        if visit.told is None:
            return told_by(self._judge, links), np.arange(len(links))
        if len(links) == len(visit.page.links):
            return visit.told, np.arange(len(links))
        places = {link.url: place for place, link in enumerate(visit.page.links)}
        return visit.told, np.array([places[link.url] for link in links], np.intp)

    def rescore(self, links: Sequence[WaitingLink]) -> Sequence[Rescored]:
        """Score queued links by what is known now."""
        if len(links) == 1:
            return [self._rescored(links[0])]
        rows = np.array([link.evidence for link in links]).reshape(-1, len(FEATURE_NAMES))
        anew = [link.found_at <= self._judge_since for link in links]
        if any(anew):
            self._judge_again(rows, links)
        words = words_of_links([link.url for link in links], [link.anchor for link in links])
        urls, anchors = words.of_texts(0, len(links)), words.of_texts(len(links), 2 * len(links))
        rate = self._link_words.rate
        parents = [place_of(link.parent or "") for link in links]
        rows[:, COLUMN["url_words"]] = self._link_words.evidence(urls)
        rows[:, COLUMN["anchor_words"]] = self._link_words.evidence(anchors)
        rows[:, COLUMN["page_words"]] = self._page_words.evidence(anchors)
        rows[:, COLUMN["siblings"]] = self._siblings.evidence(parents, rate)
        trails = [link.trail for link in links]
        rows[:, COLUMN["tag_path"]] = self._tag_paths.evidence(trails, rate)
        rows = rounded(rows, np.float16)
        scores, worth = self._weighing.weigh(rows, _levels_of(links))
        every = zip(scores.tolist(), worth.tolist(), map(tuple, rows.tolist()), strict=True)
        return [Rescored(*each) for each in every]

    def _judge_again(self, rows: Floats, links: Sequence[WaitingLink]) -> None:
        """Ask the judge in office about links that were found before it was."""
        anew = [i for i, link in enumerate(links) if link.found_at <= self._judge_since]
        asked = [links[i] for i in anew]
        texts = [*(url_words(link.url) for link in asked), *(link.anchor for link in asked)]
        verdicts = self._judge.verdicts(texts)
        rows[anew, _URL], rows[anew, _ANCHOR] = verdicts[: len(anew)], verdicts[len(anew) :]

    def _rescored(self, link: WaitingLink) -> Rescored:
        """:meth:`rescore` of one, as each link is at its turn: sooner without arrays."""
        anchor = anchor_words(link.anchor)
        rows = np.array([link.evidence])
        if link.found_at <= self._judge_since:
            self._judge_again(rows, [link])
        row = rows[0]
        rate = self._link_words.rate
        row[COLUMN["anchor_words"]] = self._link_words.evidence_of(anchor)
        row[COLUMN["url_words"]] = self._link_words.evidence_of(address_words(link.url))
        row[COLUMN["page_words"]] = self._page_words.evidence_of(anchor)
        row[COLUMN["siblings"]] = self._siblings.evidence_of(place_of(link.parent or ""), rate)
        row[COLUMN["tag_path"]] = self._tag_paths.evidence_of(link.trail, rate)
        rows = rounded(rows, np.float16)
        scores, worth = self._weighing.weigh(rows, _levels_of([link]))
        return Rescored(scores.item(), worth.item(), tuple(rows[0].tolist()))

    def judge_changed(self, at: float) -> None:
        """Another judge has its office since ``at``: what was found before is asked of it anew.

        Anchor and address are, when the link's turn comes; contexts and parents are no longer
        at hand, and stay as they were judged.
        """
        self._judge_since = at

    def lesson(
        self, link: WaitingLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> Lesson:
        """What a fetched page teaches; ``relevance`` in [0, 1] is the judge's."""
        words = words or hashed(page, most_chars=_PAGE_CHARS)
        return Lesson(
            url=link.url,
            anchor=link.anchor,
            parent=link.parent or "",
            trail=link.trail,
            evidence=tuple(link.evidence) if len(link.evidence) == len(FEATURE_NAMES) else (),
            words=words.first(_PAGE_WORDS).astype("<u4").tobytes(),
            relevance=relevance,
        )

    def learn(self, lesson: Lesson) -> None:
        """Take a lesson in."""
        relevance = lesson.relevance
        self._weighing.learn(lesson.evidence, relevance)
        self._page_words.learn(np.frombuffer(lesson.words, "<u4"), relevance)
        if not lesson.evidence:  # a seed: nobody's link led there
            return
        of_link = (*address_words(lesson.url), *anchor_words(lesson.anchor))
        self._link_words.learn(np.array(of_link, np.uint32), relevance)
        self._siblings.learn(place_of(lesson.parent), relevance)
        self._tag_paths.learn(lesson.trail, relevance)

    def state(self) -> bytes:
        """All that was learned, as plain data; see :meth:`restore`."""
        return msgspec.msgpack.encode(
            {
                **self._weighing.state(),
                "link_words": self._link_words.state(),
                "page_words": self._page_words.state(),
                "siblings": self._siblings.state(),
                "tag_paths": self._tag_paths.state(),
            }
        )

    def restore(self, state: bytes) -> None:
        """Go on where :meth:`state` was taken."""
        kept: dict[str, Any] = msgspec.msgpack.decode(state)
        self._weighing.restore(kept)
        self._link_words = WordWorth.restored(kept["link_words"])
        self._page_words = WordWorth.restored(kept["page_words"])
        self._siblings = Places.restored(kept["siblings"])
        self._tag_paths = Places.restored(kept["tag_paths"])

    def _told_by_page(self, visit: Visit, told: ToldByLinks, at: Numbers) -> Floats:
        rows = np.zeros((len(at), len(FEATURE_NAMES)))
        relevance = parent_log_odds(visit.judgement)
        rows[:, COLUMN["parent"]] = rows[:, COLUMN["parents"]] = relevance
        rows[:, COLUMN["in_links"]] = 1.0
        rows[:, COLUMN["since"]] = since_relevant(visit)
        rows[:, COLUMN["out_degree"]] = math.log1p(len(visit.page.links))
        rows[:, COLUMN["navigation"]] = told.navigation[at]
        rows[:, _ANCHOR] = told.of_anchors[at]
        rows[:, _URL] = told.of_urls[at]
        rows[:, COLUMN["context"]] = told.of_contexts[at]
        return rows


def _levels_of(links: Sequence[WaitingLink]) -> Floats:
    return np.array([levels_of(link.url) for link in links], np.float64)
