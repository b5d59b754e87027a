"""By the link's own text alone: the anchor part of Shark-search (Hersovici et al. 1998)."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.learning.calibration import expit
from focused.learning.protocols import Visit
from focused.policies.per_link import PerLink
from focused.policies.policy import Aids
from focused.web.page import Link


def policy(aids: Aids) -> Policy:
    """Make the policy from the judge's verdicts on short texts."""

    def verdicts(visit: Visit, links: Sequence[Link]) -> ArrayLike:
        return expit(aids.judge.verdicts([link.anchor for link in links]))

    return Policy("anchor", PerLink(verdicts))
