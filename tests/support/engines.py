"""What coordinates a crawl of many partitions, in memory and in Redis, for contract suites."""

from __future__ import annotations

from typing import Protocol

from focused.cluster.coordinator import Coordinator, PaceLeases
from focused.cluster.exchange import Exchange, MemoryExchange
from focused.cluster.memory_coordinator import MemoryCoordinator, MemoryPaceLeases

LEASE_S = 10.0


class Engine(Protocol):
    """One crawl's coordination; each call returns what another worker would use."""

    def coordinator(self) -> Coordinator: ...

    def pace(self) -> PaceLeases: ...

    def exchange(self) -> Exchange: ...

    def advance(self, duration_s: float) -> None:
        """Let time pass for all leases."""


class MemoryEngine:
    def __init__(self) -> None:
        self._now = 0.0
        self._coordinator = MemoryCoordinator(self._clock, LEASE_S)
        self._pace = MemoryPaceLeases(self._clock)
        self._exchange = MemoryExchange()

    def coordinator(self) -> Coordinator:
        return self._coordinator

    def pace(self) -> PaceLeases:
        return self._pace

    def exchange(self) -> Exchange:
        return self._exchange

    def advance(self, duration_s: float) -> None:
        self._now += duration_s

    def _clock(self) -> float:
        return self._now
