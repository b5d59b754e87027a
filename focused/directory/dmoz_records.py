"""A DMOZ dump cut into its records, whatever became of it on the way.

The dumps are flat: topics and pages, one after the other. So a record can be found by
its tags alone, and one that is broken costs no other: it ends where the next begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_RECORD_BYTES = 1_000_000

# Topic is a record, topic an element of one: case tells them apart.
_TAG = re.compile(rb"<(/?)(ExternalPage|Topic|Alias)(?=[\s/>])")
_TAIL_BYTES = len(b"</ExternalPage>") - 1


@dataclass(frozen=True, slots=True)
class DmozRecord:
    """``kind`` is the element's name; ``is_whole`` tells whether its end tag came."""

    kind: bytes
    content: bytes
    is_whole: bool


def dmoz_records(chunks: Iterable[bytes]) -> Iterator[DmozRecord]:
    """The records in a stream of bytes; what stands between them is skipped.

    Of one longer than :data:`MAX_RECORD_BYTES` the beginning is given, as not whole, so
    memory is bounded by that and the largest chunk.
    """
    rest, kind, searched = b"", b"", 0
    for chunk in chunks:
        rest += chunk
        start = 0
        for tag in _TAG.finditer(rest, searched):
            opens = not tag[1]
            if kind and (opens or tag[2] == kind):
                end = tag.start() if opens else tag.end() + 1
                yield DmozRecord(kind, rest[start:end], is_whole=not opens)
                kind = b""
            if opens:
                start, kind = tag.start(), tag[2]
        if kind and len(rest) - start > MAX_RECORD_BYTES:
            yield DmozRecord(kind, rest[start : start + MAX_RECORD_BYTES], is_whole=False)
            kind = b""
        rest = rest[start:] if kind else rest[-_TAIL_BYTES:]
        # A tag that the chunk's end cut in two is found with the next chunk.
        searched = max(len(rest) - _TAIL_BYTES, len(kind) + 1 if kind else 0)
    if kind:
        yield DmozRecord(kind, rest, is_whole=False)
