"""What a crawl persists, and what it commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from focused.archive.archive import Archive
from focused.archive.warc_files import PAGES_PREFIX, WarcFiles, warcinfo_fields
from focused.crawl.crawl_stats import Counters, Stage, StageTimes
from focused.crawl.hosts.host_policy import host_limits
from focused.crawl.leases import Leases
from focused.crawl.policy import Policy, link_order_of, save_link_order
from focused.frontier.disk_frontier import DiskFrontier
from focused.storage.state_store import StateStore
from focused.topic import Topic


class RunTimer:
    """Measures the running time of a crawl over all its sessions."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._since: float | None = None

    def begin(self, now: float) -> bool:
        """Start the session at its first step; return whether this was it."""
        first = self._since is None
        if first:
            self._since = now
        return first

    def so_far_s(self, now: float) -> float:
        """Return the running time until now, in seconds."""
        return self._counters.active_s + (0.0 if self._since is None else now - self._since)

    def keep(self, now: float) -> None:
        """Write the running time into the counters."""
        self._counters.active_s = self.so_far_s(now)
        if self._since is not None:
            self._since = now


@dataclass(frozen=True, slots=True)
class CrawlState:
    """What a crawl persists, and what it commits."""

    store: StateStore
    frontier: DiskFrontier
    archive: Archive
    counters: Counters
    leases: Leases
    timer: RunTimer
    stages: StageTimes
    before_commit: list[Callable[[], object]] = field(default_factory=list)
    """What is called to write the state that parts hold in memory."""

    def commit_frontier(self) -> None:
        """Commit all but the counters."""
        for save in self.before_commit:
            save()
        with self.stages(Stage.COMMITTING):
            self.frontier.save()
            self.store.commit()

    def commit(self, now: float) -> None:
        """Commit everything."""
        self.timer.keep(now)
        self.store.tables.put_meta("counters", self.counters)
        self.commit_frontier()


def open_state(
    topic: Topic,
    policy: Policy,
    store: StateStore,
    stages: StageTimes | None = None,
    warc_prefix: str = PAGES_PREFIX,
    *,
    keep_links: bool = True,
) -> CrawlState:
    """Open the frontier, the archive and the counters in ``store``.

    The arguments are those of :func:`focused.crawl.build.build_crawl`.
    """
    tables = store.tables
    save_link_order(tables, link_order_of(policy))
    counters = Counters.from_state(tables.get_meta("counters"))
    frontier = DiskFrontier(
        tables,
        worth_waiting_for=policy.worth_waiting_for,
        exploration=policy.exploration,
        limits=host_limits(topic.scope),
        address_delay_of=topic.politeness.delay_of,
    )
    warc = _open_warc_files(topic, policy, store, warc_prefix)
    return CrawlState(
        store=store,
        frontier=frontier,
        archive=Archive(store, warc=warc, links=keep_links),
        counters=counters,
        leases=Leases(),
        timer=RunTimer(counters),
        stages=stages or StageTimes(),
    )


def _open_warc_files(
    topic: Topic, policy: Policy, store: StateStore, prefix: str
) -> WarcFiles | None:
    output = topic.output
    if output.warc == "off":
        return None
    return WarcFiles(
        output.folder,
        store.tables,
        output.warc,
        warcinfo_fields(topic, policy.name),
        prefix=prefix,
        max_bytes=output.max_warc_bytes,
    )
