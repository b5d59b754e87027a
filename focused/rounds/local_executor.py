"""Partitions as processes of this machine, each with a socket to the driver."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait

from focused.child_processes import python_command, python_environment

_END_WITHIN_S = 10.0


class LocalExecutor:
    """The :class:`focused.rounds.process_supervision.Executor` of processes of this machine."""

    def __init__(self, module: str) -> None:
        """``module`` is run with the number of its socket."""
        self._module = module
        self._children: dict[int, tuple[subprocess.Popen[bytes], Connection]] = {}

    @property
    def processes(self) -> Mapping[int, int]:
        """The process of each partition that runs."""
        return {number: child.pid for number, (child, _) in self._children.items()}

    def start(self, partition: int, message: bytes) -> None:
        """Start the process of a partition."""
        ours, theirs = socket.socketpair()
        with theirs:
            child = subprocess.Popen(
                python_command(self._module, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=python_environment(has_secrets=True),
                # Ctrl-C must not stop it: the driver does.
                start_new_session=True,
            )
        self._children[partition] = child, Connection(ours.detach())
        self.send(partition, message)

    def send(self, partition: int, message: bytes) -> None:
        """Send a message; one to a process that has ended is lost."""
        found = self._children.get(partition)
        if found is not None:
            with contextlib.suppress(OSError):
                found[1].send_bytes(message)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Return the next message of each process that sent one."""
        owners = {connection: number for number, (_, connection) in self._children.items()}
        received: list[tuple[int, bytes | None]] = []
        for connection in wait(list(owners), timeout_s):
            assert isinstance(connection, Connection)
            number = owners[connection]
            try:
                received.append((number, connection.recv_bytes()))
            except (EOFError, OSError):
                self._reap(number)
                received.append((number, None))
        return received

    def kill(self, partition: int) -> None:
        """End a process at once."""
        found = self._children.get(partition)
        if found is not None:
            found[0].kill()

    def is_waiting(self, partition: int) -> bool:
        """Return False: this machine takes all."""
        return False

    def is_gone(self, partition: int) -> bool:
        """Return True: the process was waited for."""
        return True

    def close(self) -> None:
        """End all processes that still run, at once."""
        for number in list(self._children):
            self.kill(number)
            self._reap(number)

    def _reap(self, partition: int) -> None:
        child, connection = self._children.pop(partition)
        connection.close()
        try:
            child.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def inherited_connection(number: int) -> Connection:
    """Return the connection to the driver, in a process that :class:`LocalExecutor` started."""
    os.set_inheritable(number, False)
    return Connection(number)
