"""Parts of URLs that change nothing: session ids, trackers, orders of parameters; learned by host.

Each fetched page is held against the first one whose URL differs in one slot
alone. A slot that made no difference :data:`MIN_SAME` times, and hardly ever
one, is idle on its host: a link that differs from a fetched URL in idle slots
alone is not worth a fetch. No link is changed: a server that wants its session
gets it.
"""

from __future__ import annotations

import struct

import xxhash

from focused.frontier.rows import pack, unpack
from focused.frontier.store import StateStore
from focused.web.url import host_of
from focused.web.url_patterns import slots_of, without_slots

MIN_SAME = 5
_SAME_PER_DIFFERENT = 10
MAX_IDLE_SLOTS = 20
"""Of a host: more, and its parameters' names are made up, too."""
SESSION = "trap: session id"
_COUNTS = struct.Struct(">II")
_DIGEST_BYTES = 16


class IdleSlots:
    """Durable, over a :class:`StateStore`; the caller commits.

    On disk a page adds 9 rows of 50 bytes at most, most pages none.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._idle: dict[str, list[str]] = {
            host.decode(): unpack(raw) for host, raw in store.scan("trap_slots")
        }

    def of(self, host: str) -> tuple[str, ...]:
        """The slots that were found idle on a host."""
        return tuple(self._idle.get(host, ()))

    def why(self, url: str) -> str | None:
        """Why a normalised URL is not worth a fetch: its page was fetched under another one."""
        idle = self._idle.get(host_of(url))
        if idle is None:
            return None
        bare = without_slots(url, idle)
        first = self._store.get("trap_texts", _key(bare))
        return SESSION if first is not None and first[_DIGEST_BYTES:] != _own(url) else None

    def take(self, url: str, text: bytes) -> None:
        """A page came from ``url``; ``text`` is the 16 bytes that equal pages share."""
        slots = slots_of(url)
        if not slots:
            return
        host = host_of(url)
        idle = self._idle.get(host, [])
        row = text + _own(url)
        if idle:
            self._first_of(_key(without_slots(url, idle)), row)
        for slot in slots:
            if slot not in idle:
                first = self._first_of(_key(without_slots(url, {*idle, slot})), row)
                if first is not None:
                    self._count(host, slot, same=first[:_DIGEST_BYTES] == text)

    def _first_of(self, key: bytes, row: bytes) -> bytes | None:
        """The row of the first page under ``key``; of another one, or None: it was the first."""
        first = self._store.get("trap_texts", key)
        if first is None:
            self._store.put("trap_texts", key, row)
        elif first[_DIGEST_BYTES:] != row[_DIGEST_BYTES:]:
            return first
        return None

    def _count(self, host: str, slot: str, *, same: bool) -> None:
        key = _key(f"{host} {slot}")
        raw = self._store.get("trap_texts", key)
        alike, unlike = (0, 0) if raw is None else _COUNTS.unpack(raw)
        alike, unlike = alike + same, unlike + (not same)
        self._store.put("trap_texts", key, _COUNTS.pack(alike, unlike))
        idle = self._idle.get(host, [])
        if alike >= max(MIN_SAME, _SAME_PER_DIFFERENT * unlike) and len(idle) < MAX_IDLE_SLOTS:
            self._idle[host] = [*idle, slot]
            self._store.put("trap_slots", host.encode(), pack(self._idle[host]))


def _own(url: str) -> bytes:
    return xxhash.xxh3_64_digest(url.encode())


def _key(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode())
