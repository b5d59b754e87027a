"""A process that reads pages for a crawl: ``python -m focused.crawl.reading_process FD``.

FD is a socket of its parent's. The first message holds the :class:`Reader`, and comes from
nobody else, as it is unpickled; each further one an answer, which is answered with its reading.
The process ends with its parent, be that killed.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import socket
import struct
import sys
from typing import BinaryIO

import msgspec
import numpy as np

from focused.crawl.reading import Reader, Reading
from focused.web.page import Failed, Fetched

LENGTH = struct.Struct(">I")
"""What comes before each message: its length in bytes."""

_A_READING, _A_FAILURE, _AN_ERROR = b"R", b"F", b"E"


class ReadingError(Exception):
    """Our own code broke over a page, in the other process."""


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    raise TypeError(f"{type(value)} is in no reading")


def _array(kind: type, value: tuple[str, bytes]) -> object:
    dtype, numbers = value
    return np.frombuffer(numbers, dtype)


_packed = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_fetched = msgspec.msgpack.Decoder(Fetched).decode
_reading = msgspec.msgpack.Decoder(Reading, dec_hook=_array).decode
_failed = msgspec.msgpack.Decoder(Failed).decode


def question(fetched: Fetched) -> bytes:
    """An answer of the Web's, as it is sent to be read."""
    return _packed(fetched)


def reading_in(answer: bytes) -> Reading | Failed:
    """What the process made of it. Raises ReadingError where its code broke."""
    kind, body = answer[:1], answer[1:]
    if kind == _AN_ERROR:
        raise ReadingError(body.decode())
    return _reading(body) if kind == _A_READING else _failed(body)


def _answer(reader: Reader, asked: bytes) -> bytes:
    try:
        read = reader.read(_fetched(asked))
        kind = _A_FAILURE if isinstance(read, Failed) else _A_READING
        return kind + _packed(read)
    except Exception as error:
        # As in the crawl's own process: a page that cannot be digested is no end of anything.
        return _AN_ERROR + repr(error).encode("utf-8", "replace")


def _message(stream: BinaryIO) -> bytes:
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def serve(asked: BinaryIO, told: BinaryIO) -> None:
    """Read pages until the other side goes."""
    reader = pickle.loads(_message(asked))  # noqa: S301  # from the parent, by no file or network
    while page := _message(asked):
        answer = _answer(reader, page)
        told.write(LENGTH.pack(len(answer)) + answer)
        told.flush()


def main() -> None:
    """Serve the parent that handed over a socket."""
    # Ctrl-C is for the parent, which may still want its pages read.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(link.makefile("rb"), link.makefile("wb"))


if __name__ == "__main__":
    main()
