"""Random order: the baseline of Cho, Garcia-Molina, Page 1998.

The score is a hash of the URL, so that repeated links gain nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.crawl.policy import Policy
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer, PolicyInputs
from focused.text.hash_sampling import hash_fraction
from focused.web.page import Link


def policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from ``inputs.seed``."""

    def hash_order(page_context: PageContext, links: Sequence[Link]) -> list[float]:
        return [hash_fraction(link.url, inputs.seed) for link in links]

    return Policy("random", FunctionScorer(hash_order), patient=False)
