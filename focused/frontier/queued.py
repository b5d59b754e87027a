"""A link as it waits: one row of the frontier."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import xxhash


@dataclass(frozen=True, slots=True)
class QueuedLink:
    """What is known of a link before its fetch.

    ``key`` tells it from every other request (its URL, unless a spider's own
    request says otherwise). ``score`` is the probability in [0, 1] that the
    apprentice gave; ``priority`` is what orders. ``evidence`` are the
    features behind the score. ``depth`` counts links from the nearest seed,
    ``hops`` redirects since the link, ``tries`` failed fetches.
    ``payload`` is a driver's own, opaque here.
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


def link_key(text: str) -> bytes:
    """16 bytes that stand for a URL (xxh3, 128 bits: no collision to be expected)."""
    return xxhash.xxh3_128_digest(text.encode())


def to_bytes(link: QueuedLink) -> bytes:
    """Serialise all but the key, which the row's place in the store knows."""
    fields = (
        link.url, link.host, link.priority, link.score, link.depth, link.parent, link.anchor,
        [round(value, 4) for value in link.evidence], link.found_at, link.tries, link.hops,
        link.payload,
    )  # fmt: skip
    return link.key + json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def from_bytes(row: bytes) -> QueuedLink:
    """Read a row back."""
    (
        url,
        host,
        priority,
        score,
        depth,
        parent,
        anchor,
        evidence,
        found_at,
        tries,
        hops,
        payload,
    ) = json.loads(row[16:])
    return QueuedLink(
        row[:16], url, host, priority, score, depth, parent, anchor, tuple(evidence),
        found_at, tries, hops, payload,
    )  # fmt: skip


def descending(priority: float) -> bytes:
    """Eight bytes that sort larger priorities first.

    The IEEE 754 bits, made monotone (sign bit flipped, or all bits for
    negatives), then inverted.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", priority))
    ordered = bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 1 << 63)
    return int.to_bytes(ordered ^ 0xFFFF_FFFF_FFFF_FFFF, 8, "big")


def priority_of(queue_key: bytes) -> float:
    """The priority behind a queue key's bytes 4 to 12; inverse of :func:`descending`."""
    ordered = int.from_bytes(queue_key[4:12], "big") ^ 0xFFFF_FFFF_FFFF_FFFF
    bits = ordered ^ (1 << 63 if ordered >> 63 else 0xFFFF_FFFF_FFFF_FFFF)
    (priority,) = struct.unpack(">d", struct.pack(">Q", bits))
    return float(priority)
