"""A queued link as a row: some hundred bytes, for most of the frontier is on disk.

What many links share is written once: the host's name is not in the URL
again, and the page that links, with the time at which it was read, is one
row of its own (:class:`LinkSources`). Numbers are as short as they are exact:
features in half precision when that loses nothing, priority and score in
single (the apprentice rounds its own so), else in double.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from functools import cache
from typing import Protocol

from msgspec.structs import astuple
from xxhash import xxh3_128_digest

from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables

_HEAD = struct.Struct(">BIHBBQHHH")
"""Flags, source, depth, tries, hops, tag_path_key, values of features, bytes of URL, anchor."""
_HTTP, _HTTPS, _OWN_KEY, _OWN_PAYLOAD, _OWN_TIME, _EXACT, _EXACT_EVIDENCE = (
    1 << bit for bit in range(7)
)
_SINGLES, _DOUBLES, _DOUBLE = struct.Struct(">2f"), struct.Struct(">2d"), struct.Struct(">d")
_MAX_UINT16, _MAX_UINT8 = 0xFFFF, 0xFF
_KEY_BYTES = 16
_CACHED_SOURCES = 4_096


class LinkSources:
    """The pages that link, by number: URL, and when it was read."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        last = tables.last_key("sources")
        self._next = 0 if last is None else int.from_bytes(last, "big") + 1
        self._numbers: OrderedDict[str | None, tuple[int, float]] = OrderedDict()
        self._read: OrderedDict[int, tuple[str | None, float]] = OrderedDict()

    def number_of(self, parent: str | None, found_at: float) -> tuple[int, float]:
        """A source's number, and when it was read: at ``found_at`` unless it is known already."""
        known = self._numbers.get(parent)
        if known is None:
            key = self._next.to_bytes(4, "big")
            self._tables.put("sources", key, pack((parent, found_at)), last=True)
            known = (self._next, found_at)
            self._next += 1
            self._remember(parent, known)
        return known

    def get(self, number: int) -> tuple[str | None, float]:
        """The source of that number."""
        source = self._read.get(number)
        if source is None:
            raw = self._tables.get("sources", number.to_bytes(4, "big"))
            if raw is None:
                raise self._tables.damaged("sources", f"source number {number} has no row")
            parent, found_at = unpack(raw)
            source = self._read[number] = (parent, found_at)
            if len(self._read) > _CACHED_SOURCES:
                self._read.popitem(last=False)
            # A link that is read is often written again: then its source need not be.
            self._remember(parent, (number, found_at))
        return source

    def _remember(self, parent: str | None, known: tuple[int, float]) -> None:
        self._numbers[parent] = known
        if len(self._numbers) > _CACHED_SOURCES:
            self._numbers.popitem(last=False)


def encode_link(link: QueuedLink, sources: LinkSources) -> bytes:
    """Write a link; what is longer than 65,535 bytes is cut, but for the payload."""
    (
        key, url, host, priority, score, depth, parent, anchor, told, found_at,
        tries, hops, payload, tag_path_key,
    ) = astuple(link)  # fmt: skip
    spelled = _utf8(url)
    flags, begins = (_HTTPS, 8) if url.startswith("https://") else (_HTTP, 7)
    path_at = begins + len(host)
    if url[begins : path_at + 1] == f"{host}/" and (flags == _HTTPS or url.startswith("http://")):
        path = spelled[path_at:] if url.isascii() else _utf8(url[path_at:])
    else:
        flags, path = 0, spelled
    count = len(told)
    orders, exact = _short(_SINGLES, _DOUBLES, (priority, score))
    features, exact_evidence = _short(_halves(count), _doubles(count), told)
    flags |= _EXACT * exact | _EXACT_EVIDENCE * exact_evidence
    source, read_at = sources.number_of(parent, found_at)
    tail = b""
    if read_at != found_at:
        flags |= _OWN_TIME
        tail = _DOUBLE.pack(found_at)
    if key != xxh3_128_digest(spelled):
        flags |= _OWN_KEY
        tail += key
    if payload is not None:
        flags |= _OWN_PAYLOAD
        tail += pack(payload)
    anchored = _utf8(anchor)
    if len(path) > _MAX_UINT16 or len(anchored) > _MAX_UINT16:
        path, anchored = path[:_MAX_UINT16], anchored[:_MAX_UINT16]
    head = _HEAD.pack(
        flags,
        source,
        depth if depth < _MAX_UINT16 else _MAX_UINT16,
        tries if tries < _MAX_UINT8 else _MAX_UINT8,
        hops if hops < _MAX_UINT8 else _MAX_UINT8,
        tag_path_key,
        count,
        len(path),
        len(anchored),
    )
    return b"".join((head, orders, features, path, anchored, tail))


class SourceReader(Protocol):
    """Where :func:`decode_link` looks up the page that links."""

    def get(self, number: int) -> tuple[str | None, float]:
        """The URL of the source of that number, and when it was read."""
        ...


def decode_link(
    row: bytes, host: str, sources: SourceReader, key: bytes | None = None
) -> QueuedLink:
    """Read a link of that host; ``key`` is the link's, where it is known."""
    flags, source, depth, tries, hops, tag_path_key, count, path_bytes, anchor_bytes = (
        _HEAD.unpack_from(row)
    )
    at = _HEAD.size
    numbers = _DOUBLES if flags & _EXACT else _SINGLES
    priority, score = numbers.unpack_from(row, at)
    at += numbers.size
    numbers = _doubles(count) if flags & _EXACT_EVIDENCE else _halves(count)
    features = numbers.unpack_from(row, at)
    at += numbers.size
    url = row[at : at + path_bytes].decode("utf-8", "ignore")
    at += path_bytes
    anchor = row[at : at + anchor_bytes].decode("utf-8", "ignore")
    at += anchor_bytes
    if flags & _HTTP:
        url = f"http://{host}{url}"
    elif flags & _HTTPS:
        url = f"https://{host}{url}"
    parent, found_at = sources.get(source)
    if flags & _OWN_TIME:
        (found_at,) = _DOUBLE.unpack_from(row, at)
        at += _DOUBLE.size
    if flags & _OWN_KEY:
        key = row[at : at + _KEY_BYTES]
        at += _KEY_BYTES
    elif key is None:
        key = link_key(url)
    payload = unpack(row[at:]) if flags & _OWN_PAYLOAD else None
    return QueuedLink(
        key, url, host, priority, score, depth, parent, anchor, features, found_at,
        tries, hops, payload, tag_path_key,
    )  # fmt: skip


def _short(
    short: struct.Struct, exact: struct.Struct, numbers: tuple[float, ...]
) -> tuple[bytes, bool]:
    """The numbers in few bytes when that loses nothing, else exactly, and then True."""
    try:
        row = short.pack(*numbers)
    except OverflowError:
        return exact.pack(*numbers), True
    if short.unpack(row) == numbers:
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
