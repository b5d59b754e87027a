"""A link's place in its host's queue: 13 bytes that sort the best link first.

Priority, descending, as a double; then the link's number in the order of
discovery, which is also the key of its row.
"""

from __future__ import annotations

import struct

_DOUBLE = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN, _ALL_BUT_SIGN = 1 << 63, 0x7FFF_FFFF_FFFF_FFFF
NUMBER_BYTES = 5


def place(priority: float, number: int) -> bytes:
    """The place of the link of that number, from 0 to 2^40 - 1."""
    return _descending(priority) + number_bytes(number)


def place_of(priority: float, number: bytes) -> bytes:
    """The same by :func:`number_bytes`."""
    return _descending(priority) + number


def number_bytes(number: int) -> bytes:
    """The number as it stands in places, in the URL-seen test and as the key of rows."""
    return number.to_bytes(NUMBER_BYTES, "big")


def priority_of(place: bytes) -> float:
    """The priority behind a place."""
    (bits,) = _BITS.unpack_from(place)
    (priority,) = _DOUBLE.unpack(place[:8] if bits & _SIGN else _BITS.pack(bits ^ _ALL_BUT_SIGN))
    return float(priority)


def number_of(place: bytes) -> int:
    """The link's number behind a place."""
    return int.from_bytes(place[8:], "big")


def _descending(priority: float) -> bytes:
    # IEEE 754 bits sort by size but for the sign: those of negatives ascend with their size
    # already, those of the others are inverted.
    (bits,) = _BITS.unpack(_DOUBLE.pack(priority))
    return _BITS.pack(bits if bits & _SIGN else bits ^ _ALL_BUT_SIGN)
