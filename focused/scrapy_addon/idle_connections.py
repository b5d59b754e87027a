"""Connections that idle until their host's next turn: few in all, and one to an address.

Twisted keeps each for four minutes. A crawl of many hosts would run out of
file descriptors, and a server of many hosts would hold one for each of them.
"""

from __future__ import annotations

from typing import Any

from focused.web.addresses import spelled_alike

MAX_IDLE = 100
"""Connections that idle, of one pool; those that idle longest are closed first."""

_SCHEMES = (b"http", b"https")  # a proxy's connections for http have another
_OWN_KEY = 4  # scheme, host, port, and the address bound to; that of a proxy's tunnel is longer


class IdleConnections:
    """Closes what idles in a Twisted pool; has no connection in use."""

    def __init__(self, pool: Any, *, one_to_an_address: bool) -> None:
        """Take over the pool's own storing."""
        self._pool = pool
        self._one_to_an_address = one_to_an_address
        self._keys: dict[Any, Any] = {}
        self._store = pool._putConnection
        pool._putConnection = self._put

    def connected(self, address: str) -> None:
        """A new connection leads there: another host is asked."""
        if self._one_to_an_address:
            for connection in self._idling():
                if _leads_to(connection, self._keys[connection], address):
                    self._close(connection)

    def leaves_for(self, host: str, address: str) -> None:
        """A request to the host may leave for that address alone, over no connection elsewhere."""
        for connection in self._idling():
            key = self._keys[connection]
            if key[1] == host.encode() and _is_direct(key) and _peer(connection) != address:
                self._close(connection)

    def _put(self, key: Any, connection: Any) -> None:
        self._store(key, connection)
        self._keys[connection] = key
        idling = self._idling()
        for longest in idling[: max(0, len(idling) - MAX_IDLE)]:
            self._close(longest)

    def _idling(self) -> list[Any]:
        """Those that idle, the longest first."""
        idling = list(self._pool._timeouts)
        self._keys = {each: self._keys[each] for each in idling if each in self._keys}
        # Twisted keeps an empty list for each host that it ever asked.
        if len(self._pool._connections) > 2 * MAX_IDLE:
            kept = {key: each for key, each in self._pool._connections.items() if each}
            self._pool._connections = kept
        return list(self._keys)

    def _close(self, connection: Any) -> None:
        self._pool._timeouts[connection].cancel()
        self._pool._removeConnection(self._keys.pop(connection), connection)


def _leads_to(connection: Any, key: Any, address: str) -> bool:
    return _is_direct(key) and _peer(connection) == spelled_alike(address)


def _is_direct(key: Any) -> bool:
    return key[0] in _SCHEMES and len(key) <= _OWN_KEY


def _peer(connection: Any) -> str:
    return spelled_alike(connection.transport.getPeer().host)
