"""A link as it waits: what is known of it before its fetch."""

from __future__ import annotations

import struct

import msgspec
import xxhash


class QueuedLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a link before its fetch.

    ``key``, 16 bytes, tells it from every other request (its URL, unless a spider's own
    request says otherwise). ``score`` is the probability in [0, 1] that the
    apprentice gave; ``priority`` is what orders. ``features`` are the
    features behind the score. ``depth`` counts links from the nearest seed,
    ``hops`` redirects since the link, or sitemaps that led to sitemaps, ``tries`` failed fetches.
    ``payload`` is a driver's own, opaque here; ``tag_path_key`` the scorer's, at most
    64 bits: where on its page the link stood.
    """

    key: bytes
    url: str
    host: str
    priority: float
    score: float
    depth: int = 0
    parent: str | None = None
    anchor: str = ""
    features: tuple[float, ...] = ()
    found_at: float = 0.0
    tries: int = 0
    hops: int = 0
    payload: str | None = None
    tag_path_key: int = 0


def link_key(text: str) -> bytes:
    """16 bytes that stand for a URL (xxh3, 128 bits)."""
    return xxhash.xxh3_128_digest(text.encode())


_DOUBLE = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN, _ALL_BUT_SIGN = 1 << 63, 0x7FFF_FFFF_FFFF_FFFF
NUMBER_BYTES = 5


def queue_key(priority: float, number: int) -> bytes:
    """The queue_key of the link of that number, from 0 to 2^40 - 1."""
    return _descending(priority) + encode_number(number)


def queue_key_of(priority: float, number: bytes) -> bytes:
    """The same by :func:`encode_number`."""
    return _descending(priority) + number


def encode_number(number: int) -> bytes:
    """The number as it stands in places, in the URL-seen test and as the key of rows."""
    return number.to_bytes(NUMBER_BYTES, "big")


def priority_in_key(queue_key: bytes) -> float:
    """The priority behind a queue_key."""
    (bits,) = _BITS.unpack_from(queue_key)
    (priority,) = _DOUBLE.unpack(
        queue_key[:8] if bits & _SIGN else _BITS.pack(bits ^ _ALL_BUT_SIGN)
    )
    return float(priority)


def number_in_key(queue_key: bytes) -> int:
    """The link's number behind a queue_key."""
    return int.from_bytes(queue_key[8:], "big")


def _descending(priority: float) -> bytes:
    # IEEE 754 bits sort by size but for the sign: those of negatives ascend with their size
    # already, those of the others are inverted.
    (bits,) = _BITS.unpack(_DOUBLE.pack(priority))
    return _BITS.pack(bits if bits & _SIGN else bits ^ _ALL_BUT_SIGN)
