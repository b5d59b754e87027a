"""Messages between the driver of a crawl and its partitions, and from partition to partition.

They are data only, checked when they are read: a message is in MessagePack, and nothing in it can
run code.

A round is: ``Begin``, answered by ``Ready``; ``Run``, during which ``Progress`` comes, sometimes
answered by ``Hold``; ``Finish``, answered by ``Finished``. A partition that was silent answers
late; the round in its answer tells. Links and training examples for others are in the file of the
round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from focused.errors import FocusedError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.rounds.manifest import RoundFile, StoredState
from focused.web.urls import host_of, normalize_url


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

_encode = msgspec.msgpack.Encoder().encode
_to_partition: msgspec.msgpack.Decoder[ToPartition] = msgspec.msgpack.Decoder(ToPartition)
_to_driver: msgspec.msgpack.Decoder[ToDriver] = msgspec.msgpack.Decoder(ToDriver)


class ProtocolError(FocusedError):
    """A message is malformed, or of another version."""


def encode(message: ToPartition | ToDriver) -> bytes:
    """Return a message as bytes."""
    return _encode(message)


def decode_for_partition(data: bytes) -> ToPartition:
    """Return the driver's message. Raises ProtocolError."""
    try:
        return _to_partition.decode(data)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"the driver's message is not understood: {error}") from error


def decode_for_driver(data: bytes) -> ToDriver:
    """Return a partition's message. Raises ProtocolError."""
    try:
        return _to_driver.decode(data)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"a partition's message is not understood: {error}") from error


_Url = Annotated[str, msgspec.Meta(max_length=8_192)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class MessageError(FocusedError):
    """A message is malformed; it is skipped."""


class LinkMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A link whose host belongs to another partition, as its finder scored it."""

    url: _Url
    score: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    depth: _Count
    parent: _Url | None
    anchor: Annotated[str, msgspec.Meta(max_length=1_000)]
    features: Annotated[tuple[float, ...], msgspec.Meta(max_length=255)]
    hops: _Count
    tag_path_key: Annotated[int, msgspec.Meta(ge=0)]


class LinkBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Links from one partition to another.

    ``number`` is that of the last link, and grows from batch to batch of a sender.
    """

    sender: Annotated[int, msgspec.Meta(ge=0)]
    number: Annotated[int, msgspec.Meta(ge=0)]
    links: tuple[LinkMessage, ...]


_UNDECODABLE = msgspec.MsgspecError, UnicodeDecodeError, RecursionError
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LinkBatch)


def encode_batch(batch: LinkBatch) -> bytes:
    """Return a batch as bytes."""
    return _encoder.encode(batch)


def decode_batch(data: bytes) -> LinkBatch:
    """Return the batch. Raises MessageError."""
    try:
        return _decoder.decode(data)
    except _UNDECODABLE as error:
        raise MessageError(f"no batch of links: {error}") from error


def message_of(link: QueuedLink) -> LinkMessage:
    """Return the message about a link."""
    return LinkMessage(
        link.url,
        min(max(link.score, 0.0), 1.0),
        link.depth,
        link.parent,
        link.anchor,
        link.features,
        link.hops,
        link.tag_path_key,
    )


def link_of(message: LinkMessage, now: float) -> QueuedLink:
    """Return the link of a message, found now. Raises MessageError."""
    if not all(map(math.isfinite, (message.score, *message.features))):
        raise MessageError(f"{message.url}: a number of the link is not finite")
    if normalize_url(message.url) != message.url:
        raise MessageError(f"{message.url!r} is no normalised URL")
    return QueuedLink(
        link_key(message.url),
        message.url,
        host_of(message.url),
        priority=0.0,
        score=message.score,
        depth=message.depth,
        parent=message.parent,
        anchor=message.anchor,
        features=message.features,
        found_at=now,
        hops=message.hops,
        tag_path_key=message.tag_path_key,
    )


_MAX_EXAMPLE_BYTES = 100_000
_MAX_URL_CHARS = 8_192
_MAX_ANCHOR_CHARS = 1_000
_MAX_FEATURE = 65_504.0
"""The largest 16-bit float: features are rounded to that precision."""
_MAX_TAG_PATH_KEY = (1 << 64) - 1
_WORD_BYTES = 4


class ExampleMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A training example of a partition, for the scorer of all.

    ``number`` grows by one from example to example.
    """

    sender: _Count
    number: Annotated[int, msgspec.Meta(ge=0)]
    row: msgspec.Raw
    """The row of a :class:`TrainingExample`; :func:`example_of` checks and decodes it."""


_example_decoder = msgspec.msgpack.Decoder(ExampleMessage)


def encode_example(message: ExampleMessage) -> bytes:
    """Return a message as bytes."""
    return _encoder.encode(message)


def decode_example_message(data: bytes) -> ExampleMessage:
    """Return the message of ``data``, with its example still encoded. Raises MessageError."""
    if len(data) > _MAX_EXAMPLE_BYTES:
        raise MessageError(f"a training example of {len(data):,} bytes; malformed or not ours")
    try:
        return _example_decoder.decode(data)
    except _UNDECODABLE as error:
        raise MessageError(f"this is no training example: {error}") from error


def example_of(message: ExampleMessage, features: int) -> TrainingExample:
    """Return the example of a message, for a scorer with so many ``features``.

    Raises MessageError.
    """
    try:
        example = decode_example(message.row)
    except _UNDECODABLE as error:
        raise MessageError(f"this is no training example: {error}") from error
    wrong = _mistake_in(example, features)
    if wrong:
        raise MessageError(f"{example.url[:_MAX_URL_CHARS]!r}: {wrong}")
    return example


def _mistake_in(example: TrainingExample, features: int) -> str:
    if max(len(example.url), len(example.parent)) > _MAX_URL_CHARS:
        return f"a URL of the example is longer than {_MAX_URL_CHARS:,} characters"
    if len(example.anchor) > _MAX_ANCHOR_CHARS:
        return f"the anchor of the example is longer than {_MAX_ANCHOR_CHARS:,} characters"
    if len(example.features) not in (0, features):
        return f"the example has {len(example.features)} features, and the scorer {features}"
    # Comparisons with NaN are false.
    if not all(abs(feature) <= _MAX_FEATURE for feature in example.features):
        return "a feature of the example is not finite or too large"
    if not 0.0 <= example.relevance <= 1.0:
        return f"the relevance of the example is {example.relevance}"
    if example.tempered is not None and not 0.0 <= example.tempered <= 1.0:
        return f"the tempered relevance of the example is {example.tempered}"
    if not 0 <= example.tag_path_key <= _MAX_TAG_PATH_KEY:
        return f"the tag path key of the example is {example.tag_path_key}"
    if len(example.words) % _WORD_BYTES:
        return f"the words of the example take {len(example.words)} bytes"
    return ""
