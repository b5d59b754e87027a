"""The judge's oracle: knows what the judge will say of a page before it is fetched.

Between what a link scorer can reach and what labels allow stands the judge: a
crawl follows its verdicts, right or wrong. This policy tells how much is lost
there.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.crawl.policy import Policy
from focused.evaluation.examination.referee import Referee
from focused.evaluation.simulation.network import Network
from focused.learning.protocols import TopicJudge, Visit
from focused.policies.per_link import PerLink
from focused.web.page import Fetched, Link, Page


def judge_oracle(referee: Referee, judge: TopicJudge, network: Network) -> Policy:
    """Fetch first what the judge will find most relevant; sees no label.

    No upper bound: it looks one click ahead, and where pages link to their
    like, links tell of a page what its own text does not.
    """

    def relevances(visit: Visit, links: Sequence[Link]) -> list[float]:
        return [_relevance(referee.end_of(link.url), judge, network) for link in links]

    return Policy("judge-oracle", PerLink(relevances))


def _relevance(url: str | None, judge: TopicJudge, network: Network) -> float:
    answer = None if url is None else network.answer(url, 0.0, 0.0)
    page = network.parse(answer) if isinstance(answer, Fetched) else None
    return judge.judge(page).relevance if isinstance(page, Page) else 0.0
