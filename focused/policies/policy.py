"""What a policy may be made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from focused.crawl.policy import Policy
from focused.crawl.steps import Settled
from focused.learning.protocols import LinkScorer, TopicJudge


@dataclass(frozen=True, slots=True)
class Aids:
    """What a policy may use: never a label.

    ``judge`` and ``apprentice`` are those of the live crawl. ``seed`` is for
    policies that draw lots. ``rehearse`` crawls once from the same seeds with
    the same budget under another policy and returns what was settled, in
    order; None where the pages cannot be had for nothing: in a live crawl.
    """

    judge: TopicJudge
    apprentice: LinkScorer
    seed: int = 0
    rehearse: Callable[[Policy], Sequence[Settled]] | None = None


PolicyMaker = Callable[[Aids], Policy]
"""Makes a policy for one crawl: its state, where it has any, is that crawl's own."""
