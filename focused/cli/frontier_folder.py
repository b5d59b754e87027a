"""Opens the frontier in a crawl's folder: to change it, or a snapshot of it to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from focused.crawl.given_up import GivenUpHosts
from focused.crawl.host_care import host_limits
from focused.crawl.order import Order, kept_order
from focused.errors import ConfigurationError, StateError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.frontier import Frontier
from focused.frontier.host import Host
from focused.frontier.store import StateStore
from focused.topic import Scope, described_scope


@dataclass(frozen=True, slots=True)
class Opened:
    """A crawl's frontier; ``scope`` is its topic's, None when none was kept."""

    frontier: Frontier
    store: StateStore
    order: Order
    scope: Scope | None
    given_up: GivenUpHosts

    def host(self, name: str) -> Host:
        """The host of that name; ConfigurationError when the crawl never met it."""
        host = self.frontier.hosts.known(name.lower())
        if host is None:
            raise ConfigurationError(
                f"the crawl never met a host {name!r}; a host's name has its port, "
                "unless it is the scheme's own"
            )
        return host

    def keep(self) -> None:
        """Make true what was changed."""
        self.frontier.save()
        self.store.commit()


@contextmanager
def opened(folder: Path) -> Iterator[Opened]:
    """Open the frontier of the stopped crawl in ``folder``, to change it.

    What was not kept when the block is left by an exception was not done.
    Raises StateError when there is none, or it is damaged or in use.
    """
    store = StateStore.reopen(folder / "state")
    try:
        yield _opened(store, folder)
    except BaseException:
        store.abandon()
        raise
    store.close()


@contextmanager
def viewed(folder: Path) -> Iterator[tuple[Opened, bool]]:
    """A snapshot of the frontier of the crawl in ``folder``, to look at.

    True with it when it is some seconds old: a crawl runs there. Raises StateError
    when there is none, or it is damaged.
    """
    with StateStore.reading(folder / "state") as (store, late):
        yield _opened(store, folder), late


def _opened(store: StateStore, folder: Path) -> Opened:
    order, scope = kept_order(store.tables), _scope(folder / "settings.json")
    frontier = DiskFrontier(
        store.tables, exploration=order.exploration, limits=host_limits(scope or Scope())
    )
    return Opened(frontier, store, order, scope, GivenUpHosts(store.tables))


def _scope(settings: Path) -> Scope | None:
    try:
        kept = json.loads(settings.read_text(encoding="utf-8"))
        return described_scope(kept["topic"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{settings}: is damaged ({error!r}), so the topic's scope is not known; go on with "
            "the crawl and stop it, to have it written again"
        ) from error
