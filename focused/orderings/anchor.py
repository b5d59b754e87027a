"""Score links by their anchor text alone: the anchor part of Shark-search (Hersovici et al.
1998).
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from focused.classifier.calibration import expit
from focused.crawl.policy import Policy
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer, PolicyInputs
from focused.web.page import Link


def policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from the classifier's scores of short texts."""

    def verdicts(page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        return expit(inputs.classifier.score_texts([link.anchor for link in links]))

    return Policy("anchor", FunctionScorer(verdicts))
