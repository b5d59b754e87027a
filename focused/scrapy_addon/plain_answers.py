"""Answers as nearly all servers send them, read without Twisted's parser.

A head of whole lines in the first packet, and a length: such an answer costs a tenth of what
Twisted's machinery takes for it. Whatever else comes (interim answers, chunks, folded lines, an
answer that breaks off) is handed over to Twisted from its first byte on, so that what odd servers
send means the same as ever.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.tcp import Connection

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = rb"[\t\x20-\x7e\x80-\xff]*"
_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: " + _VALUE + rb")?\r\n"
    rb"((?:" + _TOKEN + rb":" + _VALUE + rb"\r\n)*)\r\n"
)
_LINE = re.compile(rb"(" + _TOKEN + rb"):(" + _VALUE + rb")\r\n")
_WITHOUT_BODY = frozenset({204, 304})
# What is about the connection; Twisted keeps it from who asked, too.
_OF_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailers", b"upgrade", b"proxy-connection")
)
_MOST_DIGITS = 18


@dataclass(slots=True)
class PlainAnswer:
    """One answer; ``headers`` by their lower-case names, in the order they came in.

    ``head`` is its first line and headers as they came.
    """

    status: int
    headers: dict[bytes, list[bytes]]
    body: bytes = b""
    head: bytes = field(default=b"", compare=False, repr=False)


@dataclass(slots=True)
class _Head:
    answer: PlainAnswer
    begins_at: int
    """Where the body begins, in the first packet."""
    length: int
    closes: bool
    """Whether the server takes no other request over the connection."""


class PlainLine:
    """One connection of Twisted's, asked with bytes and heard without its parser.

    What is replaced are public methods of the connection; while it is not asked here it works
    as it did.
    """

    def __init__(self, connection: Any, rests: Callable[[], None]) -> None:
        """``rests`` is called when the connection may be asked by the next."""
        self.connection = connection
        self._rests = rests
        self._receive, self._lose = connection.dataReceived, connection.connectionLost
        self._told: Callable[[PlainAnswer | OddAnswer], None] | None = None
        self._came: list[bytes] = []
        self._head: _Head | None = None
        self._most_bytes = 0
        self._left = 0
        self._odd: OddAnswer | None = None
        connection.dataReceived = self._received
        connection.connectionLost = self._lost

    def ask(
        self,
        request: bytes,
        most_bytes: int,
        told: Callable[[PlainAnswer | OddAnswer], None],
    ) -> None:
        """Send ``request``, a GET; ``told`` hears once of what came.

        A body of more than ``most_bytes`` is odd; 0: no bound.
        """
        self._told, self._most_bytes = told, most_bytes
        self._came, self._head = [], None
        _send(self.connection.transport, request)

    def give_up(self) -> None:
        """Nothing is waited for any more: the connection is broken off, and nobody is told."""
        self._told, self._came = None, []
        self.connection.transport.abortConnection()

    def _received(self, data: bytes) -> None:
        if self._told is None:
            if self._odd is None:
                self._receive(data)
            else:
                self._odd.came.append(data)
            return
        self._came.append(data)
        head = self._head
        if head is None:
            self._head = head = _read(data)
            if head is None or 0 < self._most_bytes < head.length:
                self._hand_over()
                return
            self._left = head.length - len(data) + head.begins_at
        else:
            self._left -= len(data)
        if self._left <= 0:
            self._answered(head)

    def _answered(self, head: _Head) -> None:
        told, came = self._told, self._came
        self._told, self._came = None, []
        whole = came[0] if len(came) == 1 else b"".join(came)
        head.answer.body = whole[head.begins_at : head.begins_at + head.length]
        # What comes after the answer belongs to no request: no other may get it for its own.
        if head.closes or self._left < 0:
            self.connection.transport.loseConnection()
        else:
            self._rests()
        if told is not None:
            told(head.answer)

    def _lost(self, reason: Any) -> None:
        if self._told is not None:
            self._hand_over()
        if self._odd is None:
            self._lose(reason)
        else:
            self._odd.lost = reason

    def _hand_over(self) -> None:
        told, self._told = self._told, None
        self._odd = OddAnswer(self, self._came)
        self._came = []
        if told is not None:
            told(self._odd)

    def heard_by_twisted(self, odd: OddAnswer, request: Any) -> Deferred[Any]:
        """The answer to ``request``, which was sent already, as Twisted reads it."""
        request.writeTo = lambda transport: succeed(None)
        answered: Deferred[Any] = self.connection.request(request)
        # Not before somebody waits for the head: what ends with it would be gone by then.
        asyncio.get_running_loop().call_soon(self._tell_twisted, odd)
        return answered

    def _tell_twisted(self, odd: OddAnswer) -> None:
        self._odd = None
        for data in odd.came:
            self._receive(data)
        if odd.lost is not None:
            self._lose(odd.lost)


@dataclass(eq=False, slots=True)
class OddAnswer:
    """What came is not plain; in the place of a connection it answers the next request."""

    line: PlainLine
    came: list[bytes] = field(default_factory=list)
    lost: Any = None

    def request(self, request: Any) -> Deferred[Any]:
        """The answer that has come, or is coming."""
        return self.line.heard_by_twisted(self, request)


def _send(transport: Any, data: bytes) -> None:
    """At once where that can be: a turn of the reactor later costs more than the sending."""
    if isinstance(transport, Connection) and not transport.TLS:
        sent = transport.writeSomeData(data)
        if isinstance(sent, int):
            data = data[sent:]
    if data:
        transport.write(data)


def _read(data: bytes) -> _Head | None:
    """The head that ``data`` begins with; None where it is not plain."""
    found = _HEAD.match(data)
    if found is None:
        return None
    status, headers = int(found[1]), _fields(found[2])
    lengths = headers.pop(b"content-length", [])
    if len(lengths) != 1 or b"transfer-encoding" in headers or status in _WITHOUT_BODY:
        return None
    length = lengths[0]
    if not length.isdigit() or len(length) > _MOST_DIGITS:
        return None
    closes = b"close" in b",".join(headers.get(b"connection", ())).lower()
    kept = {name: headers[name] for name in headers if name not in _OF_THE_CONNECTION}
    fields = {b"content-length": [b"%d" % int(length)], **kept}
    answer = PlainAnswer(status, fields, head=found[0])
    return _Head(answer, found.end(), int(length), closes)


def _fields(lines: bytes) -> dict[bytes, list[bytes]]:
    fields: dict[bytes, list[bytes]] = {}
    for name, value in _LINE.findall(lines):
        fields.setdefault(name.lower(), []).append(value.strip())
    return fields
