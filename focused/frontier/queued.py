"""A link as it waits: one row of the frontier."""

from __future__ import annotations

import struct

import msgspec
import xxhash

from focused.frontier.rows import pack

_DOUBLE = struct.Struct(">d")
_ALL_BUT_SIGN = 0x7FFF_FFFF_FFFF_FFFF


class QueuedLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a link before its fetch.

    ``key`` tells it from every other request (its URL, unless a spider's own
    request says otherwise). ``score`` is the probability in [0, 1] that the
    apprentice gave; ``priority`` is what orders. ``evidence`` are the
    features behind the score. ``depth`` counts links from the nearest seed,
    ``hops`` redirects since the link, ``tries`` failed fetches.
    ``payload`` is a driver's own, opaque here; ``trail`` the scorer's: where
    on its page the link stood.
    """

    key: bytes
    url: str
    host: str
    priority: float
    score: float
    depth: int = 0
    parent: str | None = None
    anchor: str = ""
    evidence: tuple[float, ...] = ()
    found_at: float = 0.0
    tries: int = 0
    hops: int = 0
    payload: str | None = None
    trail: int = 0


def link_key(text: str) -> bytes:
    """16 bytes that stand for a URL (xxh3, 128 bits: no collision to be expected)."""
    return xxhash.xxh3_128_digest(text.encode())


to_bytes = pack
from_bytes = msgspec.msgpack.Decoder(QueuedLink).decode


def descending(priority: float) -> bytes:
    """Eight bytes that sort larger priorities first.

    IEEE 754 bits sort by size but for the sign: those of negatives ascend
    with their size already, those of the others are inverted.
    """
    raw = _DOUBLE.pack(priority)
    if raw[0] & 0x80:
        return raw
    return (int.from_bytes(raw, "big") ^ _ALL_BUT_SIGN).to_bytes(8, "big")


def priority_of(queue_key: bytes) -> float:
    """The priority behind a queue key's bytes 4 to 12; inverse of :func:`descending`."""
    raw = queue_key[4:12]
    if not raw[0] & 0x80:
        raw = (int.from_bytes(raw, "big") ^ _ALL_BUT_SIGN).to_bytes(8, "big")
    (priority,) = _DOUBLE.unpack(raw)
    return float(priority)
