"""The duties of the leading worker: share out the budget, and end the crawl."""

from __future__ import annotations

from collections.abc import Mapping

from focused.cluster.budget import share_out
from focused.cluster.coordinator import ClusterState, Coordinator, PartitionStatus
from focused.topic import Budget

MAX_REPORTED_PRIORITIES = 100
"""Priorities that a partition reports: its best links compete for the next pages."""
_MIN_ROUND_PAGES, _MAX_ROUND_PAGES = 10, 500
_ROUNDS = 100


class Leadership:
    """Watches the statuses of all partitions, in rounds of about a second.

    It holds nothing that a successor needs.
    """

    def __init__(self, coordinator: Coordinator, partitions: int, budget: Budget) -> None:
        self._coordinator = coordinator
        self._partitions = partitions
        self._budget = budget
        self._quiet: Mapping[int, PartitionStatus] | None = None
        """The statuses when all partitions were idle for the first time."""

    def act(self) -> None:
        """Grant pages to partitions, or end the crawl. Raises CoordinationError."""
        statuses = self._coordinator.statuses()
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
        detection"): every partition was idle at both, and sent and received nothing between them.
        """
        is_quiet = len(statuses) == self._partitions and all(
            each.is_idle and not each.waiting and not each.outbox for each in statuses.values()
        )
        if not is_quiet:
            self._quiet = None
            return False
        if self._quiet is None:
            self._quiet = statuses
            return False
        before = self._quiet
        if any(
            (each.sent, each.received) != (before[number].sent, before[number].received)
            for number, each in statuses.items()
        ):
            self._quiet = statuses
            return False
        return all(
            each.reported_at > before[number].reported_at for number, each in statuses.items()
        )

    def _grant(self, statuses: Mapping[int, PartitionStatus], budget: int) -> None:
        """Top up each partition's grant to its share of the next round."""
        granted = self._coordinator.granted()
        pages = min(max(budget // _ROUNDS, _MIN_ROUND_PAGES), _MAX_ROUND_PAGES)
        priorities = {
            number: each.priorities for number, each in statuses.items() if each.priorities
        }
        if not priorities:
            return
        missing = {}
        for number, share in share_out(pages, priorities).items():
            unused = granted.get(number, 0) - statuses[number].fetched
            if share > unused:
                missing[number] = share - max(unused, 0)
        if missing:
            self._coordinator.grant(missing, budget)
