"""The jobs and figures of our frontier's measurement, as data passed between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frontier_links import Drawn, LinkSource
from frontier_machine import Spent
from frontier_recording import Recording

from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import Exploration
from focused.storage.state_store import StateStore


@dataclass(frozen=True, slots=True)
class Job:
    """Grow the frontier in ``folder`` to ``links`` queued links, continuing from ``drawn``."""

    folder: Path
    recording: Recording
    links: int
    hosts: int
    links_a_host: int
    seed: int = 0
    drawn: Drawn | None = None
    now: float = 0.0

    def source(self) -> LinkSource:
        """The pages to push."""
        return LinkSource(self.recording, self.hosts, self.links_a_host, self.seed, self.drawn)

    def open(self) -> tuple[StateStore, DiskFrontier]:
        """Open the frontier as a crawl does."""
        store = StateStore.open(self.folder, {"benchmark": "frontier"})
        return store, DiskFrontier(
            store.tables,
            worth_waiting_for=self.recording.worth_waiting_for,
            exploration=self.exploration(),
        )

    def exploration(self) -> Exploration:
        """The recorded policy's."""
        return Exploration(*self.recording.exploration)


@dataclass(frozen=True, slots=True)
class Order:
    """Distance of offers from the best link that was due, in priority; 0 is exact.

    ``among_hosts``: another host was due with a better link. ``in_host``: the host had a better
    link. Each the maximum of ``samples``.
    """

    samples: int
    among_hosts: float
    in_host: float


@dataclass(frozen=True, slots=True)
class Stage:
    """One size of the frontier. ``push`` and ``look_up`` are per link, means of each page.

    ``push`` includes the commit, once per page; ``push_new`` and ``push_again`` are single calls
    without it. ``turn`` is a crawl's work for a page: offer, look up and push its links, settle,
    commit. ``pushed_links_per_s`` counts the frontier's time only. ``anonymous_mb`` is the
    frontier's own memory, ``anonymous_in_all_mb`` includes interpreter and benchmark.
    """

    links: int
    hosts: int
    share_waited: float
    push: Spent
    push_new: Spent
    push_again: Spent
    look_up: Spent
    pop: Spent
    pop_patient: Spent
    turn: Spent
    sync_ms_median: float
    sync_ms_most: float
    pushed_links_per_s: float
    order: Order
    disk_bytes: int
    anonymous_mb: float
    anonymous_most_mb: float
    anonymous_in_all_mb: float
    drawn: Drawn
    now: float


@dataclass(frozen=True, slots=True)
class Reopened:
    """A frontier opened in a new process: seconds to its first offer, and its number of links."""

    to_first_offer_s: float
    links: int
    anonymous_mb: float


def sizes_up_to(links: int) -> Sequence[int]:
    """The sizes to measure at: a hundredth, a tenth and all of ``links``."""
    return [max(1, links // part) for part in (100, 10, 1)]
