"""Policies that need no state: depth-first, random, by anchor text."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from focused.classifier.calibration import expit
from focused.crawl.policy import Policy
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs, constant_scorer
from focused.text import hash_fraction
from focused.web.page import Link


def last_found_first(score: float, found_seq: int) -> float:
    """Order by discovery, latest first."""
    return float(found_seq)


def depth_first(inputs: PolicyInputs) -> Policy:
    """Use the frontier as a stack (Cho, Garcia-Molina, Page: WWW 1998 mention it).

    Of one page's links the last comes first; a link that is met again returns to the top.
    """
    return Policy("dfs", constant_scorer(), ordering=last_found_first, patient=False)


def random_order(inputs: PolicyInputs) -> Policy:
    """Fetch in random order, the baseline of Cho, Garcia-Molina, Page 1998.

    The score is a hash of URL and ``inputs.seed``, so that repeated links gain nothing.
    """

    def hash_order(page_context: PageContext, links: Sequence[Link]) -> list[float]:
        return [hash_fraction(link.url, inputs.seed) for link in links]

    return Policy("random", FunctionScorer(hash_order), patient=False)


def anchor(inputs: PolicyInputs) -> Policy:
    """Score a link by its anchor text, as part of Shark-search does (Hersovici et al. 1998)."""

    def anchor_scores(page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        return expit(inputs.classifier.score_texts([link.anchor for link in links]))

    return Policy("anchor", FunctionScorer(anchor_scores))
