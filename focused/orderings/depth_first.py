"""Last found, first fetched: a stack (Cho, Garcia-Molina, Page: WWW 1998 mention it).

Of one page's links the last comes first, and a link that is met again comes
to the top again, as if it had been pushed anew.
"""

from __future__ import annotations

from focused.crawl.policy import Policy
from focused.orderings.base import PolicyInputs, constant_scorer


def last_found_first(score: float, found_seq: int) -> float:
    """Order by the place in the order of discovery, latest first."""
    return float(found_seq)


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; needs no aid."""
    return Policy("dfs", constant_scorer(), ordering=last_found_first, patient=False)
