"""A process that reads pages for a crawl: ``python -m focused.crawl.parser_process FD``.

FD is a socket of its parent's. The first message holds the :class:`PageParser` and the
:class:`ParsingLimits`, and comes from nobody else, as it is unpickled; an empty message says that
the process is ready. Each further message is an answer, which is answered with its reading.
The process ends with its parent, be that killed, and when a page exceeds its limits: the kernel
ends it after the time, in the middle of the parser's own code too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.web.page import Failed, Fetched

MESSAGE_LENGTH = struct.Struct(">I")
"""What comes before each message: its length in bytes."""

_PR_SET_PDEATHSIG = 1

_REPLY_PAGE, _REPLY_FAILURE, _REPLY_ERROR = b"R", b"F", b"E"

EXIT_OUT_OF_MEMORY = 77
"""The exit status of a process whose page needed more memory than it may have."""
EXIT_TIMED_OUT = frozenset({-signal.SIGPROF, -signal.SIGALRM})
"""The exit statuses, as :mod:`subprocess` reports them, of one whose page took too long."""


@dataclass(frozen=True, slots=True)
class ParsingLimits:
    """What one page may cost a process that reads it.

    ``cpu_s`` is CPU time, of all threads. ``elapsed_s``, by the clock, leaves room for a
    machine that has other work to do. ``memory_mb`` (of 10^6 bytes) is on top of what the process
    has when it is ready.
    """

    cpu_s: float = 10.0
    elapsed_s: float = 60.0
    memory_mb: float = 1_000.0

    @contextlib.contextmanager
    def deadline(self) -> Iterator[None]:
        """End this process by a signal when the block takes too long."""
        signal.setitimer(signal.ITIMER_PROF, self.cpu_s)
        signal.setitimer(signal.ITIMER_REAL, self.elapsed_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def limit_memory(self) -> None:
        """Let this process have no more memory than it has now and a page may need."""
        with contextlib.suppress(FileNotFoundError):  # no Linux: there is no such limit
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + int(self.memory_mb * 1e6)
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class ParserError(Exception):
    """Our own code broke over a page, in the other process."""


def _encode_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    raise TypeError(f"{type(value)} is in no reading")


def _decode_array(kind: type, value: tuple[str, bytes]) -> object:
    dtype, numbers = value
    return np.frombuffer(numbers, dtype)


_encode = msgspec.msgpack.Encoder(enc_hook=_encode_array).encode
_decode_response = msgspec.msgpack.Decoder(Fetched).decode
_decode_page = msgspec.msgpack.Decoder(ParsedPage, dec_hook=_decode_array).decode
_decode_failure = msgspec.msgpack.Decoder(Failed).decode


def encode_request(fetched: Fetched) -> bytes:
    """An answer of the Web's, as it is sent to be read."""
    return _encode(fetched)


def decode_reply(answer: bytes) -> ParsedPage | Failed:
    """What the process made of it. Raises ParserError where its code broke."""
    kind, body = answer[:1], answer[1:]
    if kind == _REPLY_ERROR:
        raise ParserError(body.decode())
    return _decode_page(body) if kind == _REPLY_PAGE else _decode_failure(body)


def _handle_request(reader: PageParser, asked: bytes) -> bytes:
    try:
        read = reader.read(_decode_response(asked))
        kind = _REPLY_FAILURE if isinstance(read, Failed) else _REPLY_PAGE
        return kind + _encode(read)
    except MemoryError:
        os._exit(
            EXIT_OUT_OF_MEMORY
        )  # at once: to clean up takes memory, and the parent sees the status
    except Exception as error:
        # As in the crawl's own process: a page that cannot be digested is no end of anything.
        return _REPLY_ERROR + repr(error).encode("utf-8", "replace")


def _read_message(stream: BinaryIO) -> bytes:
    head = stream.read(MESSAGE_LENGTH.size)
    return stream.read(MESSAGE_LENGTH.unpack(head)[0]) if len(head) == MESSAGE_LENGTH.size else b""


def serve(asked: BinaryIO, told: BinaryIO) -> None:
    """Read pages until the other side goes."""
    reader: PageParser
    limits: ParsingLimits | None
    reader, limits = pickle.loads(_read_message(asked))  # noqa: S301  # from the parent alone
    if limits is not None:
        limits.limit_memory()
    told.write(MESSAGE_LENGTH.pack(0))
    told.flush()
    while page := _read_message(asked):
        with contextlib.nullcontext() if limits is None else limits.deadline():
            answer = _handle_request(reader, page)
        told.write(MESSAGE_LENGTH.pack(len(answer)) + answer)
        told.flush()


def _exit_with_parent() -> None:
    """Be killed when the parent dies, in the middle of a page too; on Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve the parent that handed over a socket."""
    _exit_with_parent()
    # Ctrl-C is for the parent, which may still want its pages read.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for expired in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(expired, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGALRM})
    link = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(link.makefile("rb"), link.makefile("wb"))


if __name__ == "__main__":
    main()
