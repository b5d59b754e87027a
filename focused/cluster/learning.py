"""One scorer per worker, trained on the examples of all partitions.

Every partition publishes its training examples; every worker trains on all of them, in the order of
the stream, so that the scorers of all workers are equal but for what they have not read yet. A
worker that joins restores the newest snapshot and reads on from there.

A worker should not spend its time on the examples of others: :func:`sharing_probability`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec
import xxhash

from focused.cluster.exchange import BEGINNING, MAX_PUBLISHED, Exchange
from focused.cluster.messages import (
    ExampleMessage,
    MessageError,
    decode_example_message,
    example_of,
)
from focused.link_scoring.protocols import OnlineLinkScorer

logger = logging.getLogger(__name__)

MAX_EXAMPLES_PER_S = 200.0
"""Examples that all workers together share in a second.

Training on one takes about 0.04 ms, so a worker spends 1% of its time on them. 2 kB each are sent
to Redis once, and from there to every worker.
"""
EXAMPLES_PER_SNAPSHOT = MAX_PUBLISHED // 4
"""Examples between two snapshots: well below what the stream keeps."""
_SNAPSHOT_NAME = "learning/scorer"
_SNAPSHOT_FORMAT = 1
_DIGEST_BYTES = 16
_MESSAGES_AT_ONCE = 500


def sharing_probability(
    pages_per_s: float, max_examples_per_s: float = MAX_EXAMPLES_PER_S
) -> float:
    """Return the probability to share an example, when all workers fetch ``pages_per_s``.

    A partition draws by the URL of the example, so a page that is fetched again is drawn the same.
    """
    return 1.0 if pages_per_s <= max_examples_per_s else max_examples_per_s / pages_per_s


class ObjectStore(Protocol):
    """The shared storage, as far as scorers and models need it. Methods raise StorageError."""

    def exists(self, name: str) -> bool:
        """Whether there is an object."""

    def read(self, name: str) -> bytes:
        """Return the content of an object."""

    def write(self, name: str, content: bytes) -> None:
        """Write an object, or replace it as a whole."""


@dataclass(slots=True)
class LearningCounts:
    """Examples that were trained on, and those that were not.

    ``repeated`` came before, or from an owner that was replaced; ``malformed`` ones are skipped; at
    ``failed`` ones the scorer raised an error; ``missed`` ones were trimmed before they were read.
    """

    learned: int = 0
    repeated: int = 0
    malformed: int = 0
    failed: int = 0
    missed: int = 0


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    format: int
    feature_names: tuple[str, ...]
    position: str
    latest: dict[int, tuple[int, int]]
    state: bytes


class SharedLearning:
    """Trains the scorer of a worker on the published examples of all partitions."""

    def __init__(
        self, scorer: OnlineLinkScorer, exchange: Exchange, storage: ObjectStore | None = None
    ) -> None:
        """Without ``storage`` there are no snapshots: all workers start together."""
        self.counts = LearningCounts()
        self._scorer = scorer
        self._exchange = exchange
        self._storage = storage
        self._position = BEGINNING
        self._since_snapshot = 0
        self._latest: dict[int, tuple[int, int]] = {}
        """Token and number of the last example of each partition."""

    @property
    def is_snapshot_due(self) -> bool:
        """Whether one worker, the leading one, is to call :meth:`save`."""
        return self._storage is not None and self._since_snapshot >= EXAMPLES_PER_SNAPSHOT

    def learn(self, limit: int = _MESSAGES_AT_ONCE) -> int:
        """Train on the next examples; return how many messages were read, 0 at the end.

        Raises ExchangeError.
        """
        entries = self._exchange.published(self._position, limit)
        for entry in entries:
            self.take(entry.batch)
            self._position = entry.position
        return len(entries)

    def take(self, message: bytes) -> None:
        """Train on one published example; a malformed one is counted and skipped."""
        try:
            self._take(message)
        except MessageError as error:
            self.counts.malformed += 1
            logger.warning("a training example is skipped: %s", error)
        self._since_snapshot += 1

    def save(self) -> None:
        """Store a snapshot of the scorer for workers that join. Raises StorageError."""
        self.prepare_snapshot()()

    def prepare_snapshot(self) -> Callable[[], object]:
        """Take a snapshot; return what stores it, which may run in another thread."""
        snapshot = _Snapshot(
            _SNAPSHOT_FORMAT,
            tuple(self._scorer.feature_names),
            self._position,
            self._latest,
            self._scorer.state(),
        )
        data = msgspec.msgpack.encode(snapshot)
        self._since_snapshot = 0
        if self._storage is None:
            return bool
        return partial(self._storage.write, _SNAPSHOT_NAME, xxhash.xxh3_128_digest(data) + data)

    def restore(self) -> bool:
        """Restore the newest snapshot, before the first example; False if none can be used.

        Raises StorageError.
        """
        data = self.read()
        return data is not None and self.use(data)

    def read(self) -> bytes | None:
        """Return the newest snapshot, or None; it may run in any thread. Raises StorageError."""
        if self._storage is None or not self._storage.exists(_SNAPSHOT_NAME):
            return None
        return self._storage.read(_SNAPSHOT_NAME)

    def use(self, data: bytes) -> bool:
        """Restore a snapshot; False if it cannot be used."""
        before = self._scorer.state()
        try:
            snapshot = self._decode(data)
            self._scorer.restore(snapshot.state)
        except Exception:
            # A worker may run another version, or a user's own scorer.
            logger.exception(
                "the snapshot %r of the link scorer in the shared storage is ignored; "
                "this worker learns from the examples that the stream still has",
                _SNAPSHOT_NAME,
            )
            self._scorer.restore(before)
            return False
        self._position = snapshot.position
        self._latest = snapshot.latest
        return True

    def _decode(self, data: bytes) -> _Snapshot:
        digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if xxhash.xxh3_128_digest(content) != digest:
            raise ValueError("its digest does not match: it is damaged")
        snapshot = msgspec.msgpack.decode(content, type=_Snapshot)
        if snapshot.format != _SNAPSHOT_FORMAT:
            raise ValueError(f"it has format {snapshot.format}, not {_SNAPSHOT_FORMAT}")
        if snapshot.feature_names != tuple(self._scorer.feature_names):
            raise ValueError("its scorer has other features")
        return snapshot

    def _take(self, data: bytes) -> None:
        message = decode_example_message(data)
        if not self._is_new(message):
            self.counts.repeated += 1
            return
        example = example_of(message, len(self._scorer.feature_names))
        try:
            self._scorer.learn(example)
        except Exception:
            # A user's own scorer may raise; that must not stop the worker.
            self.counts.failed += 1
            logger.exception("%s could not be used for training", example.url)
            return
        self.counts.learned += 1

    def _is_new(self, message: ExampleMessage) -> bool:
        """Whether an example came for the first time, from no replaced owner.

        The numbers of an owner go on where those of the one before it ended, because examples are
        durable before they are sent.
        """
        token, number = self._latest.get(message.sender, (0, -1))
        if message.token < token or message.number <= number:
            return False
        missed = message.number - number - 1
        if missed:
            self.counts.missed += missed
            logger.warning(
                "partition %d: %d training examples were removed from the stream before this "
                "worker read them; its link scores differ a little from those of other workers",
                message.sender,
                missed,
            )
        self._latest[message.sender] = (message.token, message.number)
        return True
