"""What one fetched page teaches: a row, so that it can be taught again after a restart."""

from __future__ import annotations

import msgspec


class Lesson(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The link that led to a page, and what the page was.

    ``url``, ``anchor``, ``parent``, ``trail`` and ``evidence`` are the link's as
    it was fetched; a seed has no evidence. ``words`` are the hashes of the page's
    first words, four bytes each, the smallest first. ``relevance`` in [0, 1] is the judge's.
    """

    url: str
    anchor: str
    parent: str
    trail: int
    evidence: tuple[float, ...]
    words: bytes
    relevance: float


to_bytes = msgspec.msgpack.Encoder().encode
from_bytes = msgspec.msgpack.Decoder(Lesson).decode
