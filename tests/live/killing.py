"""A crawl that is killed repeatedly, and its state after each kill."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from focused.archive.archive import page_rows
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import link_key
from focused.storage.state_store import StateStore
from focused.web.urls import host_of
from focused_lab.recorded_web.replay_server import AccessLogEntry
from tests.live.webs import MIXED_LATENCIES, MIXED_SEEDS, mixed_web
from tests.support.archived_links import link_rows
from tests.support.crawling import Finished, finish, start, write_topic
from tests.support.forked import HANGS_AFTER_S, ForkedCommand
from tests.support.recorded_web import Served, served

KILLED = -9
DELAY_S = 0.05
_CLOSES_WITHIN_S = 0.3


class Moment(Enum):
    """When a crawl is killed."""

    CREATING_FOLDER = "soon after the state's folder is there"
    STARTING = "before its first request"
    BEGINNING = "with its first answers, most of them robots.txt"
    CRAWLING = "between many requests"
    ENDING = "while it closes and exports"


@dataclass(frozen=True)
class Left:
    """The content of the state after a kill; empty if there was no state yet."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    linked: set[str] = field(default_factory=set)
    queued: set[str] = field(default_factory=set)
    robots_fetched: int = 0

    @property
    def settled(self) -> set[str]:
        return {row["url"] for row in self.rows}

    @classmethod
    def in_folder(cls, folder: Path) -> Left:
        """Read a copy, so that the next process finds the folder unchanged."""
        if not (folder / "state/data.mdb").is_file():
            return cls()
        with TemporaryDirectory() as copy:
            shutil.copytree(folder / "state", copy, dirs_exist_ok=True)
            store = StateStore.reopen(Path(copy))
            try:
                return cls._in_store(store)
            finally:
                store.close()

    @classmethod
    def _in_store(cls, store: StateStore) -> Left:
        linked = {row["target"] for row in link_rows(store.tables)}
        keys = {link_key(url): url for url in (*linked, *MIXED_SEEDS)}
        links = [(host_of(url), key) for key, url in keys.items()]
        waiting = DiskFrontier(store.tables).lookup_links(links).waiting
        return cls(
            list(page_rows(store.tables)),
            linked,
            {keys[key] for key in waiting},
            (store.tables.get_meta("counters") or {}).get("robots_fetched", 0),
        )


@dataclass(frozen=True)
class Session:
    """One process: its start on the monotonic clock, and the state it left."""

    began_at: float
    moment: Moment | None
    left: Left
    asked: list[AccessLogEntry] = field(default_factory=list)


class _AccessLog:
    """Requests that the server has answered so far, read from its log as it grows."""

    def __init__(self, site: Served) -> None:
        self._site = site
        self._read = 0
        self._began_at: list[float] = []
        self.urls: set[str] = set()

    def look(self) -> None:
        text = self._site.log.getvalue()[self._read :]
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            access = AccessLogEntry(**json.loads(line))
            self._began_at.append(access.start)
            self.urls.add(url_of(access))

    def answers(self, since: float) -> int:
        """Return the number of answered requests since then; also of killed processes."""
        return sum(began_at >= since for began_at in self._began_at)


def url_of(access: AccessLogEntry) -> str:
    return f"{access.scheme}://{access.host}{access.path}"


class KilledCrawl:
    """A crawl that is killed at each of the moments in turn, and then runs to its end."""

    def __init__(self, folder: Path, moments: list[Moment], rng: random.Random) -> None:
        self.sessions: list[Session] = []
        self._rng = rng
        self._topic = write_topic(folder, *MIXED_SEEDS, delay_s=DELAY_S)
        self._out = folder / "out"
        self._boot_s = 0.3  # measured anew with each first answer
        with served(mixed_web(), MIXED_LATENCIES) as site:
            self._watch = _AccessLog(site)
            for moment in moments:
                while not self._was_killed(moment, site):
                    continue  # it ended before the kill
            self.end = self._run_to_its_end(site)
        self._share_out(site.accesses)

    @property
    def kills(self) -> list[Session]:
        return [session for session in self.sessions if session.moment is not None]

    def _was_killed(self, moment: Moment, site: Served) -> bool:
        began_at = time.monotonic()
        process = start(self._topic, site.address)
        self._wait_for(moment, process, began_at)
        process.kill()
        killed = process.wait() == KILLED
        time.sleep(0.2)  # until the server has read what the dead process sent
        self._note(began_at, moment if killed else None)
        return killed

    def _run_to_its_end(self, site: Served) -> Finished:
        began_at = time.monotonic()
        end = finish(start(self._topic, site.address), self._topic)
        self._note(began_at, None)
        return end

    def _note(self, began_at: float, moment: Moment | None) -> None:
        self.sessions.append(Session(began_at, moment, Left.in_folder(self._out)))

    def _share_out(self, accesses: list[AccessLogEntry]) -> None:
        """Give each session its requests, by time.

        The log's order differs: the server logs a request in flight at a kill when it notices.
        """
        for access in sorted(accesses, key=lambda access: access.start):
            begun = [each for each in self.sessions if each.began_at <= access.start]
            begun[-1].asked.append(access)

    def _wait_for(self, moment: Moment, process: ForkedCommand, began_at: float) -> None:
        rng, watch = self._rng, self._watch
        watch.look()
        if moment is Moment.CREATING_FOLDER:
            self._until(process, (self._out / "state").exists)
            time.sleep(rng.uniform(0.0, self._boot_s))
        elif moment is Moment.STARTING:
            time.sleep(rng.uniform(0.0, self._boot_s))
        elif moment is Moment.BEGINNING:
            self._until(process, lambda: watch.answers(began_at) > 0)
            self._boot_s = time.monotonic() - began_at
            time.sleep(rng.uniform(0.0, 0.1))
        elif moment is Moment.CRAWLING:
            answers = rng.randint(1, 70)
            self._until(process, lambda: watch.answers(began_at) >= answers)
            time.sleep(rng.uniform(0.0, 0.03))
        else:
            closings = self._closings()
            self._until(process, lambda: self._closings() > closings)
            time.sleep(rng.uniform(0.0, _CLOSES_WITHIN_S))

    def _closings(self) -> int:
        log = self._out / "crawl.log"
        return log.read_text(errors="replace").count("Closing spider") if log.exists() else 0

    def _until(self, process: ForkedCommand, is_so: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + HANGS_AFTER_S
        while not is_so() and process.poll() is None:
            assert time.monotonic() < give_up_at, "the crawl hangs"
            time.sleep(0.005)
            self._watch.look()
