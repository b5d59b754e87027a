"""Powers of a base and of its inverse, modulo 2**32 or 2**64, as rolling hashes of words need them.

Of as many as the longest text needed so far, for they are megabytes.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", np.uint32, np.uint64)

_FEWEST = 1 << 16


def powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    """The powers of an odd base from 0 on, and of its inverse: ``count`` at least of each."""
    return _powers(base, max(_FEWEST, 1 << (count - 1).bit_length()))


@cache
def _powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    inverse = type(base)(pow(int(base), -1, 1 << 8 * base.nbytes))
    return _of(base, count), _of(inverse, count)


def _of(factor: _Number, count: int) -> NDArray[_Number]:
    factors = np.full(count, factor)
    factors[0] = 1
    return np.cumprod(factors, dtype=type(factor))
