"""Responses and pages as messages of a parser process."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.web.page import Failed, Fetched
from focused.web.robots.robots_rules import RobotsFile, parse_robots_body

_REPLY_PAGE, _REPLY_FAILURE, _REPLY_ROBOTS = b"R", b"F", b"T"
_CPU_SECONDS = struct.Struct(">d")


def _encode_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise TypeError(f"{type(value)} is not part of a parsed page")


def _decode_array(kind: type, value: tuple[str, Sequence[int], bytes]) -> object:
    dtype, shape, numbers = value
    return np.frombuffer(numbers, dtype).reshape(shape)


_encode = msgspec.msgpack.Encoder(enc_hook=_encode_array).encode
_decode_request = msgspec.msgpack.Decoder(tuple[Fetched, str | None]).decode
_decode_page = msgspec.msgpack.Decoder(ParsedPage, dec_hook=_decode_array).decode
_decode_failure = msgspec.msgpack.Decoder(Failed).decode
_decode_robots = msgspec.msgpack.Decoder(RobotsFile).decode


def encode_request(fetched: Fetched, robots_token: str | None = None) -> bytes:
    """Encode a response for the process.

    With ``robots_token`` it is a robots.txt, to parse for this product token.
    """
    return _encode((fetched, robots_token))


def decode_reply(result: bytes) -> ParsedPage | RobotsFile | Failed:
    """Decode the result of :class:`ParsingHandler`."""
    kind, body = result[:1], memoryview(result)[1 + _CPU_SECONDS.size :]
    if kind == _REPLY_ROBOTS:
        return _decode_robots(body)
    return _decode_page(body) if kind == _REPLY_PAGE else _decode_failure(body)


def parsing_cpu_s(result: bytes) -> float:
    """Return the CPU time behind a result of :class:`ParsingHandler`."""
    return float(_CPU_SECONDS.unpack_from(result, 1)[0])


@dataclass(frozen=True, slots=True)
class ParsingHandler:
    """Parses responses in a parser process; a :data:`focused.parser_process.Handler`."""

    reader: PageParser

    def __call__(self, message: bytes) -> bytes:
        """Parse one response encoded by :func:`encode_request`."""
        began = time.process_time()
        kind, body = self._parse(*_decode_request(message))
        return kind + _CPU_SECONDS.pack(time.process_time() - began) + body

    def _parse(self, fetched: Fetched, robots_token: str | None) -> tuple[bytes, bytes]:
        if robots_token is not None:
            return _REPLY_ROBOTS, _encode(parse_robots_body(fetched.body, robots_token))
        read = self.reader.read(fetched)
        if isinstance(read, Failed):
            return _REPLY_FAILURE, _encode(read)
        return _REPLY_PAGE, _encode(self.reader.with_static_features(read))
