"""Connections that idle until their host's next turn: within bounds, and one to an address.

A crawl of many hosts would run out of file descriptors, and a server of many
hosts would hold one for each of them. Twisted's own pool knows no bound for
all hosts, and keeps each connection for four minutes.
"""

from __future__ import annotations

import resource
import socket
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.internet.tcp import Connection

from focused.scrapy_addon.plain_answers import OddAnswer, PlainLine
from focused.web.addresses import spelled_alike

MAX_IDLE = 1_000
"""Connections that idle, of one pool, where the process may open as many files."""

MAX_IDLE_S = 60.0
"""How long each idles; most servers have closed theirs by then."""

_OTHER_FILES = 128  # what the rest of the process opens
_SCHEMES = (b"http", b"https")  # a proxy's connections for http have another
_OWN_KEY = 4  # scheme, host, port, and the address bound to; that of a proxy's tunnel is longer


def most_idle(in_use: int) -> int:
    """How many may idle beside ``in_use`` connections: half of the files that are left."""
    may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if may_open == resource.RLIM_INFINITY:
        return MAX_IDLE
    return max(0, min(MAX_IDLE, (may_open - in_use - _OTHER_FILES) // 2))


@dataclass(eq=False, slots=True)
class Line:
    """One connection; ``host`` is None and ``address`` empty where it leads to a proxy.

    ``plain`` asks over it past Twisted's parser, from the first such request on.
    """

    key: Any
    connection: Any = None
    plain: PlainLine | None = None
    host: bytes | None = None
    address: str = ""
    idle_since: float = 0.0


@dataclass(slots=True)
class _Idle:
    """All lines that idle, the longest first, by what they are asked for."""

    lines: dict[Line, None] = field(default_factory=dict)
    of_key: dict[Hashable, list[Line]] = field(default_factory=lambda: defaultdict(list))
    of_host: dict[bytes | None, set[Line]] = field(default_factory=lambda: defaultdict(set))
    at: dict[str, set[Line]] = field(default_factory=lambda: defaultdict(set))

    def add(self, line: Line) -> None:
        self.lines[line] = None
        self.of_key[line.key].append(line)
        if line.host is not None:
            self.of_host[line.host].add(line)
            self.at[line.address].add(line)

    def remove(self, line: Line) -> None:
        del self.lines[line]
        _remove(self.of_key, line.key, line)
        if line.host is not None:
            _remove(self.of_host, line.host, line)
            _remove(self.at, line.address, line)


def _remove(index: dict[Any, Any], key: Any, line: Line) -> None:
    index[key].remove(line)
    if not index[key]:
        del index[key]


def _host_of(key: Any) -> bytes | None:
    """The host that a connection of the key leads to; None where that is a proxy."""
    scheme, host = key[:2]
    return host if scheme in _SCHEMES and len(key) <= _OWN_KEY else None


def _ended(transport: Any) -> bool:
    """Whether the other side closed, or spoke unasked, since the reactor last looked.

    Over TLS it cannot be told: what came may be a ticket for the next session.
    """
    if not isinstance(transport, Connection) or transport.TLS:
        return False
    try:
        transport.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class IdleConnections:
    """A pool for Twisted's agents, in the place of theirs."""

    persistent = True  # what agents want to know of a pool

    def __init__(
        self,
        reactor: Any,
        factory: Callable[[Callable[[Any], None], str], Any],
        made: Callable[[Any], object] = lambda connection: None,
        *,
        most: int = MAX_IDLE,
        most_alike: int = 1,
        one_to_an_address: bool,
    ) -> None:
        """``factory`` is the one of Twisted's pool; ``made`` hears of every new connection.

        At most ``most_alike`` idle for one scheme, host and port. ``one_to_an_address`` closes
        what idles at an address where another host is asked.
        """
        self._reactor = reactor
        self._factory = factory
        self._made = made
        self._most = most
        self.most_alike = most_alike
        self._one_to_an_address = one_to_an_address
        self._idle = _Idle()
        self._sweep: Any = None
        self._odd: OddAnswer | None = None

    def __len__(self) -> int:
        return len(self._idle.lines)

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:
        """One that idles, or a new one; for one request."""
        if self._odd is not None:
            odd, self._odd = self._odd, None
            return succeed(odd)
        line = self.take(key)
        if line is not None:
            return succeed(line.connection)
        return self.connect(key, endpoint).addCallback(lambda line: line.connection)

    def take(self, key: Hashable) -> Line | None:
        """One that idles, for one request."""
        while key in self._idle.of_key:
            line = self._idle.of_key[key][0]
            self._idle.remove(line)
            if line.connection.state != "QUIESCENT":  # its server has closed it
                continue
            if not _ended(line.connection.transport):
                return line
            line.connection.transport.loseConnection()
        return None

    def connect(self, key: Hashable, endpoint: Any) -> Deferred[Line]:
        """A new one, for one request."""
        line = Line(key)
        factory = self._factory(lambda connection: self.rest(line), repr(endpoint))
        connecting: Deferred[Any] = endpoint.connect(factory)
        return connecting.addCallback(self._connected, line)

    def next_is(self, odd: OddAnswer | None) -> None:
        """The next connection that is asked for is not one: it has an answer already.

        None: it is one.
        """
        self._odd = odd

    def closeCachedConnections(self) -> Deferred[Any]:
        """Close all that idle; fires when they are closed."""
        closed = []
        for line in list(self._idle.lines):
            self._idle.remove(line)
            closed.append(line.connection.abort())
        self._look_again()
        return gatherResults(closed)

    def leaves_for(self, host: str, address: str) -> None:
        """A request to the host may leave for that address alone, over no connection elsewhere."""
        for line in list(self._idle.of_host.get(host.encode(), ())):
            if line.address != address:
                self._close(line)

    def _connected(self, connection: Any, line: Line) -> Line:
        line.connection = connection
        address = spelled_alike(getattr(connection.transport.getPeer(), "host", ""))
        line.host = _host_of(line.key)
        if line.host is not None:
            line.address = address
        if self._one_to_an_address:  # another host is asked there
            for other in list(self._idle.at.get(address, ())):
                self._close(other)
        self._made(connection)
        return line

    def rest(self, line: Line) -> None:
        """The line's request is answered."""
        if len(alike := self._idle.of_key.get(line.key, [])) >= self.most_alike > 0:
            self._close(alike[0])
        line.idle_since = self._reactor.seconds()
        self._idle.add(line)
        if len(self) > self._most:
            self._close(next(iter(self._idle.lines)))
        if self._sweep is None:
            self._look_again()

    def _look_again(self) -> None:
        """Close those that have idled for long, and look again when the next will have."""
        now = self._reactor.seconds()
        while (longest := next(iter(self._idle.lines), None)) is not None:
            left_s = longest.idle_since + MAX_IDLE_S - now
            if left_s > 0 and longest.connection.state == "QUIESCENT":
                break
            self._close(longest)
        if self._sweep is not None and self._sweep.active():
            self._sweep.cancel()
        self._sweep = None
        if longest is not None:
            self._sweep = self._reactor.callLater(left_s, self._look_again)

    def _close(self, line: Line) -> None:
        self._idle.remove(line)
        line.connection.transport.loseConnection()
