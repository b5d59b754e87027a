"""Messages between partitions: data only, checked when they are read.

A message is an array in MessagePack. Nothing in it can run code.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from focused.errors import FocusedError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.web.urls import host_of, normalize_url

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
