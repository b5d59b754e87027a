"""Naive best-first: a link is worth what its page is.

Menczer, Pant, Srinivasan: Topical Web Crawlers, ACM TOIT 4(4), 2004; soft
focus of Chakrabarti, van den Berg, Dom 1999. The best of several parents counts.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.policies.per_link import PerLink
from focused.policies.policy import Aids


def policy(aids: Aids) -> Policy:
    """Make the policy; the parent's relevance comes with its judgement."""
    scorer = PerLink(lambda visit, links: visit.judgement.relevance)
    return Policy("best-first", scorer)
