"""Naive best-first: score a link by the relevance of its page.

Menczer, Pant, Srinivasan: Topical Web Crawlers, ACM TOIT 4(4), 2004; soft focus of Chakrabarti, van
den Berg, Dom 1999. The best of several parents counts.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.orderings.base import FunctionScorer, PolicyInputs


def policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    scorer = FunctionScorer(lambda page_context, links: page_context.classification.relevance)
    return Policy("best-first", scorer)
