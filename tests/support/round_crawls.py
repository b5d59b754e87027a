"""Crawls by several processes over a web on loopback, as a user starts them.

``python -m tests.support.round_crawls POINT NUMBER ARGUMENTS`` runs the command line, and kills its
process when it comes to a point of a round for the NUMBERth time.
"""

import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd

from focused.archive.crawl_tables import open_tables, table_files
from focused.child_processes import python_environment
from focused.rounds import driver
from focused.rounds.driver import RoundDriver
from focused.rounds.storage import SharedStorage
from tests.support.crawling import write_topic
from tests.support.forked import is_running
from tests.support.recorded_web import MemoryWeb, Served, html, page

WITHIN_S = 300.0


def ring_web(hosts: int, pages: int) -> MemoryWeb:
    """Pages of many hosts; each links to the next one of its host and to one of the next host."""
    recorded = []
    for host in range(hosts):
        for number in range(pages):
            url = f"http://h{host}.test/{number}"
            links = [f"http://h{(host + 1) % hosts}.test/{number}"]
            if number + 1 < pages:
                links.append(f"http://h{host}.test/{number + 1}")
            text = f"a whale of its own, page {number} of host {host}"
            recorded.append(page(url, html(f"whale {host} {number}", *links, text=text)))
    return MemoryWeb(*recorded)


class RoundCrawl:
    """A crawl by processes, below ``folder``."""

    def __init__(
        self,
        folder: Path,
        address: str | None = None,
        *,
        topic: Path | None = None,
        processes: int = 3,
        delay_s: float = 0.02,
        round_s: float = 1.0,
        seeds: Sequence[str] = ("http://h0.test/0",),
        budget: str = "",
        timeout_s: float = 30.0,
        settings: Sequence[str] = (),
        storage: str | None = None,
        ray: str | None = None,
    ) -> None:
        """``storage`` is the URL of shared storage, ``ray`` the address of a Ray cluster.

        The command runs in ``folder``, and gets the topic by a relative path unless it is given.
        """
        self._working_folder = folder
        self.folder = folder / "crawl"
        self.storage = SharedStorage(f"file://{folder}", "crawl")
        if storage is not None:
            self.storage = SharedStorage(storage, "whales")
        self.topic = topic or write_topic(
            folder,
            *seeds,
            delay_s=delay_s,
            scope="private_addresses = true\nnear_duplicates = false\n"
            "mirrors = false\ntraps = false",
            timeout_s=timeout_s,
            politeness="patience = 0\nsuspend_s = 0\nmax_tries = 10",
            budget=budget,
        )
        self.log = folder / "output.log"
        given = ["FOCUSED_MODELS=tests.support.whale_models.learning_models", *settings]
        if address is not None:
            given.append(f"FOCUSED_REPLAY={address}")
        self._arguments = [
            *("crawl", str(topic or self.topic.name), "--folder", str(self.folder)),
            *("--processes", str(processes), "--round-s", str(round_s)),
            *(each for setting in given for each in ("-s", setting)),
            *(() if storage is None else ("--storage", storage)),
            *(() if ray is None else ("--ray", ray)),
        ]
        self._driver: subprocess.Popen[bytes] | None = None

    def start(self, *, killed_at: tuple[str, int] | None = None) -> subprocess.Popen[bytes]:
        """Start the command; with ``killed_at`` it kills itself at a point of a round."""
        command = [sys.executable, "-m", "focused.cli"]
        if killed_at is not None:
            command = [sys.executable, "-m", __name__, killed_at[0], str(killed_at[1])]
        with self.log.open("ab") as log:
            self._driver = subprocess.Popen(
                [*command, *self._arguments],
                cwd=self._working_folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=python_environment(has_secrets=True),
            )
        return self._driver

    def run(self) -> int:
        """Run the command to its end; return its status."""
        return self.start().wait(WITHIN_S)

    def end(self) -> None:
        """End what still runs."""
        if self._driver is not None and self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The processes of partitions that run, by the folder in the locks of their states."""
        found = []
        for lock in sorted(self.folder.glob("partitions/*/state/lock")):
            text = lock.read_text()
            if text.isdecimal() and is_running(int(text)):
                found.append(int(text))
        return found

    def rounds(self) -> int:
        """The number of the last manifest; 0 before the first."""
        names = self.storage.entries("rounds/manifests")
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for an event of the crawl; fail if it ends before."""
        assert self._driver is not None
        give_up_at = time.monotonic() + WITHIN_S
        while not condition():
            assert self._driver.poll() is None, f"it ended before {what}: {self.log.read_text()}"
            assert time.monotonic() < give_up_at, f"not within {WITHIN_S} s: {what}"
            self._pause()

    def fetched(self) -> Counter[str]:
        """How often each page is in the archive."""
        url = self.storage.url
        if not url.startswith("file://"):
            names = self.storage.entries("pages")
            contents = (io.BytesIO(self.storage.read(f"pages/{name}")) for name in names)
            pages = pd.concat(map(pd.read_parquet, contents))
        else:
            with open_tables(Path(url.removeprefix("file://"))) as tables:
                pages = pd.concat(map(pd.read_parquet, table_files(tables, "pages")))
        return Counter(pages[pages.outcome == "fetched"].url)

    @staticmethod
    def _pause() -> None:
        # Polls files and processes of others, which tell no event.
        time.sleep(0.02)


@contextmanager
def round_crawl(
    folder: Path, served: Served | None = None, **options: object
) -> Iterator[RoundCrawl]:
    """A crawl that leaves no process behind."""
    address = None if served is None else served.address
    crawl = RoundCrawl(folder, address, **options)  # type: ignore[arg-type]
    try:
        yield crawl
    finally:
        crawl.end()


def requests_of_pages(served: Served) -> Counter[str]:
    """How often each page was asked for."""
    return Counter(
        f"http://{each.host}{each.path}" for each in served.accesses if each.path != "/robots.txt"
    )


POINTS: Mapping[str, tuple[Any, str]] = {
    "links are delivered": (RoundDriver, "_end_reason"),
    "pages are granted": (RoundDriver, "_wait_for_end"),
    "files are written": (RoundDriver, "_commit"),
    "examples are learned": (RoundDriver, "_write_manifest"),
    "the manifest has another name": (Path, "replace"),
    "the round is committed": (driver, "delete_outdated"),
}
"""Points of a round, each with the function that is called then."""


def _kill_at(point: str, number: int) -> None:
    """Let this process die when it comes to a point for the numberth time."""
    owner, name = POINTS[point]
    original, times = getattr(owner, name), count(1)

    def wrapped(*given: Any, **named: Any) -> Any:
        is_there = owner is not Path or given[1].parent.name == "manifests"
        if is_there and next(times) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*given, **named)

    setattr(owner, name, wrapped)


if __name__ == "__main__":
    _kill_at(sys.argv[1], int(sys.argv[2]))
    from focused.cli import main

    main(sys.argv[3:])
