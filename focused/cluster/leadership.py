"""The duties of the leading worker: share out the budget, and end the crawl."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from focused.cluster.budget import MIN_PAGES_AHEAD, Demand, next_grants
from focused.cluster.coordinator import ClusterState, Coordinator, PartitionStatus
from focused.topic import Budget

MAX_REPORTED_PRIORITIES = 20
"""Priorities that a partition reports: its best links compete for the next pages."""
_ROUNDS_AHEAD = 8
"""A grant is used two or three rounds after the status that it follows from was reported."""


class Leadership:
    """Watches the statuses of all partitions, in rounds of about a second.

    It holds nothing that a successor needs.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        partitions: int,
        budget: Budget,
        worth_waiting_for: float = math.inf,
    ) -> None:
        """``worth_waiting_for`` as for :func:`focused.cluster.budget.next_grants`."""
        self._worth_waiting_for = worth_waiting_for
        self._fetched = 0
        self._coordinator = coordinator
        self._partitions = partitions
        self._budget = budget
        self._quiet: Mapping[int, PartitionStatus] | None = None
        """The statuses when all partitions were idle for the first time."""

    def act(self, statuses: Mapping[int, PartitionStatus]) -> None:
        """Grant pages to partitions, or end the crawl. Raises CoordinationError."""
        reason = self._end_reason(statuses)
        if reason is not None:
            self._coordinator.set_state(ClusterState.ENDED, reason)
        elif self._budget.pages is not None:
            self._grant(statuses, self._budget.pages)

    def _end_reason(self, statuses: Mapping[int, PartitionStatus]) -> str | None:
        pages, bytes_ = self._budget.pages, self._budget.bytes
        if pages is not None and sum(each.fetched for each in statuses.values()) >= pages:
            return "page budget spent"
        if bytes_ is not None and sum(each.bytes for each in statuses.values()) >= bytes_:
            return "byte budget spent"
        return "no link is left" if self._is_over(statuses) else None

    def _is_over(self, statuses: Mapping[int, PartitionStatus]) -> bool:
        """Whether no partition has work, and no links are on their way between them.

        Two observations are needed (Mattern 1987, "Algorithms for distributed termination
        detection"): every partition was idle at both, and sent and received nothing between them,
        although it read its stream.
        """
        is_quiet = len(statuses) == self._partitions and all(
            each.is_idle and not each.outbox for each in statuses.values()
        )
        if not is_quiet:
            self._quiet = None
            return False
        if self._quiet is None:
            self._quiet = statuses
            return False
        before = self._quiet
        if any(
            (each.token, each.sent, each.received)
            != (before[number].token, before[number].sent, before[number].received)
            for number, each in statuses.items()
        ):
            self._quiet = statuses
            return False
        # The first round after the observation may have begun before it.
        return all(each.rounds >= before[number].rounds + 2 for number, each in statuses.items())

    def _grant(self, statuses: Mapping[int, PartitionStatus], budget: int) -> None:
        """Grant the next pages, for the best links of all partitions."""
        granted = self._coordinator.granted()
        fetched = sum(each.fetched for each in statuses.values())
        ahead = max(MIN_PAGES_AHEAD, _ROUNDS_AHEAD * (fetched - self._fetched))
        self._fetched = fetched
        used = {number: each.fetched + each.in_flight for number, each in statuses.items()}
        # Less is granted than used if Redis lost its data.
        lost = {
            number: pages - granted.get(number, 0)
            for number, pages in used.items()
            if pages > granted.get(number, 0)
        }
        demands = {
            number: Demand(max(granted.get(number, 0), used[number]), used[number], each.priorities)
            for number, each in statuses.items()
        }
        grants = next_grants(budget, demands, self._worth_waiting_for, ahead)
        total = Counter(lost) + Counter(grants)
        if total:
            self._coordinator.grant(total, budget)
