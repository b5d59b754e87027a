"""Any link of the frontier, each as likely: the random baseline of Cho, Garcia-Molina, Page 1998.

A URL's lot is a hash of it, so that being linked to often helps no link.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.crawl.policy import Policy
from focused.learning.protocols import Visit
from focused.lots import lot
from focused.policies.per_link import PerLink
from focused.policies.policy import Aids
from focused.web.page import Link


def policy(aids: Aids) -> Policy:
    """Make the policy from ``aids.seed``."""

    def lots(visit: Visit, links: Sequence[Link]) -> list[float]:
        return [lot(link.url, aids.seed) for link in links]

    return Policy("random", PerLink(lots), patient=False)
