"""Policies that need no state: breadth-first and best-first."""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.frontier import priorities
from focused.orderings.base import FunctionScorer, PolicyInputs, constant_scorer


def breadth_first(inputs: PolicyInputs) -> Policy:
    """Fetch the earliest found link first, the baseline (Najork, Wiener: WWW 2001)."""
    return Policy("bfs", constant_scorer(), ordering=priorities.breadth_first, patient=False)


def best_first(inputs: PolicyInputs) -> Policy:
    """Score a link by the relevance of its page; the best of several parents counts.

    Menczer, Pant, Srinivasan: Topical Web Crawlers, ACM TOIT 4(4), 2004; soft focus of
    Chakrabarti, van den Berg, Dom 1999.
    """
    scorer = FunctionScorer(lambda page, links: page.classification.guiding_relevance)
    return Policy("best-first", scorer)
