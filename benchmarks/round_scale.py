"""What the driver of a crawl in rounds costs, by the number of partitions.

    python benchmarks/round_scale.py --partitions 100,1000,4000,20000

The real driver runs rounds with its messages, files and manifests; partitions only answer, without
a crawl, and the storage is a folder. Times are CPU seconds of the driver alone in the last of the
rounds, by step: until all were told their inboxes (begin), until all may fetch (grant), until the
end of the run, until the manifest of what they wrote is stored (commit).

    python benchmarks/round_scale.py --partitions 20000 --nodes 1000 --leave 0.01 --rounds 30

In each round a share of the nodes is lost while its partitions fetch; their processes start again
on others when the driver allows. Rounds of 60 seconds pass on a simulated clock. The figures are
means of the last half of the rounds.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from tempfile import TemporaryDirectory

import msgspec

from focused.crawl.crawl_stats import Counters
from focused.rounds.driver import RoundDriver, RoundReport
from focused.rounds.manifest import CONTENTS, Manifest, links_for, write_round_file
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

BEGIN, GRANT, RUN, COMMIT = "begin", "grant", "run", "commit"
_STEPS: Mapping[type, str] = {Begin: BEGIN, Run: GRANT, Finish: RUN}
_LINK_BATCH = b"l" * 600
_CLAIMS = (b"c" * 250,) * 4
_PAGES = 60
_BUDGET_PAGES = 10**10
_PROGRESS_MESSAGES = 5
_RECEIVERS = 100
_NEW_ADDRESSES = 20
_RECEIVED_AT_ONCE = 100
_ROUND_S = 60.0


class AnsweringPartitions:
    """An executor whose partitions answer at once; it measures the time of the driver between.

    A round has five messages of progress of each partition. Its file has links for a hundred
    others. Each partition reports twenty new addresses, of which one in ten is shared.
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
        self._passed_s = 0.0
        self._lost: set[int] = set()

    def clock(self) -> float:
        """Return the driver's time: its own CPU, and that of simulated rounds."""
        return time.process_time() + self._passed_s

    def start(self, partition: int, message: bytes) -> None:
        """Open a partition."""
        self._lost.discard(partition)
        self._answers.append((partition, encode(Opened("a", "", ""))))

    def send(self, partition: int, message: bytes) -> None:
        """Keep a message until all partitions have one."""
        self.sent_bytes += len(message)
        self._messages.append((partition, message))

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Return the next answers."""
        if self._messages:
            self._answer()
        count = min(_RECEIVED_AT_ONCE, len(self._answers))
        return [self._answers.popleft() for _ in range(count)]

    def kill(self, partition: int) -> None:
        """Nothing is to be ended."""

    def is_waiting(self, partition: int) -> bool:
        """Each has its machine."""
        return False

    def is_gone(self, partition: int) -> bool:
        """Of processes on lost nodes nobody knows."""
        return not self._options.nodes

    def note(self, step: str) -> None:
        """Count the driver's time since the last note, or since the last answers, for a step."""
        self.driver_s[step] += time.process_time() - self._since
        self._since = time.process_time()

    def _answer(self) -> None:
        """Answer all messages; that takes no time of the driver."""
        began = time.process_time()
        messages = [(number, decode_for_partition(data)) for number, data in self._messages]
        step = next((_STEPS[type(each)] for _, each in messages if type(each) in _STEPS), None)
        if step is not None:
            self.note(step)
        if step == GRANT and self._options.nodes:
            self._lose_nodes()
        for number, message in messages:
            if number in self._lost:
                continue
            for answer in self._answers_to(number, message):
                data = None if answer is None else encode(answer)
                self.received_bytes += len(data or b"")
                self._answers.append((number, data))
        self._messages.clear()
        self._since = time.process_time()
        self._passed_s -= self._since - began

    def _lose_nodes(self) -> None:
        nodes = self._options.nodes
        lost = set(self._random.sample(range(nodes), round(nodes * self._options.leave)))
        ended = [n for n in range(self._partitions) if n % nodes in lost and n not in self._lost]
        self._lost.update(ended)
        self._answers += [(number, None) for number in ended]
        self._passed_s += _ROUND_S

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
            for _ in range(_PROGRESS_MESSAGES):
                self._fetched[partition] += _PAGES // _PROGRESS_MESSAGES
                best_link = self._random.random()
                yield Progress(message.round, self._fetched[partition], True, best_link)
        elif isinstance(message, Finish):
            yield Finishing(message.round)
            contents: dict[str, Sequence[bytes]] = {CONTENTS: _CLAIMS}
            others = min(_RECEIVERS, self._partitions)
            for to in self._random.sample(range(self._partitions), others):
                contents[links_for(to)] = (_LINK_BATCH,)
            file = write_round_file(self._storage, message.round, partition, "a", contents)
            yield Finished(message.round, file, self._delivered[partition], counters)
        elif isinstance(message, Stop):
            yield Closed(counters)
            yield None

    def _addresses(self, partition: int, number: int) -> Iterator[str]:
        for place in range(_NEW_ADDRESSES):
            shared = place % 10 == 0
            owner = partition % (self._partitions // 2) if shared else partition
            yield f"10.{owner >> 8}.{owner & 255}.{place}:{number}:{shared}"


def measure(options: argparse.Namespace, partitions: int) -> str:
    """Return the line of a number of partitions."""
    storage = SharedStorage(f"file://{options.folder}", str(partitions))
    executor = AnsweringPartitions(options, partitions, storage)
    starts = [Start(n, partitions, "domain", storage.url, {}) for n in range(partitions)]
    lines: list[str] = []
    missing: list[int] = []
    driver_s: list[float] = []

    def on_round(report: RoundReport) -> None:
        executor.note(COMMIT)
        took = executor.driver_s
        steps = " | ".join(f"{took[each]:.2f}" for each in (BEGIN, GRANT, RUN, COMMIT))
        manifest = len(msgspec.msgpack.encode(driver.manifest)) / 1e6
        lines.append(
            f"{partitions:,} | {steps} | {1e3 * sum(took.values()) / partitions:.2f} | "
            f"{1e6 * took[RUN] / partitions / _PROGRESS_MESSAGES:.0f} | {manifest:.1f} | "
            f"{executor.sent_bytes / 1e6:.0f} | {executor.received_bytes / 1e6:.0f}"
        )
        missing.append(len(report.missing))
        driver_s.append(sum(took.values()))
        took.clear()
        executor.sent_bytes = executor.received_bytes = 0
        driver.should_stop = len(lines) == options.rounds

    driver = RoundDriver(
        Manifest("scale", "focused", partitions, "domain"),
        starts,
        executor,
        storage,
        Budget(pages=_BUDGET_PAGES),
        limits=Limits(round_s=_ROUND_S) if options.nodes else Limits(),
        worth_waiting_for=0.5,
        on_round=on_round,
        on_problem=lambda problem: None,
        clock=executor.clock,
    )
    driver.run()
    if not options.nodes:
        return lines[-1]
    late = options.rounds // 2
    return (
        f"{partitions:,} | {options.nodes:,} | {options.leave:.1%} | "
        f"{fmean(missing[late:]) / partitions:.2%} | {fmean(driver_s[late:]):.1f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="100,1000,4000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="in which a temporary one is made")
    parser.add_argument("--nodes", type=int, default=0, help="of which some are lost in each round")
    parser.add_argument("--leave", type=float, default=0.01, help="share of nodes that is lost")
    options = parser.parse_args()
    if options.nodes:
        print("partitions | nodes | lost a round | partitions that miss a round | driver s")
    else:
        print(
            "partitions | begin s | grant s | run s | commit s | ms/partition | us/message in run "
            "| manifest MB | sent MB | received MB"
        )
    with TemporaryDirectory(prefix="round-scale-", dir=options.folder) as options.folder:
        for number in options.partitions.split(","):
            print(measure(options, int(number)), flush=True)


if __name__ == "__main__":
    main()
