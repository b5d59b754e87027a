"""Where each of many hashes stands among those of a vocabulary, for a whole text at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from focused.learning.word_hashes import Hashes

_SLOTS_A_WORD = 8
_LEAST_BITS = 4


class HashIndex:
    """Places of hashes: a table with open addressing, mostly empty.

    Of two words with one hash the later one may stand for both.
    """

    def __init__(self, hashes: Hashes) -> None:
        """``hashes`` has shape (V,)."""
        self._hashes = hashes
        bits = max(_LEAST_BITS, (_SLOTS_A_WORD * len(hashes)).bit_length())
        self._shift = np.uint32(32 - bits)
        self._last = (1 << bits) - 1
        self._table = np.full(1 << bits, -1, np.int32)
        left = np.arange(len(hashes), dtype=np.int32)
        slots = self._slots(hashes)
        while len(left):
            free = self._table[slots] < 0
            self._table[slots[free]] = left[free]
            homeless = self._table[slots] != left
            left, slots = left[homeless], (slots[homeless] + 1) & self._last

    def places(self, hashes: Hashes) -> NDArray[np.int32]:
        """The place of each in the vocabulary, -1 for those that are not in it, shape (n,)."""
        slots = self._slots(hashes)
        found = self._table[slots]
        wrong = self._others(found, hashes, np.arange(len(found)))
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & self._last
            found[wrong] = self._table[slots[wrong]]
            wrong = self._others(found, hashes, wrong)
        return found

    def _slots(self, hashes: Hashes) -> NDArray[np.intp]:
        return (hashes >> self._shift).astype(np.intp)

    def _others(
        self, found: NDArray[np.int32], hashes: Hashes, among: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Those of the places in ``among`` whose slot holds another hash."""
        told = found[among]
        taken = told >= 0
        among, told = among[taken], told[taken]
        return np.asarray(among[self._hashes[told] != hashes[among]])
