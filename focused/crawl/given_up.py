"""Hosts that are asked no more in this crawl, and why."""

from __future__ import annotations

from focused.frontier.rows import pack, unpack
from focused.frontier.tables import Tables
from focused.web.page import FailureKind

_ROWS_A_HOST = 10


class GivenUpHosts:
    """Durable, over :class:`Tables`; the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._hosts: dict[str, tuple[FailureKind, int]] = {}
        for name, raw in tables.scan("given_up"):
            kind, rows = unpack(raw)
            self._hosts[name.decode()] = FailureKind(kind), rows

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, host: str, kind: FailureKind) -> None:
        """Give a host up for its last trouble."""
        self._put(host, kind, 0)

    def why(self, host: str) -> FailureKind | None:
        """The trouble that a host was given up for, or None."""
        found = self._hosts.get(host)
        return None if found is None else found[0]

    def tell(self, host: str) -> bool:
        """Whether one more of the host's links gets a row of its own in the archive.

        The first few do; a dead host's thousands of links say no more than those.
        """
        kind, rows = self._hosts[host]
        if rows >= _ROWS_A_HOST:
            return False
        self._put(host, kind, rows + 1)
        return True

    def forgive(self, host: str) -> None:
        """Let a host be asked again; harmless when it was not given up."""
        if self._hosts.pop(host, None) is not None:
            self._tables.delete("given_up", host.encode())

    def _put(self, host: str, kind: FailureKind, rows: int) -> None:
        self._hosts[host] = kind, rows
        self._tables.put("given_up", host.encode(), pack([kind.value, rows]))
