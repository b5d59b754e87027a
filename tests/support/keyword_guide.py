"""A judge and a scorer that anyone can check by eye: how much a text speaks of whales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from focused.learning.apprentice import Apprentice
from focused.learning.protocols import ScoredLinks, Visit
from focused.scrapy_addon.session import Guide
from focused.topic import Topic
from focused.web.page import Judgement, Link, Page


class WhaleJudge:
    threshold = 0.5

    def judge(self, page: Page) -> Judgement:
        relevance = 0.9 if "whale" in f"{page.title} {page.text}".lower() else 0.1
        return Judgement(relevance, relevance >= self.threshold)

    def verdicts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([2.0 if "whale" in text.lower() else 0.0 for text in texts])


class WhaleScorer:
    feature_names = ("anchor", "parent")

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        anchor = np.array(["whale" in f"{link.anchor} {link.url}" for link in links], dtype=float)
        parent = np.full(len(links), visit.judgement.relevance)
        return ScoredLinks(0.6 * anchor + 0.3 * parent, np.column_stack([anchor, parent]))


def guide(topic: Topic) -> Guide:
    return Guide(WhaleJudge(), WhaleScorer(), frozenset({"http://a.test/trained"}))


def learning_guide(topic: Topic) -> Guide:
    return Guide(WhaleJudge(), Apprentice(WhaleJudge()), frozenset({"http://a.test/trained"}))
