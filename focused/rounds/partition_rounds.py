"""A partition's side of the rounds: drives its crawl as the driver says.

Everything that takes the storage's time runs in another thread; meanwhile nothing is fetched, and
what is in flight is settled.
"""

from __future__ import annotations

import logging
import math
import platform
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.loop import Crawl
from focused.crawl.policy import Policy
from focused.crawl.steps import Done, Fetch, Step, Wait
from focused.durations import uptime_s
from focused.errors import StorageError
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.rounds.archive_parts import partition_name
from focused.rounds.learning import SharedLearning
from focused.rounds.manifest import (
    CONTENTS,
    DamagedFileError,
    RoundFile,
    StoredState,
    links_for,
    read_section,
    write_round_file,
)
from focused.rounds.messages import (
    Begin,
    Closed,
    Finish,
    Finished,
    Finishing,
    Hold,
    Opened,
    Progress,
    Ready,
    Run,
    Start,
    Stop,
    ToDriver,
    decode_for_partition,
    encode,
)
from focused.rounds.partition import Outgoing, Partition, PartitionMap, build_partition
from focused.rounds.storage import SharedStorage, try_again
from focused.storage.state_store import StateStore
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.rounds.replication import PreparedUpload, Replica

logger = logging.getLogger(__name__)

_POLL_S = 0.02
"""How often the driver's messages are looked for between rounds."""
_RUNNING_POLL_S = 0.1
_PROGRESS_S = 0.1
HEARTBEAT_S = 10.0
"""How often a process that waits for the storage tells that it lives."""
_UNLIMITED = 2**53
"""More pages than any crawl fetches."""
_TRIES = 3
"""Tries to read a section or to write a file, before it has to wait for the next round."""
_MAX_LINKS = 200_000
_MAX_EXAMPLES = 20_000
"""A round's file holds at most so many; the rest follows in the next."""
_UPLOAD_BYTES = 4_000_000
"""Commits of a round that are uploaded before it ends."""
_MAX_PENDING_BYTES = 64_000_000
"""With more commits that are not uploaded, the partition fetches nothing."""
_CLOSING_TRIES = 30
"""Tries to write results; several objects have to be written in one."""


class DriverConnection(Protocol):
    """The connection to the driver."""

    def send_bytes(self, data: bytes, /) -> None:
        """Send a message. Raises OSError."""

    def recv_bytes(self) -> bytes:
        """Return the next message, and wait for it. Raises EOFError and OSError."""

    def poll(self) -> bool:
        """Whether a message, or the end of the connection, has come. Raises OSError."""


@dataclass(slots=True)
class _Inbox:
    """The sections that were read, up to a round, and a new scorer after ``learned`` examples."""

    up_to: int
    learned: int
    links: list[bytes] = field(default_factory=list)
    claims: list[bytes] = field(default_factory=list)
    snapshot: bytes | None = None
    problem: str = ""


_Job = tuple[Future[Any], Callable[[Future[Any], float], None]]
_Stored = tuple[RoundFile, StoredState | None]
"""The file of a round, and the state that it follows from."""


class PartitionRounds:
    """When the crawl of a partition fetches: in the driver's rounds, until their deadlines."""

    def __init__(
        self,
        partition: Partition,
        connection: DriverConnection,
        storage: SharedStorage,
        *,
        learning: SharedLearning | None,
        replica: Replica | None = None,
        driver_lost: Callable[[], object],
        submit: Callable[..., Future[Any]] | None = None,
        clock: Callable[[], float] = uptime_s,
    ) -> None:
        """``driver_lost`` ends the process: it is called when the connection has ended.

        ``learning`` restores the scorer that the driver trains. ``replica`` copies the state to
        the storage, of a crawl on several machines. ``submit`` runs what takes the
        storage's time, by default in a thread of its own. ``clock`` measures deadlines.
        """
        self._partition = partition
        self._connection = connection
        self._storage = storage
        self._learning = learning
        self._replica = replica
        self._driver_lost = driver_lost
        self._clock = clock
        self._attempt = uuid.uuid4().hex[:8]
        self._submit = submit or ThreadPoolExecutor(1, "rounds").submit
        self._round = 0
        self._wanted = 0
        self._deadline = -math.inf
        self._ready_at = 0.0
        self._jobs: deque[_Job] = deque()
        """What runs in the other thread, in its order."""
        self._sent: tuple[int, Outgoing, StoredState | None] | None = None
        """The last round whose file was written, what it has of the outboxes, and the state."""
        self._learned = 0
        self._stop_reason: str | None = None
        self._known_addresses: set[str] = set()
        self._idle = self._is_limited = False
        self._progress_at = 0.0
        self.error: Exception | None = None
        """What :meth:`attend` raised, for :meth:`next` to raise it."""
        self._send(Opened(self._attempt, platform.node(), metadata.version("focused-crawler")))

    @property
    def crawl(self) -> Crawl:
        """The partition's crawl."""
        return self._partition.crawl

    def next(self, now: float) -> Step:
        """Return the next fetch while a round runs."""
        if self.error is not None:
            raise self.error
        if self._stop_reason is not None:
            return Wait(None) if self.crawl.in_flight else Done(self._stop_reason)
        if not self._may_fetch:
            return Wait(now + _POLL_S)
        step = self.crawl.next(now)
        if isinstance(step, Fetch):
            self._idle = False
            return step
        if isinstance(step, Wait):
            until = math.inf if step.until is None else step.until
        elif isinstance(step, Done):
            until = math.inf
        else:
            return step
        self._idle = not self.crawl.in_flight and until - now > self._deadline - self._clock()
        return Wait(min(until, now + _RUNNING_POLL_S))

    def may_connect(self, lease_id: int | None, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent: the round runs, and host and address are free."""
        return self._may_fetch and self.crawl.may_connect(lease_id, url, address, now)

    def is_finished(self, now: float) -> bool:
        """Whether the driver has ended the crawl and nothing is in flight."""
        return self._stop_reason is not None and not self.crawl.in_flight

    def sync(self) -> None:
        """Flush commits to the disk; upload them if they are many."""
        self.crawl.sync()
        replica = self._replica
        if replica is not None and not self._jobs and replica.pending_bytes > _UPLOAD_BYTES:
            self._start_job(partial(replica.upload, replica.prepare()), self._end_upload)

    def close(self, now: float) -> None:
        """Close the crawl and write its results."""
        counters, replica = self.crawl.counters.to_state(), self._replica
        if replica is None:
            self.crawl.close(now)
            self._send(Closed(counters))
            return
        for job, _ in self._jobs:
            wait([job])
        self.crawl.stop(now)
        state, problem = None, ""
        try:
            prepared = replica.prepare()
            state = try_again(lambda: replica.upload(prepared), _CLOSING_TRIES)
            self.crawl.close(now)
            try_again(replica.finish, _CLOSING_TRIES)
        except StorageError as error:
            problem = str(error)
            logger.error("%s", error)
        self._send(Closed(counters, state, problem))

    @property
    def _may_fetch(self) -> bool:
        if self._stop_reason is not None or self._clock() >= self._deadline:
            return False
        return self._replica is None or self._replica.pending_bytes <= _MAX_PENDING_BYTES

    def attend(self, now: float) -> None:
        """Do what the driver says, and go on with what runs in the other thread.

        To be called several times a second, also while all connections of the crawl are in use.
        """
        try:
            while self._connection.poll():
                self._obey(self._connection.recv_bytes(), now)
        except (EOFError, OSError):
            self._lose_driver(now)
        while self._jobs and self._jobs[0][0].done():
            job, end = self._jobs.popleft()
            end(job, now)
        if self._may_fetch:
            self._report_progress(now, _PROGRESS_S)
        elif self._jobs:
            # The storage may take longer than the driver waits for a silent process.
            self._report_progress(now, HEARTBEAT_S)

    def _obey(self, data: bytes, now: float) -> None:
        message = decode_for_partition(data)
        if isinstance(message, Begin):
            self._begin(message, now)
        elif isinstance(message, Run) and message.round == self._round:
            self._run(message)
        elif isinstance(message, Hold) and message.round == self._round:
            self.crawl.training.floor = message.floor
        elif isinstance(message, Finish) and message.round == self._round:
            self._deadline = -math.inf
            self._send(Finishing(self._round))
            self._write(now)
        elif isinstance(message, Stop):
            self._deadline = -math.inf
            self._stop_reason = message.reason

    def _begin(self, message: Begin, now: float) -> None:
        self._round, self._deadline = message.round, -math.inf
        self._wanted = message.priorities
        if self._sent is not None and self._sent[0] <= message.confirmed:
            _, outgoing, state = self._sent
            self._partition.confirm(outgoing, now)
            if self._replica is not None and state is not None:
                self._replica.confirm(state)
            self._sent = None
        self._start_job(partial(self._read, message.inbox, message.learned), self._deliver)

    def _read(self, files: Iterable[RoundFile], learned: int) -> _Inbox:
        """Read what the partition has not got yet, in order; damaged sections are left out.

        A round is delivered as a whole; if the storage fails, those before it.
        """
        inbox = _Inbox(self._partition.delivered, learned)
        new = (file for file in files if file.round > inbox.up_to)
        try:
            if learned > self._learned and self._learning is not None:
                inbox.snapshot = self._learning.read()
            for number, of_round in groupby(list(new), lambda file: file.round):
                links: list[bytes] = []
                claims: list[bytes] = []
                for file in of_round:
                    links += self._read_section(file, links_for(self._partition.number), inbox)
                    claims += self._read_section(file, CONTENTS, inbox)
                inbox.links += links
                inbox.claims += claims
                inbox.up_to = number
        except StorageError as error:
            inbox.problem = str(error)
        return inbox

    def _read_section(self, file: RoundFile, name: str, inbox: _Inbox) -> Sequence[bytes]:
        try:
            return try_again(partial(read_section, self._storage, file, name), _TRIES)
        except DamagedFileError as error:
            inbox.problem = str(error)
            logger.error("%s; it is left out", error)
            return ()

    def _deliver(self, job: Future[_Inbox], now: float) -> None:
        inbox = job.result()
        self._partition.contents.deliver(inbox.claims)
        if inbox.snapshot is not None and self._learning is not None:
            self._learning.use(inbox.snapshot)
            self._learned = inbox.learned
        self._partition.deliver(inbox.links, now, up_to=inbox.up_to)
        crawl = self.crawl
        if self._is_limited:
            self._limit_pages(_UNLIMITED)  # what is left to do does not depend on the grant
        addresses = {host.address for host in crawl.frontier.hosts if host.address}
        new = tuple(sorted(addresses - self._known_addresses))
        self._known_addresses |= addresses
        if inbox.problem:
            logger.warning("the inbox of round %d: %s", self._round, inbox.problem)
        self._ready_at = self._clock()
        self._send(
            Ready(
                self._round,
                self._partition.delivered,
                crawl.counters.to_state(),
                crawl.in_flight_pages,
                len(crawl.frontier),
                tuple(crawl.training.best_priorities(self._wanted, now)),
                new,
                self._is_over(now) and not inbox.problem,
            )
        )

    def _is_over(self, now: float) -> bool:
        return self._partition.is_empty and self.crawl.is_finished(now)

    def _run(self, message: Run) -> None:
        self._deadline = self._ready_at + message.until_s
        self._idle = False
        if message.pages is not None:
            self._is_limited = True
            self._limit_pages(message.pages)
        self.crawl.training.floor = message.floor
        self.crawl.frontier.hosts.share_addresses(message.shared)
        self._partition.examples.probability = message.sharing

    def _limit_pages(self, pages: int) -> None:
        """Replace the budget of pages, those fetched so far included."""
        conditions = self.crawl.stop_conditions
        conditions.budget = replace(conditions.budget, pages=pages)

    def _write(self, now: float) -> None:
        """Write the file of the round in the other thread."""
        outgoing = self._partition.collect(_MAX_LINKS, _MAX_EXAMPLES)
        self.crawl.commit(now)
        self.crawl.sync()
        prepared = None if self._replica is None else self._replica.prepare()
        self._start_job(
            partial(self._store, self._round, outgoing, prepared),
            partial(self._end_write, outgoing),
        )

    def _store(self, number: int, outgoing: Outgoing, prepared: PreparedUpload | None) -> _Stored:
        """Write the file of a round, and what it follows from."""
        state, replica = None, self._replica
        if replica is not None and prepared is not None:
            state = try_again(partial(replica.upload, prepared), _TRIES)
        write = partial(
            write_round_file, self._storage, number, self._partition.number, self._attempt
        )
        return try_again(partial(write, outgoing.sections), _TRIES), state

    def _end_write(self, outgoing: Outgoing, job: Future[_Stored], now: float) -> None:
        file, state, problem = None, None, ""
        try:
            file, state = job.result()
            self._sent = self._round, outgoing, state
        except StorageError as error:
            problem = str(error)
        counters, delivered = self.crawl.counters.to_state(), self._partition.delivered
        self._send(Finished(self._round, file, delivered, counters, problem, state))

    def _end_upload(self, job: Future[StoredState], now: float) -> None:
        try:
            job.result()
        except StorageError as error:
            logger.warning("%s; it is uploaded at the end of the round", error)

    def _start_job(
        self, call: Callable[[], Any], end: Callable[[Future[Any], float], None]
    ) -> None:
        """Run a call in the other thread; ``end`` gets its result."""
        self._jobs.append((self._submit(call), end))

    def _report_progress(self, now: float, every_s: float) -> None:
        at = self._clock()
        if at - self._progress_at >= every_s:
            self._progress_at = at
            best = next(iter(self.crawl.training.best_priorities(1, now)), None)
            fetched = self.crawl.counters.fetched
            self._send(Progress(self._round, fetched, self._idle, best))

    def _send(self, message: ToDriver) -> None:
        try:
            self._connection.send_bytes(encode(message))
        except OSError:
            logger.warning("the driver of the crawl is gone")

    def _lose_driver(self, now: float) -> None:
        """End the process; a new driver starts another one."""
        logger.error("the driver of the crawl is gone: this partition stops")
        self._stop_reason = "the driver is gone"
        self.crawl.stop(now)
        self._driver_lost()


def build_partition_rounds(
    start: Start,
    topic: Topic,
    classifier: TopicClassifier,
    policy: Policy,
    store: StateStore,
    connection: DriverConnection,
    *,
    driver_lost: Callable[[], object],
    submit: Callable[..., Future[Any]] | None = None,
    clock: Callable[[], float] = uptime_s,
    background: Executor | None = None,
    **options: Any,
) -> PartitionRounds:
    """Build the partition that ``start`` names, whose state is in ``store``, with its crawl.

    ``driver_lost``, ``submit`` and ``clock`` as for :class:`PartitionRounds`, ``options`` as for
    :func:`focused.crawl.build.build_crawl`. ``background`` uploads large parts of the state, in
    another thread by default. Raises StorageError.
    """
    storage, replica = SharedStorage.at(start.storage), None
    if start.attempt:
        from focused.rounds.replication import Replica  # only for crawls on several machines

        replica = Replica(
            storage,
            start.partition,
            start.attempt,
            store,
            topic.output.folder,
            restored=start.state,
            background=background or ThreadPoolExecutor(1, "replica"),
            has_tables=topic.output.parquet,
        )
        try_again(replica.begin)
        topic = replace(topic, output=replace(topic.output, parquet=False))
    scorer, learning = policy.scorer, None
    if isinstance(scorer, OnlineLinkScorer):
        learning = SharedLearning(scorer, storage)
    partition = build_partition(
        start.partition,
        topic,
        classifier,
        policy,
        store,
        PartitionMap(start.partitions, start.unit),
        warc_prefix=partition_name(start.partition),
        **options,
    )
    return PartitionRounds(
        partition,
        connection,
        storage,
        learning=learning,
        replica=replica,
        driver_lost=driver_lost,
        submit=submit,
        clock=clock,
    )


def restore_state(start: Start, folder: Path) -> None:
    """Restore the state of a partition into ``folder``, if it keeps it in the storage.

    Raises StorageError.
    """
    if start.attempt:
        from focused.rounds.replication import restore  # only for crawls on several machines

        storage = SharedStorage.at(start.storage)
        try_again(lambda: restore(storage, start.partition, folder, start.state))
