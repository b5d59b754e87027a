"""Which hosts are being asked, on disk: what a process that died was about.

Written once a commit, so a link that is offered, scored again and put back
within one costs nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from focused.frontier.host import Host
from focused.frontier.places import NUMBER_BYTES
from focused.frontier.tables import Tables

_ROW = struct.Struct(">d")


class LeaseRows:
    """Under each host's number: since when it is asked, and the number of the link."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._changed: dict[Host, None] = {}
        self._written = {prefix for prefix, _ in tables.scan("leased")}

    def changed(self, host: Host) -> None:
        """A fetch of the host began or ended: its row is due."""
        self._changed[host] = None

    def save(self) -> None:
        """Write the rows that are due."""
        for host in self._changed:
            if host.leased is not None:
                row = _ROW.pack(host.leased_at) + host.leased[-NUMBER_BYTES:]
                self._tables.put("leased", host.prefix, row)
                self._written.add(host.prefix)
            elif host.prefix in self._written:
                self._tables.delete("leased", host.prefix)
                self._written.discard(host.prefix)
        self._changed.clear()

    def take_over(self, hosts: Iterable[Host]) -> Sequence[tuple[Host, float]]:
        """The hosts that an earlier process was asking, and since when; their rows are due now."""
        since = {prefix: _ROW.unpack_from(row)[0] for prefix, row in self._tables.scan("leased")}
        if not since:
            return ()
        taken = [(host, since[host.prefix]) for host in hosts if host.prefix in since]
        for host, _ in taken:
            self.changed(host)
        return taken
