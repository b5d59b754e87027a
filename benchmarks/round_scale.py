"""What the driver of a crawl in rounds costs, by the number of partitions.

    python benchmarks/round_scale.py --partitions 100,1000,4000,20000

The real driver runs rounds with its messages, files and manifests; partitions only answer, without
a crawl, and the storage is in memory. Times are CPU seconds of the driver alone in the last of the
rounds, by step: until all were told their inboxes (begin), until all may fetch (grant), until the
end of the run, until the manifest of what they wrote is stored (commit).
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from focused.cluster.storage import SharedStorage
from focused.crawl.crawl_stats import Counters
from focused.rounds.driver import Limits, RoundDriver
from focused.rounds.manifest import Manifest
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
from focused.rounds.round_files import CONTENTS, links_for, write_round_file
from focused.topic import Budget

BEGIN, GRANT, RUN, COMMIT = "begin", "grant", "run", "commit"
_STEPS: Mapping[type, str] = {Begin: BEGIN, Run: GRANT, Finish: RUN}
_LINK_BATCH = b"l" * 600
_CLAIMS = (b"c" * 250,) * 4
_PAGES = 60


class AnsweringPartitions:
    """An executor whose partitions answer at once; it measures the time of the driver between.

    A round has ``progress`` messages of each partition. Its file has links for ``receivers``
    others. Each partition reports ``addresses`` new ones, of which one in ten is shared.
    """

    def __init__(self, options: argparse.Namespace, partitions: int, storage: SharedStorage):
        self.driver_s: defaultdict[str, float] = defaultdict(float)
        self.sent_bytes = self.received_bytes = 0
        self._options = options
        self._partitions = partitions
        self._storage = storage
        self._messages: list[tuple[int, bytes]] = []
        self._answers: deque[tuple[int, bytes | None]] = deque()
        self._fetched: Counter[int] = Counter()
        self._delivered: Counter[int] = Counter()
        self._since = time.process_time()
        self._random = random.Random(1)

    def start(self, partition: int, message: bytes) -> None:
        """Open a partition."""
        self._answers.append((partition, encode(Opened("a", "", ""))))

    def send(self, partition: int, message: bytes) -> None:
        """Keep a message until all partitions have one."""
        self.sent_bytes += len(message)
        self._messages.append((partition, message))

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Return the next answers."""
        if self._messages:
            self._answer()
        count = min(self._options.batch, len(self._answers))
        return [self._answers.popleft() for _ in range(count)]

    def kill(self, partition: int) -> None:
        """Nothing is to be ended."""

    def is_waiting(self, partition: int) -> bool:
        """Each has its machine."""
        return False

    def is_gone(self, partition: int) -> bool:
        """Whoever ended has ended."""
        return True

    def note(self, step: str) -> None:
        """Count the driver's time since the last note, or since the last answers, for a step."""
        self.driver_s[step] += time.process_time() - self._since
        self._since = time.process_time()

    def _answer(self) -> None:
        """Answer all messages; that takes no time of the driver."""
        messages = [(number, decode_for_partition(data)) for number, data in self._messages]
        step = next((_STEPS[type(each)] for _, each in messages if type(each) in _STEPS), None)
        if step is not None:
            self.note(step)
        for number, message in messages:
            for answer in self._answers_to(number, message):
                data = None if answer is None else encode(answer)
                self.received_bytes += len(data or b"")
                self._answers.append((number, data))
        self._messages.clear()
        self._since = time.process_time()

    def _answers_to(self, partition: int, message: ToPartition) -> Iterator[ToDriver | None]:
        counters = Counters(fetched=self._fetched[partition]).to_state()
        if isinstance(message, Begin):
            last = max((file.round for file in message.inbox), default=0)
            self._delivered[partition] = max(self._delivered[partition], last)
            best = tuple(self._random.random() for _ in range(message.priorities))
            yield Ready(
                message.round,
                self._delivered[partition],
                counters,
                0,
                1_000,
                tuple(sorted(best, reverse=True)),
                tuple(self._addresses(partition, message.round)),
                False,
            )
        elif isinstance(message, Run):
            for _ in range(self._options.progress):
                self._fetched[partition] += _PAGES // self._options.progress
                best_link = self._random.random()
                yield Progress(message.round, self._fetched[partition], True, best_link)
        elif isinstance(message, Finish):
            yield Finishing(message.round)
            contents: dict[str, Sequence[bytes]] = {CONTENTS: _CLAIMS}
            others = min(self._options.receivers, self._partitions)
            for to in self._random.sample(range(self._partitions), others):
                contents[links_for(to)] = (_LINK_BATCH,)
            file = write_round_file(self._storage, message.round, partition, "a", contents)
            yield Finished(message.round, file, self._delivered[partition], counters)
        elif isinstance(message, Stop):
            yield Closed(counters)
            yield None

    def _addresses(self, partition: int, number: int) -> Iterator[str]:
        for place in range(self._options.addresses):
            shared = place % 10 == 0
            owner = partition % (self._partitions // 2) if shared else partition
            yield f"10.{owner >> 8}.{owner & 255}.{place}:{number}:{shared}"


def measure(options: argparse.Namespace, partitions: int) -> str:
    """Return the line of a number of partitions."""
    storage = SharedStorage("memory://round-scale", str(partitions))
    executor = AnsweringPartitions(options, partitions, storage)
    starts = [Start(n, partitions, "domain", storage.url, {}) for n in range(partitions)]
    lines: list[str] = []

    def on_round(report: object) -> None:
        executor.note(COMMIT)
        took = executor.driver_s
        steps = " | ".join(f"{took[each]:.2f}" for each in (BEGIN, GRANT, RUN, COMMIT))
        manifest = len(msgspec.msgpack.encode(driver.manifest)) / 1e6
        lines.append(
            f"{partitions:,} | {steps} | {1e3 * sum(took.values()) / partitions:.2f} | "
            f"{1e6 * took[RUN] / partitions / options.progress:.0f} | {manifest:.1f} | "
            f"{executor.sent_bytes / 1e6:.0f} | {executor.received_bytes / 1e6:.0f}"
        )
        took.clear()
        executor.sent_bytes = executor.received_bytes = 0
        driver.should_stop = len(lines) == options.rounds

    driver = RoundDriver(
        Manifest("scale", "focused", partitions, "domain"),
        starts,
        executor,
        storage,
        Budget(pages=options.pages),
        limits=Limits(),
        worth_waiting_for=0.5,
        on_round=on_round,
        clock=time.process_time,
    )
    driver.run()
    return lines[-1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="100,1000,4000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--progress", type=int, default=5, help="messages of a partition in a run")
    parser.add_argument("--receivers", type=int, default=100, help="of links in a round")
    parser.add_argument("--addresses", type=int, default=20, help="new ones in a round")
    parser.add_argument("--pages", type=int, default=10**10)
    parser.add_argument("--batch", type=int, default=100, help="messages received at once")
    options = parser.parse_args()
    print(
        "partitions | begin s | grant s | run s | commit s | ms/partition | us/message in run | "
        "manifest MB | sent MB | received MB"
    )
    for number in options.partitions.split(","):
        print(measure(options, int(number)), flush=True)


if __name__ == "__main__":
    main()
