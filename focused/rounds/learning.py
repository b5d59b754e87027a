"""The link scorer that a driver trains on the examples of all partitions.

Partitions restore its snapshot, which replaces what their own scorers learned.
"""

from __future__ import annotations

import logging

import msgspec

from focused.link_scoring.protocols import OnlineLinkScorer, TrainingExample
from focused.rounds.storage import MissingObjectError, SharedStorage, add_digest, checked

logger = logging.getLogger(__name__)

MAX_EXAMPLES_PER_S = 200.0
"""Examples that all partitions together share in a second; the driver trains on one in 0.04 ms."""
_SNAPSHOT_NAME = "learning/scorer"
_SNAPSHOT_FORMAT = 2

_decode_example = msgspec.msgpack.Decoder(tuple[int, int, TrainingExample]).decode


def encode_example(sender: int, number: int, row: bytes) -> bytes:
    """Return the message of a partition with a training example, for the scorer of all.

    ``row`` is the encoded example; ``number`` grows by one from example to example of a sender.
    """
    return msgspec.msgpack.encode((sender, number, msgspec.Raw(row)))


def sharing_probability(pages_per_s: float) -> float:
    """Return the probability to share an example, when all partitions fetch ``pages_per_s``.

    A partition draws by the URL of the example, so a page that is fetched again is drawn the same.
    """
    return min(1.0, MAX_EXAMPLES_PER_S / max(pages_per_s, 1.0))


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    format: int
    feature_names: tuple[str, ...]
    latest: dict[int, int]
    state: bytes


class SharedLearning:
    """Trains a scorer on shared examples, and keeps snapshots of it in the shared storage."""

    def __init__(self, scorer: OnlineLinkScorer, storage: SharedStorage) -> None:
        self._scorer = scorer
        self._storage = storage
        self._latest: dict[int, int] = {}
        """Number of the last example of each partition."""
        self._restored = b""

    def take(self, message: bytes) -> None:
        """Train on one example, once; one that the scorer cannot use is skipped."""
        try:
            sender, number, example = _decode_example(message)
        except msgspec.ValidationError as error:  # of another version
            logger.warning("an example is not used for training: %s", error)
            return
        # Numbers grow, also after a restart: examples are durable before they are sent.
        if number <= self._latest.get(sender, -1):
            return
        self._latest[sender] = number
        try:
            self._scorer.learn(example)
        except Exception:
            # A user's own scorer may raise; that must not stop the crawl.
            logger.exception("%s could not be used for training", example.url)

    def save(self) -> None:
        """Store a snapshot of the scorer. Raises StorageError."""
        snapshot = _Snapshot(
            _SNAPSHOT_FORMAT,
            tuple(self._scorer.feature_names),
            self._latest,
            self._scorer.state(),
        )
        self._storage.write(_SNAPSHOT_NAME, add_digest(msgspec.msgpack.encode(snapshot)))

    def restore(self) -> bool:
        """Restore the stored snapshot; False if none can be used. Raises StorageError."""
        data = self.read()
        return data is not None and self.use(data)

    def read(self) -> bytes | None:
        """Return the stored snapshot, or None; it may run in any thread. Raises StorageError."""
        try:
            return self._storage.read(_SNAPSHOT_NAME)
        except MissingObjectError:
            return None

    def use(self, data: bytes) -> bool:
        """Restore a snapshot; False if it cannot be used."""
        # Copying the state takes longer than all else.
        before = self._restored or self._scorer.state()
        name = self._storage.name_of(_SNAPSHOT_NAME)
        try:
            snapshot = self._decode(data)
        except (ValueError, msgspec.MsgspecError) as error:
            logger.warning("%s: the link scorer's snapshot is ignored: %s", name, error)
            return False
        try:
            self._scorer.restore(snapshot.state)
        except Exception:
            # Another process may run another version, or a user's own scorer.
            logger.exception("%s: the link scorer's snapshot is ignored", name)
            self._scorer.restore(before)
            return False
        self._latest, self._restored = snapshot.latest, snapshot.state
        return True

    def _decode(self, data: bytes) -> _Snapshot:
        snapshot = msgspec.msgpack.decode(checked(data), type=_Snapshot)
        if snapshot.format != _SNAPSHOT_FORMAT:
            raise ValueError(f"it has format {snapshot.format}, not {_SNAPSHOT_FORMAT}")
        if snapshot.feature_names != tuple(self._scorer.feature_names):
            raise ValueError("its scorer has other features")
        return snapshot
