"""The driver of a crawl, with partitions that say what a test wants."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from focused.crawl.crawl_stats import Counters
from focused.errors import StateError, StorageError
from focused.rounds.driver import RoundDriver
from focused.rounds.manifest import CONTENTS, Manifest, write_round_file
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
        self.say(partition, Opened("a", "", ""))

    def send(self, partition: int, message: bytes) -> None:
        decoded = decode_for_partition(message)
        for answer in self._answers_to(partition, decoded):
            self.say(partition, answer)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        self.now += 0.001
        return [self._answers.popleft()] if self._answers else []

    def kill(self, partition: int) -> None: ...

    def is_waiting(self, partition: int) -> bool:
        return False

    def is_gone(self, partition: int) -> bool:
        return True

    def say(self, partition: int, message: ToDriver | None) -> None:
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
            claims = {CONTENTS: [b"a claim"]}
            file = write_round_file(self._storage, message.round, partition, "a", claims)
            yield Finished(message.round, file, 0, self._counters(partition))
        elif isinstance(message, Stop):
            yield Closed(self._counters(partition))
            yield None

    def _counters(self, partition: int) -> dict[str, Any]:
        return Counters(fetched=int(self.has_fetched and partition == OTHER)).to_state()


class SilentAtFirst(SharedStorage):
    """Does not answer the first reads; ``on_silence`` is called at the first."""

    def __init__(self, url: str, on_silence: Callable[[], object]) -> None:
        super().__init__(url, "crawl")
        self._silences: deque[Callable[[], object]] = deque([on_silence, lambda: None])

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        if self._silences:
            self._silences.popleft()()
            raise StorageError("no answer")
        return super().read(name, start, end)


def drive(partitions: TwoPartitions, storage: SharedStorage, **options: Any) -> RoundDriver:
    return RoundDriver(
        Manifest("whales", "focused", 2, "domain"),
        [Start(number, 2, "domain", storage.url, {}) for number in (CHOSEN, OTHER)],
        partitions,
        storage,
        Budget(pages=1),
        limits=Limits(),
        worth_waiting_for=0.5,
        clock=lambda: partitions.now,
        **options,
    )


def test_a_round_ends_when_all_wait_for_a_partition_that_was_granted_no_page(tmp_path):
    storage = SharedStorage(f"file://{tmp_path}", "crawl")
    partitions = TwoPartitions(storage)
    assert drive(partitions, storage).run() == "page budget spent"
    assert partitions.now < SHORTEST_ROUND_S


def test_a_file_counts_though_its_process_ends_while_the_storage_is_silent(tmp_path):
    partitions = TwoPartitions(SharedStorage(f"file://{tmp_path}", "crawl"))
    storage = SilentAtFirst(f"file://{tmp_path}", lambda: partitions.say(CHOSEN, None))
    counted: list[int] = []
    driver = drive(
        partitions,
        storage,
        on_round=lambda report: counted.append(driver.manifest.record(CHOSEN).round),
    )
    driver.run()
    assert counted[0] == 1


def test_a_message_that_is_not_understood_is_reported_with_its_partition(tmp_path):
    class Malformed(TwoPartitions):
        def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
            return [(OTHER, b"x")]

    storage = SharedStorage(f"file://{tmp_path}", "crawl")
    with pytest.raises(StateError, match="partition 1: its message is not understood"):
        drive(Malformed(storage), storage).run()
