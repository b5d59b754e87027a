"""Encode queued links as rows of about a hundred bytes.

What links share is stored once: the URL lacks the host's name, and the linking page, with the time
it was parsed, has a row of its own (:class:`LinkSources`). Rows are MessagePack; features are
packed in half precision where that loses nothing, priority and score in single precision.
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

_SINGLES = struct.Struct(">2f")
_SCHEMES = ("", "http://", "https://")
_MAX_UINT16 = 0xFFFF
_CACHED_SOURCES = 4_096


class LinkSources:
    """The linking pages by number: URL, and when it was parsed."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        last = tables.last_key("sources")
        self._next = 0 if last is None else int.from_bytes(last, "big") + 1
        self._numbers: OrderedDict[str | None, tuple[int, float]] = OrderedDict()
        self._read: OrderedDict[int, tuple[str | None, float]] = OrderedDict()

    def number_of(self, parent: str | None, found_at: float) -> tuple[int, float]:
        """Return a source's number and when it was parsed: ``found_at`` for a new one."""
        known = self._numbers.get(parent)
        if known is None:
            key = self._next.to_bytes(4, "big")
            self._tables.put("sources", key, pack((parent, found_at)), last=True)
            known = (self._next, found_at)
            self._next += 1
            self._remember(parent, known)
        return known

    def get(self, number: int) -> tuple[str | None, float]:
        """Return the source of that number."""
        source = self._read.get(number)
        if source is None:
            raw = self._tables.get("sources", number.to_bytes(4, "big"))
            if raw is None:
                raise self._tables.damaged("sources", f"source number {number} has no row")
            parent, found_at = unpack(raw)
            source = self._read[number] = (parent, found_at)
            if len(self._read) > _CACHED_SOURCES:
                self._read.popitem(last=False)
            # A link that is read is often written again with the same source.
            self._remember(parent, (number, found_at))
        return source

    def _remember(self, parent: str | None, known: tuple[int, float]) -> None:
        self._numbers[parent] = known
        if len(self._numbers) > _CACHED_SOURCES:
            self._numbers.popitem(last=False)


def encode_link(link: QueuedLink, sources: LinkSources) -> bytes:
    """Encode a link; a longer URL or anchor than 65,535 characters is cut."""
    (
        key, url, host, priority, score, depth, parent, anchor, features, found_at,
        tries, hops, payload, tag_path_key,
    ) = astuple(link)  # fmt: skip
    scheme, path = _without_host(url, host)
    source, read_at = sources.number_of(parent, found_at)
    return pack(
        (
            scheme,
            path if len(path) <= _MAX_UINT16 else path[:_MAX_UINT16],
            source,
            _shortest(_SINGLES, (priority, score)),
            _shortest(_halves(len(features)), features),
            anchor if len(anchor) <= _MAX_UINT16 else anchor[:_MAX_UINT16],
            depth,
            tag_path_key,
            tries,
            hops,
            None if read_at == found_at else found_at,
            None if key == xxh3_128_digest(_utf8(url)) else key,
            payload,
        )
    )


class SourceReader(Protocol):
    """Looks up linking pages for :func:`decode_link`."""

    def get(self, number: int) -> tuple[str | None, float]:
        """Return the URL of a source, and when it was parsed."""
        ...


def decode_link(
    row: bytes, host: str, sources: SourceReader, key: bytes | None = None
) -> QueuedLink:
    """Decode a link of that host; ``key`` is the link's, if known."""
    (
        scheme, path, source, orders, features, anchor, depth, tag_path_key,
        tries, hops, own_time, own_key, payload,
    ) = unpack(row)  # fmt: skip
    url = f"{_SCHEMES[scheme]}{host}{path}" if scheme else path
    parent, found_at = sources.get(source)
    priority, score = _SINGLES.unpack(orders) if isinstance(orders, bytes) else orders
    if isinstance(features, bytes):
        features = _halves(len(features) // 2).unpack(features)
    if own_key is not None:
        key = own_key
    elif key is None:
        key = link_key(url)
    return QueuedLink(
        key, url, host, priority, score, depth, parent, anchor, tuple(features),
        found_at if own_time is None else own_time, tries, hops, payload, tag_path_key,
    )  # fmt: skip


def _without_host(url: str, host: str) -> tuple[int, str]:
    """Split a URL into the number of its scheme and its path; 0 and the URL if it has neither."""
    scheme = 2 if url.startswith("https://") else 1
    start = f"{_SCHEMES[scheme]}{host}"
    if url.startswith(f"{start}/"):
        return scheme, url[len(start) :]
    return 0, url


def _shortest(short: struct.Struct, numbers: tuple[float, ...]) -> bytes | tuple[float, ...]:
    """Pack numbers in few bytes where that loses nothing; else leave them in double precision."""
    try:
        row = short.pack(*numbers)
    except OverflowError:
        return numbers
    return row if short.unpack(row) == numbers else numbers


@cache
def _halves(count: int) -> struct.Struct:
    return struct.Struct(f">{count}e")


def _utf8(text: str) -> bytes:
    """Text of the web may hold lone surrogates, which no UTF-8 can write."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
