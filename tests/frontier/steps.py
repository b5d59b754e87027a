"""Opens a frontier, asks it for links, and ends its process in order or not."""

from pathlib import Path
from typing import Any

from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.state_store import StateStore
from tests.frontier.reference_frontier import ReferenceFrontier

IDENTITY = {"topic": "test", "policy": "focused"}
Frontier = DiskFrontier | ReferenceFrontier


class FrontierProcess:
    """A process with a frontier on disk; after its end it stands for the next one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, **settings: Any) -> DiskFrontier:
        """Open the frontier as the last process left it."""
        self.store = StateStore.open(self._folder, IDENTITY)
        self.frontier = DiskFrontier(self.store.tables, **settings)
        return self.frontier

    def commit(self) -> None:
        """Let what was done outlive a crash."""
        self.frontier.save()
        self.store.commit()

    def sync(self) -> None:
        """Let what was committed outlive a failure of power, too."""
        self.store.sync()

    def crash(self) -> None:
        """Die: what was not committed is gone."""
        self.store.abandon()

    def close(self) -> None:
        """End in order: what was done is committed."""
        self.frontier.save()
        self.store.close()


def link(url: str, score: float = 0.5, **fields) -> QueuedLink:
    return QueuedLink(link_key(url), url, url.split("/")[2], score, score, **fields)


def take(frontier: DiskFrontier, now: float = 0.0, **options) -> Offer:
    offer = frontier.offer(now, **options)
    assert isinstance(offer, Offer)
    return offer


def finish(frontier: DiskFrontier, offer: Offer, now: float, delay_s: float = 1.0) -> None:
    frontier.settle(offer, HostPace(now + delay_s), now)


def drop_host(frontier: Frontier, name: str, now: float) -> int:
    """Drop all links of a host but for one in flight; return how many."""
    host = frontier.hosts.known(name)
    links = [] if host is None else list(frontier.waiting(host))
    return sum(frontier.drop(link, now) for link in links)


def url_of_next(frontier: DiskFrontier, now: float = 0.0) -> str:
    """Fetch the best link, from a host that needs no rest."""
    offer = take(frontier, now)
    finish(frontier, offer, now, delay_s=0.0)
    return offer.link.url
