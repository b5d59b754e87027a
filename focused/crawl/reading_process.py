"""A process that reads pages for a crawl: ``python -m focused.crawl.reading_process FD``.

FD is a socket of its parent's. The first message holds the :class:`Reader` and the
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

from focused.crawl.reading import Reader, Reading
from focused.web.page import Failed, Fetched

LENGTH = struct.Struct(">I")
"""What comes before each message: its length in bytes."""

_PR_SET_PDEATHSIG = 1

_A_READING, _A_FAILURE, _AN_ERROR = b"R", b"F", b"E"

OUT_OF_MEMORY = 77
"""The exit status of a process whose page needed more memory than it may have."""
OUT_OF_TIME = frozenset({-signal.SIGPROF, -signal.SIGALRM})
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
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # at once: to clean up takes memory, and the parent sees the status
    except Exception as error:
        # As in the crawl's own process: a page that cannot be digested is no end of anything.
        return _AN_ERROR + repr(error).encode("utf-8", "replace")


def _message(stream: BinaryIO) -> bytes:
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def serve(asked: BinaryIO, told: BinaryIO) -> None:
    """Read pages until the other side goes."""
    reader: Reader
    limits: ParsingLimits | None
    reader, limits = pickle.loads(_message(asked))  # noqa: S301  # from the parent alone
    if limits is not None:
        limits.limit_memory()
    told.write(LENGTH.pack(0))
    told.flush()
    while page := _message(asked):
        with contextlib.nullcontext() if limits is None else limits.deadline():
            answer = _answer(reader, page)
        told.write(LENGTH.pack(len(answer)) + answer)
        told.flush()


def _end_with_parent() -> None:
    """Be killed when the parent dies, in the middle of a page too; on Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve the parent that handed over a socket."""
    _end_with_parent()
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
