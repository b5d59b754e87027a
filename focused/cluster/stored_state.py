"""What names a partition's state in shared storage: the manifest of a round has it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

STATE_FORMAT = 1


class SegmentRun(NamedTuple):
    """Segments with consecutive numbers, written by one attempt."""

    attempt: int
    first: int
    last: int


class StoredState(msgspec.Struct, frozen=True):
    """A snapshot, and the segments of commits that follow it, oldest first.

    ``attempt`` is the process that stored it, ``snapshot`` a path in the partition's folder, with
    the object's ``bytes`` and ``checksum``. ``segment_bytes`` are those of the segments.
    ``next_segment`` is the number that the attempt uses next, ``warc`` that of the WARC file to
    which it appends.
    """

    attempt: int
    snapshot: str
    bytes: int
    checksum: int
    runs: tuple[SegmentRun, ...] = ()
    segment_bytes: int = 0
    next_segment: int = 1
    warc: int = 1
    format: int = STATE_FORMAT
