"""A queued link as a row: some hundred bytes, for most of the frontier is on disk.

What many links share is written once: the host's name is not in the URL
again, the page that links, with the time at which it was read, is one row of
its own (:class:`Sources`), and a path that begins as that page's does is told
from where they part. Numbers are as short as they are exact:
evidence in half precision when that loses nothing, priority and score in
single (the apprentice rounds its own so), else in double.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache

from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.rows import pack, unpack
from focused.frontier.store import StateStore

_SHORT = struct.Struct(">BIBIBBBB")
"""Flags, source, depth, trail, values of evidence, bytes shared, bytes of URL, of anchor."""
_LONG = struct.Struct(">BIHQHBHHBB")
"""The same where a number is larger, and tries, hops."""
_HTTP, _HTTPS, _LARGE, _TAKEN, _OWN, _EXACT, _EXACT_EVIDENCE = (1 << bit for bit in range(7))
_SINGLES, _DOUBLES = struct.Struct(">2f"), struct.Struct(">2d")
_SOURCE = struct.Struct(">I")
_BYTE, _WORD = 0xFF, 0xFFFF
_REMEMBERED = 4_096


class Sources:
    """The pages that link, by number: URL, and when it was read."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        last = store.last_key("sources")
        self._next = 0 if last is None else int.from_bytes(last, "big") + 1
        self._numbers: OrderedDict[str | None, tuple[int, float]] = OrderedDict()
        self._read: OrderedDict[int, tuple[str | None, float]] = OrderedDict()

    def number_of(self, parent: str | None, found_at: float) -> tuple[int, float]:
        """A source's number, and when it was read: at ``found_at`` unless it is known already."""
        known = self._numbers.get(parent)
        if known is None:
            key = self._next.to_bytes(4, "big")
            self._store.put("sources", key, pack((parent, found_at)), last=True)
            known = (self._next, found_at)
            self._next += 1
            self._remember(parent, known)
        return known

    def get(self, number: int) -> tuple[str | None, float]:
        """The source of that number."""
        source = self._read.get(number)
        if source is None:
            raw = self._store.get("sources", number.to_bytes(4, "big"))
            parent, found_at = (None, 0.0) if raw is None else unpack(raw)
            source = self._read[number] = (parent, found_at)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
            # A link that is read is often written again: then its source need not be.
            self._remember(parent, (number, found_at))
        return source

    def _remember(self, parent: str | None, known: tuple[int, float]) -> None:
        self._numbers[parent] = known
        if len(self._numbers) > _REMEMBERED:
            self._numbers.popitem(last=False)


def to_row(link: QueuedLink, sources: Sources, before: bytes | None = None) -> bytes:
    """Write a link; ``before`` is its row as it was, where it had one.

    Texts longer than 65,535 bytes are cut, but for the payload.
    """
    if before is None:
        first, read_at = sources.number_of(link.parent, link.found_at)
        found_by = link.parent
    else:
        (first,) = _SOURCE.unpack_from(before, 1)
        found_by, read_at = sources.get(first)
    origin, flags = _origin_of(link)
    path, anchor = _utf8(link.url[len(origin) :])[:_WORD], _utf8(link.anchor)[:_WORD]
    shared = _shared(path, _reference(origin, found_by))
    orders, exact = _short(_SINGLES, _DOUBLES, (link.priority, link.score))
    count = len(link.evidence)
    evidence, exact_evidence = _short(_halves(count), _doubles(count), link.evidence)
    flags |= _EXACT * exact | _EXACT_EVIDENCE * exact_evidence
    tail = b""
    if link.parent != found_by:
        flags |= _TAKEN
        tail = _SOURCE.pack(sources.number_of(link.parent, link.found_at)[0])
    own_key = link.key if link.key != link_key(link.url) else None
    own_time = link.found_at if link.found_at != read_at else None
    if own_key is not None or own_time is not None or link.payload is not None:
        flags |= _OWN
        tail += pack((own_key, own_time, link.payload))
    head = _head(link, flags, first, (count, shared, len(path) - shared, len(anchor)))
    return b"".join((head, orders, evidence, path[shared:], anchor, tail))


def from_row(row: bytes, host: str, sources: Sources) -> QueuedLink:
    """Read a link of that host."""
    if row[0] & _LARGE:
        at = _LONG.size
        flags, first, depth, trail, count, shared, path_bytes, anchor_bytes, tries, hops = (
            _LONG.unpack_from(row)
        )
    else:
        at, tries, hops = _SHORT.size, 0, 0
        flags, first, depth, trail, count, shared, path_bytes, anchor_bytes = _SHORT.unpack_from(
            row
        )
    found_by, found_at = sources.get(first)
    numbers = _DOUBLES if flags & _EXACT else _SINGLES
    priority, score = numbers.unpack_from(row, at)
    at += numbers.size
    numbers = _doubles(count) if flags & _EXACT_EVIDENCE else _halves(count)
    evidence = numbers.unpack_from(row, at)
    at += numbers.size
    origin = f"{'http' if flags & _HTTP else 'https'}://{host}" if flags & (_HTTP | _HTTPS) else ""
    path = row[at : at + path_bytes]
    if shared:
        path = _reference(origin, found_by)[:shared] + path
    url = origin + path.decode("utf-8", "ignore")
    at += path_bytes
    anchor = row[at : at + anchor_bytes].decode("utf-8", "ignore")
    at += anchor_bytes
    parent, key, payload = found_by, None, None
    if flags & _TAKEN:
        parent, _ = sources.get(_SOURCE.unpack_from(row, at)[0])
        at += _SOURCE.size
    if flags & _OWN:
        key, own_time, payload = unpack(row[at:])
        found_at = found_at if own_time is None else own_time
    return QueuedLink(
        key or link_key(url), url, host, priority, score, depth, parent, anchor, evidence,
        found_at, tries, hops, payload, trail,
    )  # fmt: skip


def _head(link: QueuedLink, flags: int, first: int, lengths: tuple[int, int, int, int]) -> bytes:
    large = max(link.depth, *lengths) > _BYTE or link.trail >> 32 or link.tries or link.hops
    if not large:
        count, shared, path, anchor = lengths
        return _SHORT.pack(flags, first, link.depth, link.trail, count, shared, path, anchor)
    return _LONG.pack(
        flags | _LARGE,
        first,
        min(link.depth, _WORD),
        link.trail,
        *lengths,
        min(link.tries, _BYTE),
        min(link.hops, _BYTE),
    )


def _origin_of(link: QueuedLink) -> tuple[str, int]:
    """What of the URL its host tells, and the flag that says so."""
    for flag, scheme in ((_HTTPS, "https://"), (_HTTP, "http://")):
        origin = scheme + link.host
        if link.url.startswith(origin) and link.url[len(origin) : len(origin) + 1] == "/":
            return origin, flag
    return "", 0


def _reference(origin: str, found_by: str | None) -> bytes:
    """What a link's path may begin with: the path of the page on its host that it was found on."""
    if found_by is None or not origin or not found_by.startswith(origin):
        return b""
    return _utf8(found_by[len(origin) :])


def _shared(path: bytes, reference: bytes) -> int:
    """How many bytes both begin with; at most what a byte can tell."""
    count = 0
    for one, other in zip(path[:_BYTE], reference, strict=False):
        if one != other:
            break
        count += 1
    return count


def _short(
    short: struct.Struct, exact: struct.Struct, numbers: Sequence[float]
) -> tuple[bytes, bool]:
    """The numbers in few bytes when that loses nothing, else exactly, and then True."""
    try:
        row = short.pack(*numbers)
    except OverflowError:
        return exact.pack(*numbers), True
    if short.unpack(row) == tuple(numbers):
        return row, False
    return exact.pack(*numbers), True


@cache
def _halves(count: int) -> struct.Struct:
    return struct.Struct(f">{count}e")


@cache
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f">{count}d")


def _utf8(text: str) -> bytes:
    """Text of the web may hold lone surrogates, which no UTF-8 can write."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
