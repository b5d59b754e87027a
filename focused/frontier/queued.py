"""A link as it waits: what is known of it before its fetch."""

from __future__ import annotations

import msgspec
import xxhash


class QueuedLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a link before its fetch.

    ``key``, 16 bytes, tells it from every other request (its URL, unless a spider's own
    request says otherwise). ``score`` is the probability in [0, 1] that the
    apprentice gave; ``priority`` is what orders. ``evidence`` are the
    features behind the score. ``depth`` counts links from the nearest seed,
    ``hops`` redirects since the link, or sitemaps that led to sitemaps, ``tries`` failed fetches.
    ``payload`` is a driver's own, opaque here; ``trail`` the scorer's, at most
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
    evidence: tuple[float, ...] = ()
    found_at: float = 0.0
    tries: int = 0
    hops: int = 0
    payload: str | None = None
    trail: int = 0


def link_key(text: str) -> bytes:
    """16 bytes that stand for a URL (xxh3, 128 bits)."""
    return xxhash.xxh3_128_digest(text.encode())
