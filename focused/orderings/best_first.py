"""Naive best-first: a link is worth what its page is.

Menczer, Pant, Srinivasan: Topical Web Crawlers, ACM TOIT 4(4), 2004; soft
focus of Chakrabarti, van den Berg, Dom 1999. The best of several parents counts.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.orderings.base import FunctionScorer, PolicyInputs


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; the parent's relevance comes with its classification."""
    scorer = FunctionScorer(lambda visit, links: visit.classification.relevance)
    return Policy("best-first", scorer)
