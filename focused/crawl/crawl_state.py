"""What a crawl persists, and what it commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from focused.archive.archive import Archive
from focused.crawl.crawl_stats import Counters, Stage, StageTimes
from focused.crawl.leases import Leases
from focused.crawl.stop_conditions import RunTimer
from focused.frontier.interface import Frontier
from focused.storage.state_store import StateStore


@dataclass(frozen=True, slots=True)
class CrawlState:
    """What a crawl persists, and what it commits."""

    store: StateStore
    frontier: Frontier
    archive: Archive
    counters: Counters
    leases: Leases
    timer: RunTimer
    stages: StageTimes
    before_commit: list[Callable[[], object]] = field(default_factory=list)
    """What features call to write the state that they hold in memory."""

    def save_counters(self, now: float) -> None:
        """Write the counters into the open transaction."""
        self.timer.keep(now)
        self.store.tables.put_meta("counters", self.counters)

    def commit_frontier(self) -> None:
        """Commit all but the counters."""
        for save in self.before_commit:
            save()
        with self.stages(Stage.COMMITTING):
            self.frontier.save()
            self.store.commit()

    def commit(self, now: float) -> None:
        """Commit everything."""
        self.save_counters(now)
        self.commit_frontier()
