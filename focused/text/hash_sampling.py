"""Lots drawn by hash: the same text has the same lot on every machine, in every order."""

from __future__ import annotations

import math

import xxhash


def hash_fraction(text: str, seed: int = 0) -> float:
    """A number in [0, 1) that depends on ``text`` and ``seed`` (64 bits) alone."""
    digest = xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed)
    return math.ldexp(digest >> 11, -53)  # as many bits as a float holds: never rounded up to 1
