"""The process of one partition: a Scrapy crawl that takes part in the driver's rounds.

:class:`focused.rounds.executors.LocalExecutor` runs it with the number of its socket.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

from msgspec import structs
from scrapy.utils.asyncio import create_looping_call

from focused.crawl import Crawl
from focused.crawl.crawl_stats import StageTimes
from focused.crawl.policy import Policy
from focused.durations import Clock
from focused.errors import FocusedError, StateError, print_notice
from focused.rounds.executors import inherited_connection
from focused.rounds.messages import Progress, Start, decode_for_partition, encode
from focused.rounds.partition import PartitionMap
from focused.rounds.partition_rounds import (
    HEARTBEAT_S,
    PartitionRounds,
    build_partition_rounds,
    restore_state,
)
from focused.rounds.storage import SharedStorage, try_again
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.crawl_session import OpenCrawl
from focused.scrapy_addon.crawl_slot import CrawlRun
from focused.scrapy_addon.spiders.run import project_settings, run
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from focused.scrapy_addon.state_folder import open_state
from focused.storage.environment import exclusive_lock
from focused.topic import Topic
from focused.web.urls import normalize_url

_ATTEND_S = 0.02
_LOST_DRIVER = 3
"""Exit status of a process whose driver is gone."""


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """What ``FOCUSED_PARTITION`` holds: the place of this process in its crawl."""

    start: Start
    connection: Connection

    def __deepcopy__(self, memo: object) -> PartitionPlace:
        """Return itself: Scrapy copies its settings, and a copied connection would close it."""
        return self

    def share(self, topic: Topic) -> Topic:
        """Return the topic of the partition: its seeds, and its share of what is to be kept.

        The driver keeps to the budget of a harvest. That of a continuous crawl is divided equally,
        so that each partition knows when its first harvest is over.
        """
        count = self.start.partitions
        owner = PartitionMap(count, self.start.unit)
        urls = [(url, normalize_url(url)) for url in topic.seeds.urls]
        own = (url for url, each in urls if each and owner.of_url(each) == self.start.partition)
        budget, revisit = topic.budget, topic.revisit
        if revisit.continuous:
            budget = replace(
                budget, pages=_share(budget.pages, count), bytes=_share(budget.bytes, count)
            )
        else:
            budget = replace(budget, pages=None, bytes=None, hours=None, min_harvest=None)
        return replace(
            topic,
            seeds=replace(topic.seeds, urls=tuple(own)),
            budget=budget,
            revisit=replace(
                revisit,
                pages_per_day=_share(revisit.pages_per_day, count),
                bytes_per_day=_share(revisit.bytes_per_day, count),
            ),
        )

    def opener(
        self,
        topic: Topic,
        policy: str,
        models: CrawlModels,
        *,
        replayed: bool,
        clock: Callable[[], Clock],
    ) -> OpenCrawl:
        """Return a function that opens the partition's crawl.

        ``clock`` returns the session's clock, once it exists.
        """

        def open_crawl(ordering: Policy, stages: StageTimes) -> tuple[Crawl, CrawlRun]:
            with self._heartbeats():
                restore_state(self.start, topic.output.folder)
                store = open_state(topic, policy, replayed=replayed, spider=self.identity)
                try:
                    rounds = build_partition_rounds(
                        self.start,
                        topic,
                        models.classifier,
                        ordering,
                        store,
                        self.connection,
                        training_urls=models.training_urls,
                        stages=stages,
                        driver_lost=lambda: os._exit(_LOST_DRIVER),
                    )
                except BaseException:
                    store.abandon()
                    raise
            if self.start.state is not None:
                # What the last process requested after it had stored this is not known.
                rounds.crawl.hosts.restart_delays(clock()())
            self._attend(rounds, clock())
            return rounds.crawl, rounds

        return open_crawl

    @property
    def identity(self) -> str:
        """What the state of the partition is for, in place of a spider's name."""
        return f"partition {self.start.partition} of {self.start.partitions} by {self.start.unit}"

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Tell the driver that this process lives, which may have a large state to restore."""
        is_over = Event()

        def tell() -> None:
            while not is_over.wait(HEARTBEAT_S):
                with suppress(OSError):
                    self.connection.send_bytes(encode(Progress(0, 0, False, None)))

        thread = Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _attend(self, rounds: PartitionRounds, clock: Clock) -> None:
        def attend() -> None:
            try:
                rounds.attend(clock())
            except Exception as error:  # the scheduler ends the crawl with it
                rounds.error = error
                loop.stop()

        loop = create_looping_call(attend)
        loop.start(_ATTEND_S, now=False)


def _share(count: int | None, partitions: int) -> int | None:
    return None if count is None else -(-count // partitions)


def main() -> int:
    """Run the partition that the first message names."""
    connection = inherited_connection(int(sys.argv[1]))
    try:
        start = decode_for_partition(connection.recv_bytes())
    except (EOFError, OSError):
        return _LOST_DRIVER
    assert isinstance(start, Start), "the first message"
    if start.attempt:
        try:
            start = _on_this_machine(start)
        except FocusedError as error:
            print_notice(f"partition {start.partition}: {error}")
            return 1
    settings = project_settings(start.settings)
    settings.set("FOCUSED_PARTITION", PartitionPlace(start, connection), priority="cmdline")
    _, started = run(TopicSpider, settings, topic=str(start.settings["FOCUSED_TOPIC"]))
    return int(not started)


def _on_this_machine(start: Start) -> Start:
    """Write the topic's files, and return the settings with their paths on this machine.

    Each attempt has a folder of its own: one before it may still run. Raises StorageError.
    """
    from focused.rounds.topic_files import path_below, write_topic_files  # only there

    base, topic = Path(start.settings["FOCUSED_FOLDER"]), start.settings["FOCUSED_TOPIC"]
    for left in base.parent.glob(f"{base.name}-*"):
        remove_folder_of_ended(left)
    folder = base.with_name(f"{base.name}-{start.attempt}")
    files = folder / "files"
    storage = SharedStorage.at(start.storage)
    try_again(lambda: write_topic_files(storage, start.files, start.secret_files, files))
    os.environ.update(start.environment)
    paths = {"FOCUSED_FOLDER": str(folder), "FOCUSED_TOPIC": str(path_below(files, topic))}
    return structs.replace(start, settings={**start.settings, **paths})


def remove_folder_of_ended(folder: Path) -> None:
    """Remove the local folder of an attempt, unless its process runs."""
    lock = None
    with suppress(StateError, OSError):
        if (folder / "state").is_dir():
            lock = exclusive_lock(folder / "state")
        shutil.rmtree(folder)
    if lock is not None:
        lock.close()


if __name__ == "__main__":
    sys.exit(main())
