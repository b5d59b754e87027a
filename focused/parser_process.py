"""A child process that handles pages one at a time, within limits of time and memory.

``python -m focused.parser_process FD`` runs one; FD is a socket of its parent. The first message
holds a pickled handler (bytes in, bytes out) and the :class:`ParsingLimits`; nobody but the parent
writes it. The process answers with an empty message when it is ready, and then answers each
message with what the handler returns. The parent never unpickles an answer, so that a page cannot
run code there.

Parsers of HTML are quadratic for some pages, and a thread that runs one cannot be stopped. So the
kernel ends the process when a page exceeds its time, also in the middle of C code, and the exit
status tells the parent why. The process also ends when its parent does, even by SIGKILL (Linux).
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from focused.child_processes import end_with_parent, python_command, python_environment
from focused.web.page import FailureKind

Handler = Callable[[bytes], bytes]
"""Handles one message in the process; must be picklable."""

LENGTH = struct.Struct(">I")
"""Precedes each message: its length in bytes."""

START_S = 60.0
"""Seconds by the clock that a process may take to load its handler."""
MAX_PROCESSES_PER_PAGE = 3
"""Processes that may die over a page: crash, or be killed from outside, as without memory."""
GRACE_S = 2.0
"""Seconds after which the parent kills a process that its own timers did not end."""

_MAX_ANSWER_BYTES = 64_000_000
_RESULT, _ERROR = b"+", b"-"
_OUT_OF_MEMORY = 77  # exit status
_OUT_OF_TIME = frozenset({-signal.SIGPROF, -signal.SIGALRM})  # as subprocess reports them
# How libraries in C++ end a process without memory, when their own allocation fails.
_ABORTED = frozenset({-signal.SIGABRT, -signal.SIGTRAP, -signal.SIGILL})


@dataclass(frozen=True, slots=True)
class ParsingLimits:
    """Limits of one page in a parser process.

    ``cpu_s`` is CPU time, of all threads. ``elapsed_s``, by the clock, leaves room for a machine
    that has other work to do. ``memory_mb`` (of 10^6 bytes) is on top of what the process has when
    it is ready.
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
        """Limit this process to the memory it has now and what a page may need."""
        with contextlib.suppress(FileNotFoundError):  # no Linux: there is no such limit
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + int(self.memory_mb * 1e6)
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class HandlerError(Exception):
    """The handler raised an exception over a page. The process goes on."""


class ParsingStoppedError(Exception):
    """A page ended its process. ``kind`` and ``detail`` say why."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail

    @classmethod
    def of_status(
        cls, status: int, limits: ParsingLimits, *, is_late: bool = False
    ) -> ParsingStoppedError:
        """Explain an exit status; ``is_late``: the parent killed the process for its time."""
        if is_late or status in _OUT_OF_TIME:
            most = f"{limits.cpu_s:g} s of CPU time, or {limits.elapsed_s:g} s by the clock"
            return cls(FailureKind.PARSE_TIMEOUT, f"parsing took more than {most}")
        if status == _OUT_OF_MEMORY:
            most = f"{limits.memory_mb:g} MB"
            return cls(FailureKind.PARSE_MEMORY, f"parsing took more than {most}")
        if status in _ABORTED:
            detail = f"a library gave up ({status}), as without memory: {limits.memory_mb:g} MB"
            return cls(FailureKind.PARSE_MEMORY, detail)
        return cls(FailureKind.PARSE_CRASH, f"the process that parsed it died: {_death(status)}")


def _death(status: int) -> str:
    """Name the signal that ended a process, or its exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pickled(handler: Handler, limits: ParsingLimits) -> bytes:
    """Return the first message of a process. Raises whatever pickling the handler raises."""
    return pickle.dumps((handler, limits))


def framed(message: bytes) -> bytes:
    """Return a message as it is sent."""
    return LENGTH.pack(len(message)) + message


def start_process() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process that waits for its first message, and return it with the socket to it.

    A module of our own, not :mod:`multiprocessing`, which runs the user's main script again.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            python_command(__name__, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=python_environment(),
        )
    return process, ours


def result_of(answer: bytes) -> bytes:
    """Return what the handler returned. Raises HandlerError where it raised an exception."""
    if answer[:1] == _ERROR:
        raise HandlerError(answer[1:].decode())
    return answer[1:]


class ParserProcess:
    """A parser process for callers that wait: started when it is first needed, and again.

    Thread-safe; callers wait for each other. Usable as a context manager.
    """

    def __init__(self, handler: Handler, limits: ParsingLimits) -> None:
        """Take a picklable ``handler``; the process gets a copy of it."""
        self._limits = limits
        self._first_message = pickled(handler, limits)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def ask(self, message: bytes) -> bytes:
        """Return what the handler makes of ``message``.

        Raises :class:`HandlerError` where it raises an exception, and
        :class:`ParsingStoppedError` where the message ends the process: at once if it exceeds a
        limit, else if the processes that try it next die, too.
        """
        with self._lock:
            for last in (False,) * (MAX_PROCESSES_PER_PAGE - 1) + (True,):
                try:
                    return self._ask(message)
                except ParsingStoppedError as stopped:
                    if last or stopped.kind is not FailureKind.PARSE_CRASH:
                        raise
            raise AssertionError("the last try returns or raises")

    def _ask(self, message: bytes) -> bytes:
        is_late = False
        try:
            connection = self._socket or self._start()
            connection.settimeout(self._limits.elapsed_s + GRACE_S)
            connection.sendall(framed(message))
            return result_of(_received(connection))
        except (OSError, EOFError) as error:
            is_late = isinstance(error, TimeoutError)
        status = self._end(kill=is_late)
        raise ParsingStoppedError.of_status(status, self._limits, is_late=is_late)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end(kill=True)

    def __enter__(self) -> ParserProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> socket.socket:
        self._process, connection = start_process()
        self._socket = connection
        connection.settimeout(START_S)
        connection.sendall(framed(self._first_message))
        _received(connection)
        return connection

    def _end(self, *, kill: bool) -> int:
        process, connection = self._process, self._socket
        self._process = self._socket = None
        if connection is not None:
            connection.close()
        if process is None:
            return 0
        if kill:
            process.kill()
        try:
            return process.wait(GRACE_S)  # it closed its socket, or is about to end
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _received(connection: socket.socket) -> bytes:
    length: int = LENGTH.unpack(_exactly(connection, LENGTH.size))[0]
    if length > _MAX_ANSWER_BYTES:
        raise EOFError(f"an answer of {length} bytes")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise EOFError("the process ended")
        parts += part
    return bytes(parts)


def _message(stream: BinaryIO) -> bytes:
    """Read a message; empty once the other side is closed, also within a message."""
    head = stream.read(LENGTH.size)
    length: int = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
    message = stream.read(length)
    return message if len(message) == length else b""


def _answer(handler: Handler, message: bytes) -> bytes:
    try:
        return _RESULT + handler(message)
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)  # at once: cleaning up takes memory, and the parent needs a status
    except Exception as error:  # whatever a parser raises over a page; the next page is another
        return _ERROR + repr(error).encode("utf-8", "replace")


def serve(messages: BinaryIO, answers: BinaryIO) -> None:
    """Answer messages until the other side closes the connection."""
    handler: Handler
    limits: ParsingLimits
    if not (first := _message(messages)):
        return
    handler, limits = pickle.loads(first)  # noqa: S301  # from the parent alone
    limits.limit_memory()
    answers.write(framed(b""))
    answers.flush()
    while message := _message(messages):
        with limits.deadline():
            answer = _answer(handler, message)
        answers.write(framed(answer))
        answers.flush()


def main() -> None:
    """Serve the parent that handed over a socket."""
    end_with_parent(signal.SIGKILL)
    # Ctrl-C is for the parent, which may still want its pages parsed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for expired in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(expired, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGALRM})
    logging.disable()  # what libraries remark on each damaged page is nobody's news
    connection = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(connection.makefile("rb"), connection.makefile("wb"))


if __name__ == "__main__":
    main()
