"""Messages between the driver of a crawl and its partitions.

They are data only, checked when they are read: a message is in MessagePack, and nothing in it can
run code.

A round is: ``Begin``, answered by ``Ready``; ``Run``, during which ``Progress`` comes, sometimes
answered by ``Hold``; ``Finish``, answered by ``Finished``. A partition that was silent answers
late; the round in its answer tells. What partitions have for each other is in the files of the
round (:mod:`focused.rounds.outbox`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from focused.errors import StateError
from focused.rounds.manifest import RoundFile, StoredState


class Start(msgspec.Struct, frozen=True, tag=True):
    """The first message to a process: which partition of which crawl it runs.

    ``storage`` is the URL of the crawl's shared storage, ``settings`` are Scrapy's. ``attempt``
    numbers the processes of a crawl on several machines, 0 is one that keeps its state to its
    machine. Another one restores ``state``; it finds the content of ``files`` in the storage by
    checksum. Variables of its ``environment`` and ``secret_files`` are in no storage.
    """

    partition: int
    partitions: int
    unit: str
    storage: str
    settings: Mapping[str, Any]
    attempt: int = 0
    state: StoredState | None = None
    files: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    secret_files: Mapping[str, bytes] = {}


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Deliver the sections of ``inbox``, and tell what there is to fetch.

    ``confirmed`` is the last round whose file of this partition a manifest names. ``priorities``
    is how many are wanted. ``learned`` counts the examples that the scorer in storage has seen.
    """

    round: int
    inbox: tuple[RoundFile, ...]
    confirmed: int
    priorities: int
    learned: int


class Run(msgspec.Struct, frozen=True, tag=True):
    """Fetch until ``until_s`` after :class:`Ready` was sent, at most ``pages`` in all.

    ``pages`` counts those fetched so far, None is without limit. ``floor`` as for :class:`Hold`.
    ``shared`` has the number of partitions with hosts at an address, where there are several.
    ``sharing`` is the probability to share a training example.
    """

    round: int
    until_s: float
    pages: int | None
    floor: float
    shared: Mapping[str, int]
    sharing: float


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Fetch nothing from hosts whose priority is below ``floor``: others have better links."""

    round: int
    floor: float


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Fetch nothing more, and write the file of the round."""

    round: int


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Close the crawl and end."""

    reason: str


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The partition's crawl is open, on a machine, by a version of this package."""

    attempt: str
    machine: str
    version: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """What a partition has, after its inbox was delivered.

    ``is_over``: it has no work, nothing in flight and nothing to send. ``addresses`` are those of
    its hosts that it did not report before.
    """

    round: int
    delivered: int
    counters: Mapping[str, Any]
    in_flight: int
    queued: int
    priorities: tuple[float, ...]
    addresses: tuple[str, ...]
    is_over: bool


class Progress(msgspec.Struct, frozen=True, tag=True):
    """Pages fetched so far, in all rounds, and the priority of the best link that is due soon.

    Idle: nothing is in flight, and nothing to fetch before the round's deadline.
    """

    round: int
    fetched: int
    is_idle: bool
    best: float | None


class Finishing(msgspec.Struct, frozen=True, tag=True):
    """Nothing more is sent in this round; its file is being written."""

    round: int


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The file of a round was written; None if that failed, and ``problem`` tells why.

    ``delivered`` is the last round of whose files the partition has durably got its sections.
    ``state`` is what was stored before.
    """

    round: int
    file: RoundFile | None
    delivered: int
    counters: Mapping[str, Any]
    problem: str = ""
    state: StoredState | None = None


class Closed(msgspec.Struct, frozen=True, tag=True):
    """The partition's crawl was closed and its results are written.

    ``problem`` tells why not. ``state`` is what was stored before.
    """

    counters: Mapping[str, Any]
    state: StoredState | None = None
    problem: str = ""


ToPartition = Start | Begin | Run | Hold | Finish | Stop
ToDriver = Opened | Ready | Progress | Finishing | Finished | Closed

_to_partition: msgspec.msgpack.Decoder[ToPartition] = msgspec.msgpack.Decoder(ToPartition)
_to_driver: msgspec.msgpack.Decoder[ToDriver] = msgspec.msgpack.Decoder(ToDriver)
encode = msgspec.msgpack.Encoder().encode
"""Returns a message as bytes."""
decode_for_partition = _to_partition.decode
"""Returns the message of the driver. Raises msgspec.MsgspecError."""


def decode_for_driver(partition: int, data: bytes) -> ToDriver:
    """Return the message of a partition. Raises StateError."""
    try:
        return _to_driver.decode(data)
    except msgspec.MsgspecError as error:
        raise StateError(
            f"partition {partition}: its message is not understood: {error}"
        ) from error
