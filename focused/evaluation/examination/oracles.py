"""The oracles: policies that see what no crawl does, to tell how much there was to gain.

They are no policies that anybody can use, so they live with the referee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from focused.crawl.policy import Policy
from focused.evaluation.examination.foresight import judge_oracle
from focused.evaluation.examination.path_oracle import path_oracle
from focused.evaluation.examination.referee import Referee
from focused.evaluation.simulation.network import Network
from focused.learning.protocols import TopicJudge, Visit
from focused.policies.per_link import PerLink
from focused.web.page import Link

_A_LITTLE = 1e-12  # found_seq is below 10**9: never as much as a label


def relevant_then_breadth_first(score: float, found_seq: int) -> float:
    """Order by score; between equals, on whatever host, by the order of discovery."""
    return score - _A_LITTLE * found_seq


def greedy_oracle(referee: Referee) -> Policy:
    """See the labels of what is in the frontier, and nothing beyond it.

    Takes an on-topic link whenever it holds one, the earliest found; otherwise
    goes breadth-first. No upper bound: it cannot tell which off-topic page
    leads to the topic, and a policy that can may beat it;
    :func:`~focused.evaluation.examination.path_oracle.path_oracle` can.
    """

    def labels(visit: Visit, links: Sequence[Link]) -> list[float]:
        return [float(referee.is_relevant(link.url)) for link in links]

    return Policy("oracle", PerLink(labels), relevant_then_breadth_first)


OracleMaker = Callable[[Referee, TopicJudge, Network], Policy]
"""Makes an oracle for one run, from the labels or from the judge and all pages."""

ORACLES: Mapping[str, OracleMaker] = {
    "oracle": lambda referee, judge, network: greedy_oracle(referee),
    "path-oracle": lambda referee, judge, network: path_oracle(referee),
    "judge-oracle": judge_oracle,
}
