"""The links of a frontier on disk.

A link is stored as a row under its number in the order of discovery, as a queue key in its host's
queue, and as a member of its host's set of seen links. A settled link has no row. The data of a
host lies together, because most links of a page stay on its host.

A row has about a hundred bytes. What links share is stored once: the URL lacks the host's name, and
the linking page, with the time it was parsed, has a row of its own (:class:`LinkSources`). Rows are
MessagePack; features are packed in half precision where that loses nothing, priority and score in
single precision.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Protocol

import msgspec
from msgspec.structs import astuple
from xxhash import xxh3_128_digest

from focused.errors import StateError
from focused.frontier.host import Host
from focused.frontier.queued_link import (
    NUMBER_BYTES,
    PAGE,
    QueuedLink,
    encode_number,
    link_key,
    queue_key_of,
)
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
        tries, hops, payload, tag_path_key, purpose, is_exempt,
    ) = astuple(link)  # fmt: skip
    scheme, path = _without_host(url, host)
    source, read_at = sources.number_of(parent, found_at)
    # Nearly all links are for pages, and not exempt: their rows end with the payload.
    last = (purpose, True) if is_exempt else () if purpose == PAGE else (purpose,)
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
            *last,
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
        tries, hops, own_time, own_key, payload, *last,
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
        *last,
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


SEEN_BYTES = 10
"""Of a link's key, within its host: of 10^9 links of one host two are alike once in a million."""

Rows = list[tuple[bytes, bytes]]


class LinkTable:
    """Rows, queues and seen links over :class:`Tables`.

    What is added and moved is written at the next :meth:`flush`, which comes before
    anything is read again.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._sources = LinkSources(tables)
        self._recent = RecentLinkCache(_CACHE_SIZE)
        self.found = int(tables.get_meta("found") or 0)
        """The number of links ever added."""
        self._found_saved = self.found
        self._new: Rows = []
        self._rewritten: Rows = []
        self._removed: Rows = []
        self._placed: Rows = []
        self._seen: Rows = []
        self._pending_numbers: set[bytes] = set()

    def __len__(self) -> int:
        return self._tables.count("queue")

    def seen(self, host: Host, key: bytes) -> SeenLink:
        """Look up a link of that host."""
        known = self._recent.get(host.prefix + key)
        return self._look_up([(host, key)])[0][1] if known is None else known

    def seen_among(self, links: Iterable[tuple[Host, bytes]]) -> Sequence[tuple[bytes, SeenLink]]:
        """Look up links by key, in any order."""
        recent = self._recent.get
        known, missing = [], []
        for host, key in links:
            seen = recent(host.prefix + key)
            if seen is None:
                missing.append((host, key))
            else:
                known.append((key, seen))
        return known + self._look_up(missing) if missing else known

    def _look_up(self, links: Sequence[tuple[Host, bytes]]) -> list[tuple[bytes, SeenLink]]:
        wanted = [(host.prefix, key[:SEEN_BYTES]) for host, key in links]
        members = self._tables.members_with("seen", wanted)
        numbers = [member[SEEN_BYTES:] for member in members if member is not None]
        rows = dict(self._tables.get_many("links", numbers)) if numbers else {}
        found = []
        for (host, key), member in zip(links, members, strict=True):
            seen = NEVER_SEEN if member is None else self._as_seen(member, rows, host, key)
            self._recent.put(host.prefix + key, seen)
            found.append((key, seen))
        return found

    def _as_seen(
        self, member: bytes, rows: Mapping[bytes, bytes], host: Host, key: bytes
    ) -> SeenLink:
        number = member[SEEN_BYTES:]
        row = rows.get(number)
        if row is None:
            return SeenLink(number)
        link = decode_link(row, host.name, self._sources, key)
        return SeenLink(queue_key_of(link.rank, number), link)

    def read(self, host: Host, at: bytes) -> QueuedLink:
        """Return the link at a position of the host's queue."""
        row = self._tables.get("links", at[-NUMBER_BYTES:])
        if row is None:
            raise self._missing_row_error(host)
        return decode_link(row, host.name, self._sources)

    def ranked(self, host: Host, ranks: range) -> tuple[Sequence[bytes], Sequence[QueuedLink]]:
        """Return queue keys and links of the host by rank, without one in flight."""
        of_ranks = islice(self._tables.members("queue", host.prefix), ranks.start, ranks.stop)
        places = [at for at in of_ranks if at != host.leased]
        rows = dict(self._tables.get_many("links", [at[-NUMBER_BYTES:] for at in places]))
        if len(rows) < len(places):
            raise self._missing_row_error(host)
        links = [decode_link(rows[at[-NUMBER_BYTES:]], host.name, self._sources) for at in places]
        return places, links

    def _missing_row_error(self, host: Host) -> StateError:
        return self._tables.damaged("links", f"a link in the queue of host {host.name} has no row")

    def places(self, host: Host) -> Iterator[bytes]:
        """Yield the queue keys of the host, best first; don't write meanwhile."""
        return self._tables.members("queue", host.prefix)

    def first_two(self, host: Host) -> tuple[bytes | None, bytes | None]:
        """Return the first two queue keys of the host, None where there are fewer."""
        return self._tables.first_two("queue", host.prefix)

    def size(self, host: Host) -> int:
        """Count the links in the host's queue."""
        return self._tables.set_size("queue", host.prefix)

    def add(self, host: Host, link: QueuedLink) -> bytes:
        """Add a new link; return its queue key."""
        number = encode_number(self.found)
        at = queue_key_of(link.rank, number)
        self._new.append((number, encode_link(link, self._sources)))
        self._placed.append((host.prefix, at))
        self._seen.append((host.prefix, link.key[:SEEN_BYTES] + number))
        self._pending_numbers.add(number)
        self._recent.put(host.prefix + link.key, SeenLink(at, link))
        self.found += 1
        return at

    def move(self, host: Host, at: bytes, link: QueuedLink) -> bytes:
        """Replace a queued link and move it by its priority; return its new queue key."""
        number = at[-NUMBER_BYTES:]
        moved = queue_key_of(link.rank, number)
        if number in self._pending_numbers:
            # Otherwise two pending writes of one link would undo each other.
            self.flush()
        self._pending_numbers.add(number)
        self._rewritten.append((number, encode_link(link, self._sources)))
        if moved != at:
            self._removed.append((host.prefix, at))
            self._placed.append((host.prefix, moved))
        self._recent.put(host.prefix + link.key, SeenLink(moved, link))
        return moved

    def rewrite(self, host: Host, at: bytes, link: QueuedLink) -> bytes:
        """:meth:`move` and :meth:`flush`."""
        moved = self.move(host, at, link)
        self.flush()
        return moved

    def flush(self) -> None:
        """Write what was added and moved."""
        tables = self._tables
        tables.put_many("links", self._new, last=True)
        tables.add_many("seen", self._seen)
        tables.put_many("links", self._rewritten)
        tables.discard_many("queue", self._removed)
        tables.add_many("queue", self._placed)
        self._new, self._seen, self._rewritten, self._removed, self._placed = [], [], [], [], []
        self._pending_numbers.clear()

    def take_out(self, host: Host, at: bytes, key: bytes) -> None:
        """Remove a link from its queue; it stays seen."""
        self._recent.put(host.prefix + key, SeenLink(at[-NUMBER_BYTES:]))
        self._tables.discard("queue", host.prefix, at)
        self._tables.delete("links", at[-NUMBER_BYTES:])

    def forget(self, host: Host, key: bytes) -> bool:
        """Remove a settled link from the seen set; False when it is queued or was never seen."""
        seen = self.seen(host, key)
        number = seen.number
        if number is None or seen.link is not None:
            return False
        self._recent.forget(host.prefix + key)
        return self._tables.discard("seen", host.prefix, key[:SEEN_BYTES] + number)

    def save(self) -> None:
        """Write the counter."""
        if self.found != self._found_saved:
            self._tables.put_meta("found", self.found)
            self._found_saved = self.found


_CACHE_SIZE = 4_096


class SeenLink(msgspec.Struct, frozen=True, gc=False):
    """A seen link: its queue key while it is queued, then its number alone.

    ``at`` is None when the link was never seen; ``link`` is None unless it is queued.
    """

    at: bytes | None = None
    link: QueuedLink | None = None

    @property
    def number(self) -> bytes | None:
        """The link's number in the order of discovery, as the key of its row."""
        return None if self.at is None else self.at[-NUMBER_BYTES:]


NEVER_SEEN = SeenLink()


class RecentLinkCache:
    """A cache of looked-up links: the last ``most`` to twice as many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[bytes, SeenLink] = {}
        self._old: dict[bytes, SeenLink] = {}

    def get(self, key: bytes) -> SeenLink | None:
        """Return the cached link, or None."""
        seen = self._young.get(key)
        if seen is None:
            seen = self._old.pop(key, None)
            if seen is not None:
                self.put(key, seen)
        return seen

    def put(self, key: bytes, seen: SeenLink) -> None:
        """Store a link."""
        if len(self._young) >= self._most:
            self._young, self._old = {}, self._young
        self._young[key] = seen

    def forget(self, key: bytes) -> None:
        """Remove a link."""
        self._young.pop(key, None)
        self._old.pop(key, None)
