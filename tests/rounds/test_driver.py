"""The driver of a crawl, with partitions that say what a test wants."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from focused.crawl.crawl_stats import Counters
from focused.rounds.driver import RoundDriver
from focused.rounds.manifest import Manifest, write_round_file
from focused.rounds.messages import (
    Begin,
    Closed,
    Finish,
    Finished,
    Finishing,
    Opened,
    Progress,
    Ready,
    Run,
    Start,
    Stop,
    ToDriver,
    ToPartition,
    decode_for_partition,
    encode,
)
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage
from focused.topic import Budget

CHOSEN, OTHER = 0, 1
SHORTEST_ROUND_S = 1.0


class TwoPartitions:
    """One has a link that is due, the other a better one that is due only while a round runs."""

    def __init__(self, storage: SharedStorage) -> None:
        self.now = 0.0
        self.rounds = 0
        self.has_fetched = False
        self._storage = storage
        self._answers: deque[tuple[int, bytes | None]] = deque()

    def start(self, partition: int, message: bytes) -> None:
        self._say(partition, Opened("a", "", ""))

    def send(self, partition: int, message: bytes) -> None:
        decoded = decode_for_partition(message)
        for answer in self._answers_to(partition, decoded):
            self._say(partition, answer)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        self.now += 0.001
        return [self._answers.popleft()] if self._answers else []

    def kill(self, partition: int) -> None: ...

    def is_waiting(self, partition: int) -> bool:
        return False

    def is_gone(self, partition: int) -> bool:
        return True

    def _say(self, partition: int, message: ToDriver | None) -> None:
        self._answers.append((partition, None if message is None else encode(message)))

    def _answers_to(self, partition: int, message: ToPartition) -> Iterator[ToDriver | None]:
        if isinstance(message, Begin):
            self.rounds = message.round
            found = [1.0] if partition == CHOSEN else [9.0] * (self.rounds > 1)
            yield Ready(message.round, 0, self._counters(partition), 0, 1, tuple(found), (), False)
        elif isinstance(message, Run) and partition == OTHER:
            self.has_fetched = message.pages == 1
            yield Progress(message.round, int(self.has_fetched), True, 9.0)
        elif isinstance(message, Run):  # it waits for the better link of the other
            yield Progress(message.round, 0, True, 1.0)
        elif isinstance(message, Finish):
            yield Finishing(message.round)
            file = write_round_file(self._storage, message.round, partition, "a", {})
            yield Finished(message.round, file, 0, self._counters(partition))
        elif isinstance(message, Stop):
            yield Closed(self._counters(partition))
            yield None

    def _counters(self, partition: int) -> dict[str, Any]:
        return Counters(fetched=int(self.has_fetched and partition == OTHER)).to_state()


def test_a_round_ends_when_all_wait_for_a_partition_that_was_granted_no_page(
    tmp_path: Path,
) -> None:
    storage = SharedStorage(f"file://{tmp_path}", "crawl")
    partitions = TwoPartitions(storage)
    driver = RoundDriver(
        Manifest("whales", "focused", 2, "domain"),
        [Start(number, 2, "domain", storage.url, {}) for number in (CHOSEN, OTHER)],
        partitions,
        storage,
        Budget(pages=1),
        limits=Limits(),
        worth_waiting_for=0.5,
        clock=lambda: partitions.now,
    )
    assert driver.run() == "page budget spent"
    assert partitions.now < SHORTEST_ROUND_S
