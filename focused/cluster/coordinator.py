"""The coordinator: what all workers of a crawl agree on.

Workers join and renew their membership; a worker owns a partition as long as it holds its lease,
whose fencing token grows with each owner. Anybody may give commands. One worker at a time leads: it
shares out the budget and ends the crawl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Protocol

import msgspec

LEASE_S = 20.0
"""How long a lease lasts: longer than Redis Cluster needs to replace a master."""
ASK_AGAIN_S = 1.0
"""When to ask again for a host that another partition requests at the moment."""
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class PartitionLease:
    """The right to crawl a partition, until it expires; ``token`` grows with each owner."""

    partition: int
    token: int
    worker: str


class WorkerState(StrEnum):
    """Whether a worker takes partitions."""

    ACTIVE = "active"
    DRAINING = "draining"
    """It gives its partitions to other workers, then leaves."""


class WorkerStatus(msgspec.Struct, frozen=True):
    """What a worker tells about itself with each heartbeat."""

    name: _Name
    host: str
    process: _Count
    joined_at: float
    state: WorkerState = WorkerState.ACTIVE
    pages_per_s: float = 0.0


class PartitionStatus(msgspec.Struct, frozen=True):
    """What the owner of a partition tells about it, about once a second.

    ``in_flight`` counts pages. ``sent`` and ``received`` count links over all owners, ``received``
    those of new batches only. ``priorities`` are those of its best links, highest first. An idle
    partition has nothing in flight, nothing in its outbox, and no link that it may fetch. The
    results of a finished one are stored, after the crawl has ended.
    """

    partition: _Count
    token: _Count
    worker: _Name
    fetched: _Count = 0
    in_flight: _Count = 0
    classified: _Count = 0
    on_topic: _Count = 0
    bytes: _Count = 0
    frontier: _Count = 0
    outbox: _Count = 0
    sent: _Count = 0
    received: _Count = 0
    rounds: _Count = 0
    """Rounds of this owner in which it read its stream."""
    is_idle: bool = False
    is_finished: bool = False
    priorities: tuple[float, ...] = ()
    reported_at: float = 0.0


class ClusterState(StrEnum):
    """What all workers are to do."""

    RUNNING = "running"
    PAUSED = "paused"
    """Fetch nothing, keep the partitions."""
    STOPPING = "stopping"
    """Release all partitions and leave; the crawl can be resumed."""
    ENDED = "ended"
    """The crawl is over: write the results and leave."""


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """The state of the cluster; ``reason`` is why it ended or who stopped it.

    ``generation`` grows with each rebalance, which asks workers to assign partitions again.
    """

    state: ClusterState = ClusterState.RUNNING
    reason: str = ""
    generation: int = 0


class Coordinator(Protocol):
    """Membership, leases, commands, budget. All methods raise CoordinationError."""

    lease_s: float
    """How long a lease and a membership last without being renewed."""

    def heartbeat(self, status: WorkerStatus) -> None:
        """Join, or renew the membership."""

    def leave(self, worker: str) -> None:
        """End the membership of a worker."""

    def workers(self) -> Mapping[str, WorkerStatus]:
        """Return the members by name."""

    def drain(self, worker: str) -> None:
        """Ask a member to give its partitions away and to leave; see :meth:`is_draining`.

        The request ends with the membership, so a worker of the same name may join later.
        """

    def is_draining(self, worker: str) -> bool:
        """Whether :meth:`drain` was called for a member."""

    def claim(self, partition: int, worker: str, *, min_token: int = 0) -> PartitionLease | None:
        """Take a lease that nobody holds, with a token above all earlier ones and ``min_token``.

        Return None if another worker holds it. A worker that claims its own lease again, because
        the answer was lost, gets a new token, and its earlier lease ends.
        """

    def renew(self, leases: Iterable[PartitionLease]) -> frozenset[int]:
        """Renew leases; return the partitions that are still held."""

    def release(self, lease: PartitionLease) -> None:
        """End a lease, if it is still held."""

    def owners(self) -> Mapping[int, PartitionLease]:
        """Return the leases that are held, by partition."""

    def report(self, statuses: Sequence[PartitionStatus]) -> None:
        """Store the statuses of partitions, unless one with a higher token is there."""

    def statuses(self) -> Mapping[int, PartitionStatus]:
        """Return the newest status of each partition; malformed ones are left out."""

    def lead(self, worker: str) -> bool:
        """Whether ``worker`` leads: renew or take the lead if nobody else has it."""

    def grant(self, pages: Mapping[int, int], budget: int) -> Mapping[int, int]:
        """Grant further pages to partitions; return what was granted.

        The pages granted to all partitions never exceed ``budget``; partitions that come first in
        ``pages`` get theirs first. It is safe to call again after an error: pages may then be
        granted twice, but within the budget.
        """

    def granted(self) -> Mapping[int, int]:
        """Return the pages granted to each partition so far."""

    def give_back(self, lease: PartitionLease, fetched: int) -> None:
        """Reduce a partition's grant to the pages that it fetched, if the lease is still held."""

    def command(self) -> WorkerCommand:
        """Return what all workers are to do."""

    def set_state(self, state: ClusterState, reason: str = "") -> None:
        """Tell all workers what to do. An ended crawl can only be set running again."""

    def rebalance(self) -> None:
        """Ask workers to assign the partitions again, by a new generation."""


class PaceLeases(Protocol):
    """Leases of hosts and addresses, so that two partitions never request one at once.

    Also the requests of an owner that has been replaced count.
    """

    def acquire(self, names: Sequence[str], holder: str, hold_s: float) -> float:
        """Lease all of ``names`` for at most ``hold_s``; return 0.0.

        Or lease none, and return after how many seconds to ask again. A holder may acquire again
        what it holds; after :meth:`finish` it waits for the delay, too. Raises CoordinationError.
        """

    def finish(self, names: Sequence[str], holder: str, delay_s: float) -> None:
        """Let leases that ``holder`` has expire after ``delay_s``.

        An implementation may send it with the next :meth:`acquire` or :meth:`flush`; the delay
        counts from this call.
        """

    def flush(self) -> None:
        """Send what :meth:`finish` has not sent. Raises CoordinationError."""
