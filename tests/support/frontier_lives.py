"""Frontiers that are made, die and come back: what a contract on crashes needs of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from focused.frontier.disk_frontier import DiskFrontier
from focused.storage.state_store import StateStore
from tests.support.plain_frontier import PlainFrontier
from tests.support.plain_hosts import Memory

Frontier = DiskFrontier | PlainFrontier
IDENTITY = {"topic": "test", "policy": "focused"}


class Life(Protocol):
    """One frontier after the other over the same memory; one lives at a time."""

    def begin(self, **settings: Any) -> Frontier:
        """Make the frontier, or another one of what the last one left.

        ``settings`` are ``worth_waiting_for``, ``exploration``, ``limits``, ``address_delay_s``.
        """

    def commit(self) -> None:
        """Make true what was done: it outlives a crash."""

    def sync(self) -> None:
        """Make what was committed outlive a failure of power, too; at any time."""

    def crash(self) -> None:
        """The process dies: what was not committed is gone."""

    def close(self) -> None:
        """The end in order: what was done is committed."""


class DiskLife:
    """Of the frontier on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, **settings: Any) -> DiskFrontier:
        self.store = StateStore.open(self._folder, IDENTITY)
        self.frontier = DiskFrontier(self.store.tables, **settings)
        return self.frontier

    def commit(self) -> None:
        self.frontier.save()
        self.store.commit()

    def sync(self) -> None:
        self.store.sync()

    def crash(self) -> None:
        self.store.abandon()

    def close(self) -> None:
        self.frontier.save()
        self.store.close()


class PlainLife:
    """Of the reference."""

    def __init__(self) -> None:
        self._kept = Memory()

    def begin(self, **settings: Any) -> PlainFrontier:
        self.frontier = PlainFrontier(self._kept.after_a_crash(), **settings)
        return self.frontier

    def commit(self) -> None:
        self._kept = self.frontier.memory.after_a_crash()

    def sync(self) -> None:
        pass

    def crash(self) -> None:
        pass

    def close(self) -> None:
        self.commit()
