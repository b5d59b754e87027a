"""A judge that another may follow in the middle of a crawl.

Whoever judges or scores by it holds this one object and speaks to the judge in
office, so that a retrained model takes over everywhere between two pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.learning.protocols import TopicJudge
from focused.web.page import Judgement, Page


class JudgeInOffice:
    """A :class:`focused.learning.protocols.TopicJudge`: whichever was appointed last."""

    def __init__(self, judge: TopicJudge, name: str = "") -> None:
        """``name`` tells the judge from others in what a crawl keeps; "" has none."""
        self._judge = judge
        self.name = name

    def appoint(self, judge: TopicJudge, name: str) -> None:
        """From the next page on ``judge`` judges."""
        self._judge = judge
        self.name = name

    @property
    def judge_now(self) -> TopicJudge:
        """The judge itself, who may be sent to another process."""
        return self._judge

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self._judge.threshold

    def judge(self, page: Page) -> Judgement:
        """Judge one fetched page."""
        return self._judge.judge(page)

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats of log-odds."""
        return self._judge.verdicts(texts)
