"""A queued link and its queue key: 13 bytes that sort the best link first.

A queue key is the rank, descending, as a double, followed by the link's number in the order of
discovery, which is also the key of its row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import xxhash

Ordering = Callable[[float, int], float]
"""``(score in [0, 1], found_seq) -> priority``; ``found_seq`` counts up from 0."""


def highest_score_first(score: float, found_seq: int) -> float:
    """Order by score."""
    return score


def breadth_first(score: float, found_seq: int) -> float:
    """Order by discovery (Najork and Wiener, WWW 2001)."""
    return -float(found_seq)


@dataclass(frozen=True, slots=True)
class Exploration:
    """Weights of the exploration bonus, in units of priority; both 0: no exploration."""

    new_host_bonus: float = 0.0
    unproductive_penalty: float = 0.0

    def bonus(self, asked: int, unproductive: float) -> float:
        """Return what is added to the priority of a host's best link.

        Like a confidence bound (UCB1: Auer, Cesa-Bianchi, Fischer 2002, "Finite-time analysis of
        the multiarmed bandit problem"), the bonus falls with the root of the pages ``asked`` for,
        from ``new_host_bonus`` on: it outweighs a difference of d for at most (``new_host_bonus`` /
        d)^2 pages. A host loses ``unproductive_penalty`` each time its ``unproductive`` pages are e
        times as many. The bound is per host; sites with unlimited host names are limited by the
        scope.
        """
        return self.new_host_bonus / math.sqrt(
            1.0 + asked
        ) - self.unproductive_penalty * math.log1p(unproductive)


NO_EXPLORATION = Exploration()


def unproductive_after(unproductive: float, relevance: float) -> float:
    """Return the unproductive count after a page of ``relevance`` in [0, 1].

    A page surely on topic resets it, a doubtful one halves it.
    """
    return (unproductive + 1.0) * (1.0 - relevance)


EXEMPT_RANK = 1e6
"""The smallest rank of exempt links, above the ranks of all others."""
_MAX_OTHER_RANK = 999_999.0
PAGE = "page"
"""The purpose of links: fetch the page."""


class QueuedLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a link before its fetch.

    ``key``, 16 bytes, identifies the request: by its URL, unless a spider's own request says
    otherwise. ``score`` is the predicted relevance in [0, 1]; ``priority`` determines the order.
    ``features`` are those behind the score. ``depth`` counts links from the nearest seed, ``hops``
    redirects or nested sitemaps, ``tries`` failed fetches. ``payload`` belongs to the driver,
    ``tag_path_key`` (64 bits) to the scorer. ``purpose`` names the handler of the request
    (:mod:`focused.crawl.purposes`). An ``is_exempt`` link comes before all others, and from hosts
    without budget, too.
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
    purpose: str = PAGE
    is_exempt: bool = False

    @property
    def rank(self) -> float:
        """The link's place in its host's queue and among hosts; larger comes first."""
        if self.is_exempt:
            # A person may have moved an exempt link to a priority below 0.
            return EXEMPT_RANK + max(0.0, self.priority)
        return min(self.priority, _MAX_OTHER_RANK)  # orderings may have any priorities

    def with_rank(self, rank: float) -> QueuedLink:
        """Return the link with the priority of a rank."""
        priority = rank - EXEMPT_RANK if self.is_exempt else rank
        return msgspec.structs.replace(self, priority=priority)


def link_key(text: str) -> bytes:
    """Return 16 bytes that identify a URL (xxh3, 128 bits)."""
    return xxhash.xxh3_128_digest(text.encode())


_DOUBLE = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN, _ALL_BUT_SIGN = 1 << 63, 0x7FFF_FFFF_FFFF_FFFF
NUMBER_BYTES = 5


def queue_key(rank: float, number: int) -> bytes:
    """Return the queue key of a rank and a number from 0 to 2^40 - 1."""
    return _descending(rank) + encode_number(number)


def queue_key_of(rank: float, number: bytes) -> bytes:
    """Return the queue key of a rank and an encoded number."""
    return _descending(rank) + number


def encode_number(number: int) -> bytes:
    """Encode a link's number, for queue keys, the seen set and row keys."""
    return number.to_bytes(NUMBER_BYTES, "big")


def rank_in_key(queue_key: bytes) -> float:
    """Return the rank in a queue key."""
    (bits,) = _BITS.unpack_from(queue_key)
    (rank,) = _DOUBLE.unpack(queue_key[:8] if bits & _SIGN else _BITS.pack(bits ^ _ALL_BUT_SIGN))
    return float(rank)


def number_in_key(queue_key: bytes) -> int:
    """Return the number in a queue key."""
    return int.from_bytes(queue_key[8:], "big")


def _descending(rank: float) -> bytes:
    # IEEE 754 bits sort by magnitude. That is right for negatives here; the others are inverted.
    (bits,) = _BITS.unpack(_DOUBLE.pack(rank))
    return _BITS.pack(bits if bits & _SIGN else bits ^ _ALL_BUT_SIGN)


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """A row of a file that is no queued link: ``where`` it is, and what is wrong."""

    where: str
    problem: str
