"""Connections that take a bounded head, on what Twisted gives to the public."""

from __future__ import annotations

import pytest
from twisted.internet.testing import StringTransport
from twisted.web.client import (
    HTTP11ClientProtocol,
    ResponseFailed,
    ResponseNeverReceived,
)

from focused.scrapy_addon.downloading import MAX_HEAD_BYTES, bound_head
from focused.scrapy_addon.outcomes import TooLargeError, kind_of_exception
from focused.web.page import FailureKind
from tests.support.asked import Asked

OK = b"HTTP/1.1 200 OK\r\n"
LINE = b"X-More: " + b"x" * 990 + b"\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"


class Line:
    """A connection; ``hears`` is what its server says."""

    def __init__(self) -> None:
        self._protocol = HTTP11ClientProtocol()
        self._protocol.makeConnection(StringTransport())
        bound_head(self._protocol)

    def ask(self) -> list[object]:
        """What becomes of a request, once it is known."""
        came: list[object] = []
        self._protocol.request(Asked()).addBoth(came.append)
        return came

    def hears(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._protocol.dataReceived(piece)


def test_a_head_below_the_bound_is_an_answer() -> None:
    line = Line()
    came = line.ask()
    line.hears(OK, *[LINE] * (MAX_HEAD_BYTES // 1_000 - 1), EMPTY)
    assert came[0].code == 200


@pytest.mark.parametrize("piece", [LINE * 10, b"HTTP/1.1 100 Continue\r\n\r\n" * 400])
def test_more_than_that_is_broken_off_and_named(piece: bytes) -> None:
    line = Line()
    came = line.ask()
    start = OK if piece.startswith(b"X") else b""
    line.hears(start, *[piece] * (MAX_HEAD_BYTES // len(piece) + 1))
    line._protocol.connectionLost(ResponseFailed([]))  # as the transport does
    error = came[0].value
    assert isinstance(error, TooLargeError)
    assert kind_of_exception(error) is FailureKind.TOO_LARGE


def test_bodies_are_not_counted() -> None:
    line = Line()
    came = line.ask()
    line.hears(OK + b"Content-Length: 900000\r\n\r\n")
    assert came[0].code == 200
    line.hears(*[bytes(100_000)] * 8)


def test_each_answer_of_a_connection_has_the_whole_bound() -> None:
    line = Line()
    for _ in range(3):
        came = line.ask()
        line.hears(OK, *[LINE] * (MAX_HEAD_BYTES // 2_000), EMPTY)
        assert came[0].code == 200


def test_what_breaks_earlier_keeps_its_own_error() -> None:
    line = Line()
    came = line.ask()
    line.hears(b"no HTTP\r\n\r\n")
    assert not isinstance(came[0].value, TooLargeError)
    assert isinstance(came[0].value, ResponseNeverReceived | ResponseFailed)
