"""Answers read past Twisted's parser are what Twisted reads, and all that is odd is left to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.protocol import Protocol
from twisted.internet.testing import StringTransportWithDisconnection
from twisted.python.failure import Failure
from twisted.web.client import HTTP11ClientProtocol

from focused.scrapy_addon.plain_answers import OddAnswer, PlainAnswer, PlainLine
from tests.support.asked import Asked

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Content-Type: text/html\r\nContent-Length: 6\r\nKeep-Alive: 5\r\n\r\nwhales"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n6\r\nwhales\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ODD = {
    "chunks": CHUNKED,
    "interim answer": INTERIM + PLAIN,
    "old version": PLAIN.replace(b"1.1", b"1.0"),
    "bare line ends": PLAIN.replace(b"\r\n", b"\n"),
    "folded line": OK + b"X-Folded: a\r\n b\r\nContent-Length: 6\r\n\r\nwhales",
    "line without colon": OK + b"nothing\r\nContent-Length: 6\r\n\r\nwhales",
    "blank before the colon": OK + b"Content-Length : 6\r\n\r\nwhales",
    "two lengths": OK + b"Content-Length: 6\r\nContent-Length: 7\r\n\r\nwhales!",
    "length that is none": OK + b"Content-Length: -6\r\n\r\nwhales",
    "length and chunks": OK + b"Content-Length: 3\r\n" + CHUNKED.partition(b"\r\n")[2],
    "no content": b"HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 6\r\n\r\nwhales",
    "control characters": OK + b"X-Odd: a\x00b\r\nContent-Length: 6\r\n\r\nwhales",
    "no HTTP": b"whales\r\n\r\n",
    "breaks off in its head": PLAIN[:30],
    "breaks off in its body": PLAIN[:-2],
    "nothing at all": b"",
}


class Body(Protocol):
    def __init__(self, ended: Callable[[object], None]) -> None:
        self._ended = ended
        self._came = b""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802  # Twisted's name
        self._came += data

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802  # Twisted's name
        self._ended((self._came, reason.type.__name__))


class Line:
    """A line whose server says what it is told to; ``rested`` counts its ends in peace."""

    def __init__(self) -> None:
        self.connection = HTTP11ClientProtocol()
        self.transport = StringTransportWithDisconnection()
        self.transport.protocol = self.connection
        self.connection.makeConnection(self.transport)
        self.rested = 0
        self.plain = PlainLine(self.connection, self._rests)
        self.came: list[PlainAnswer | OddAnswer] = []

    def _rests(self) -> None:
        self.rested += 1

    def ask(self, most_bytes: int = 0) -> None:
        self.plain.ask(b"GET / HTTP/1.1\r\n\r\n", most_bytes, self.came.append)

    def hears(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.dataReceived(piece)

    def is_lost(self) -> None:
        self.connection.connectionLost(Failure(ConnectionLost()))


def read_by_twisted(answered: Deferred[Any], ended: list[object]) -> None:
    def head(response: Any) -> None:
        ended.append((response.code, sorted(response.headers.getAllRawHeaders())))
        response.deliverBody(Body(ended.append))

    def failed(failure: Any) -> None:
        inner = [reason.type.__name__ for reason in getattr(failure.value, "reasons", ())]
        ended.append((failure.type.__name__, inner))

    answered.addCallbacks(head, failed).addErrback(failed)


def by_twisted(pieces: Sequence[bytes]) -> list[object]:
    connection, ended = HTTP11ClientProtocol(), []
    transport = StringTransportWithDisconnection()
    transport.protocol = connection
    connection.makeConnection(transport)
    read_by_twisted(connection.request(Asked()), ended)
    for piece in pieces:
        connection.dataReceived(piece)
    if transport.connected:
        connection.connectionLost(Failure(ConnectionLost()))
    return ended


async def handed_over(pieces: Sequence[bytes]) -> list[object]:
    line, ended = Line(), []
    line.ask()
    line.hears(*pieces)
    if line.transport.connected:
        line.is_lost()
    (odd,) = line.came
    assert isinstance(odd, OddAnswer)
    read_by_twisted(odd.request(Asked()), ended)
    await asyncio.sleep(0)
    return ended


def cut(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("size", [1_000, 7, 1])
def test_an_odd_answer_means_what_it_means_to_twisted(name: str, size: int) -> None:
    pieces = cut(ODD[name], size)
    assert asyncio.run(handed_over(pieces)) == by_twisted(pieces)


def test_a_plain_answer_comes_without_what_is_about_the_connection() -> None:
    line = Line()
    line.ask()
    line.hears(PLAIN)
    headers = {b"content-length": [b"6"], b"content-type": [b"text/html"]}
    assert line.came == [PlainAnswer(200, headers, b"whales")]
    assert line.transport.value() == b"GET / HTTP/1.1\r\n\r\n"


def test_its_body_may_come_in_pieces() -> None:
    line = Line()
    line.ask()
    head, body = PLAIN[:-6], PLAIN[-6:]
    line.hears(head, body[:1], body[1:4])
    assert line.came == []
    line.hears(body[4:])
    assert line.came[0].body == b"whales"


def test_values_of_headers_that_come_twice_are_kept_apart_in_their_order() -> None:
    line = Line()
    line.ask()
    line.hears(OK + b"X-A: 1\r\nContent-Length: 0\r\nx-a:  2 \r\n\r\n")
    assert line.came[0].headers[b"x-a"] == [b"1", b"2"]


def test_the_line_is_of_use_for_the_next_request() -> None:
    line = Line()
    for _ in range(3):
        line.ask()
        line.hears(PLAIN)
    assert (len(line.came), line.rested) == (3, 3)
    assert line.transport.connected


@pytest.mark.parametrize(
    "raw", [PLAIN.replace(b"Keep-Alive: 5", b"Connection: Close"), PLAIN + b"more"]
)
def test_it_is_closed_where_the_server_wants_it_or_says_more_than_it_should(raw: bytes) -> None:
    line = Line()
    line.ask()
    line.hears(raw)
    assert line.came[0].body == b"whales"
    assert (line.rested, line.transport.connected) == (0, False)


def test_a_body_beyond_the_bound_is_odd_before_it_came() -> None:
    line = Line()
    line.ask(most_bytes=5)
    line.hears(PLAIN[:-6])
    assert isinstance(line.came[0], OddAnswer)


def test_after_it_was_given_up_nobody_is_told() -> None:
    line = Line()
    line.ask()
    line.plain.give_up()
    assert not line.transport.connected
    assert (line.came, line.rested) == ([], 0)


def test_the_line_still_takes_requests_of_twisteds_own() -> None:
    line, ended = Line(), []
    line.ask()
    line.hears(PLAIN)
    read_by_twisted(line.connection.request(Asked()), ended)
    line.hears(CHUNKED)
    assert ended[-1] == (b"whales", "ResponseDone")
