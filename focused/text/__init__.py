"""Text processing: tokens, word hashes, document vectors and content signatures."""

from __future__ import annotations

import math

import xxhash


def hash_fraction(text: str, seed: int = 0) -> float:
    """Return a number in [0, 1) that depends only on ``text`` and ``seed`` (64 bits).

    Samples that are drawn by it don't depend on machine and order.
    """
    digest = xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed)
    return math.ldexp(digest >> 11, -53)  # 53 bits fit a float: never rounds up to 1
