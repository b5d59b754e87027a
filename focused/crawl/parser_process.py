"""Parse a crawl's pages in a :mod:`focused.parser_process`: encoding, decoding, handler."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.web.page import Failed, Fetched

_REPLY_PAGE, _REPLY_FAILURE = b"R", b"F"


def _encode_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    raise TypeError(f"{type(value)} is not part of a parsed page")


def _decode_array(kind: type, value: tuple[str, bytes]) -> object:
    dtype, numbers = value
    return np.frombuffer(numbers, dtype)


_encode = msgspec.msgpack.Encoder(enc_hook=_encode_array).encode
_decode_response = msgspec.msgpack.Decoder(Fetched).decode
_decode_page = msgspec.msgpack.Decoder(ParsedPage, dec_hook=_decode_array).decode
_decode_failure = msgspec.msgpack.Decoder(Failed).decode


def encode_request(fetched: Fetched) -> bytes:
    """Encode a response for the process."""
    return _encode(fetched)


def decode_reply(result: bytes) -> ParsedPage | Failed:
    """Decode the result of :class:`ParsingHandler`."""
    body = result[1:]
    return _decode_page(body) if result[:1] == _REPLY_PAGE else _decode_failure(body)


@dataclass(frozen=True, slots=True)
class ParsingHandler:
    """Parses pages in a parser process; a :data:`focused.parser_process.Handler`."""

    reader: PageParser

    def __call__(self, message: bytes) -> bytes:
        """Parse one response encoded by :func:`encode_request`."""
        read = self.reader.read(_decode_response(message))
        return (_REPLY_FAILURE if isinstance(read, Failed) else _REPLY_PAGE) + _encode(read)
