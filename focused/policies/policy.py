"""What a policy is made of, and what it may be made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from focused.frontier.ordering import Ordering
from focused.learning.protocols import LinkScorer, TopicJudge


@dataclass(frozen=True, slots=True)
class Aids:
    """What a policy may use.

    ``judge`` and ``apprentice`` are those of the live crawl. ``is_relevant``
    tells by the labels whether a URL (redirects followed) counts as harvest:
    for oracles alone. ``seed`` is for policies that draw lots.
    """

    judge: TopicJudge
    apprentice: LinkScorer
    is_relevant: Callable[[str], bool]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """``scorer`` predicts links, ``ordering`` turns score and place into priority.

    ``patient`` policies may wait for a clearly better link whose host is not
    due yet, as long as the topic's politeness.patience says.
    """

    name: str
    scorer: LinkScorer
    ordering: Ordering
    patient: bool
