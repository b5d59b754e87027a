"""Executors of partitions: as processes of this machine, or on the machines of a Ray cluster.

For each partition Ray starts an actor, on a machine with a free CPU, which runs the partition's
process as on one machine and passes messages on. A process whose actor or machine dies loses its
connection, and stops. Ray restarts nothing: the driver does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from focused.child_processes import python_command, python_environment
from focused.errors import ConfigurationError

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


_LOCAL = "local"
_POLL_S = 10.0
_CONNECT_S = 10.0
_OBJECT_STORE_BYTES = 80_000_000
"""Ray's smallest store, roughly: what partitions exchange is in shared storage."""
_STAYS_HERE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    # Despite its name it also keeps Linux to the loopback address.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
"""The environment of a Ray that this process starts: nothing listens to other machines."""


class PartitionActor:
    """Runs a partition's process beside itself; an actor of Ray.

    ``send`` and ``kill`` run in one thread, ``receive`` in another.
    """

    def __init__(self, module: str, message: bytes) -> None:
        """``message`` is the first that the process gets."""
        self._executor = LocalExecutor(module)
        self._executor.start(0, message)

    def send(self, message: bytes) -> None:
        """Pass a message on to the process."""
        self._executor.send(0, message)

    def kill(self) -> None:
        """End the process at once."""
        self._executor.kill(0)

    def receive(self) -> Sequence[bytes] | None:
        """Return the next messages, perhaps none after a while; None when the process has ended."""
        if not self._executor.processes:
            return None
        found: list[bytes] = []
        timeout_s = _POLL_S
        while received := self._executor.receive(timeout_s):
            for _, message in received:
                if message is None:
                    return found or None
                found.append(message)
            timeout_s = 0.0
        return found


def _check_reachable(address: str) -> None:
    """Raise OSError if nothing listens there: Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in address:
        socket.create_connection((host, int(port)), _CONNECT_S).close()


class RayExecutor:
    """The :class:`focused.rounds.process_supervision.Executor` of a Ray cluster."""

    def __init__(self, module: str, address: str, *, processes: int) -> None:
        """``module`` as for :class:`LocalExecutor`.

        ``address`` is that of a cluster; ``local`` starts one for so many processes. Raises
        ConfigurationError if there is none.
        """
        if address == _LOCAL:
            os.environ.update(_STAYS_HERE)
        import ray  # after the environment is set

        self._ray: Any = ray
        own: dict[str, Any] = {
            "num_cpus": processes,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        try:
            _check_reachable(address)
            ray.init(address, logging_level=logging.WARNING, **(own if address == _LOCAL else {}))
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"--ray {address}: {str(error).strip() or type(error).__name__}; start a cluster "
                "with `ray start --head`, and use the same versions of Ray and Python everywhere"
            ) from error
        self._module = module
        remote: Any = ray.remote
        self._actor_class = remote(
            num_cpus=1,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            concurrency_groups={"receive": 1},
        )(PartitionActor)
        self._actors: dict[int, Any] = {}
        self._starting: dict[int, Any] = {}
        self._receiving: dict[Any, int] = {}
        self._killed: set[int] = set()
        self._gone: set[int] = set()
        self._ended: list[tuple[int, None]] = []

    def start(self, partition: int, message: bytes) -> None:
        """Start the process of a partition where there is room, as soon as there is."""
        self._actors[partition] = actor = self._actor_class.remote(self._module, message)
        self._killed.discard(partition)
        self._gone.discard(partition)
        self._starting[partition] = actor.__ray_ready__.remote()
        self._expect(partition)

    def send(self, partition: int, message: bytes) -> None:
        """Send a message; one to a process that has ended is lost."""
        actor = self._actors.get(partition)
        if actor is not None:
            actor.send.remote(message)

    def receive(self, timeout_s: float) -> Sequence[tuple[int, bytes | None]]:
        """Return the next messages of the processes that sent some."""
        found: list[tuple[int, bytes | None]] = [*self._ended]
        self._ended.clear()
        if waiting := list(self._receiving):
            self._ray.wait(waiting, timeout=0 if found else timeout_s)
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
            for each in ready:
                partition = self._receiving.pop(each)
                found += [(partition, message) for message in self._received(partition, each)]
        return found

    def kill(self, partition: int) -> None:
        """End a process at once; if its machine does not do that, give it up the second time."""
        actor = self._actors.get(partition)
        if actor is None:
            return
        if partition not in self._killed:
            self._killed.add(partition)
            actor.kill.remote()
            return
        self._drop(partition)
        self._receiving = {ref: n for ref, n in self._receiving.items() if n != partition}
        self._ended.append((partition, None))

    def is_waiting(self, partition: int) -> bool:
        """Whether no machine has room for the process yet."""
        starting = self._starting.get(partition)
        if starting is None:
            return False
        ready, _ = self._ray.wait([starting], timeout=0)
        if ready:
            del self._starting[partition]
        return not ready

    def is_gone(self, partition: int) -> bool:
        """Whether the actor saw the process end; of a lost one nobody knows."""
        return partition in self._gone

    def close(self) -> None:
        """End all processes that still run, and leave the cluster."""
        for partition in list(self._actors):
            self._drop(partition)
        self._ray.shutdown()

    def _expect(self, partition: int) -> None:
        receive = self._actors[partition].receive.options(concurrency_group="receive")
        self._receiving[receive.remote()] = partition

    def _received(self, partition: int, result: Any) -> Sequence[bytes | None]:
        """Return the messages of an actor; None if its process, or itself, has ended."""
        try:
            messages: Sequence[bytes] | None = self._ray.get(result)
        except self._ray.exceptions.RayError:
            pass  # of its process nobody knows
        else:
            if messages is not None:
                self._expect(partition)
                return messages
            self._gone.add(partition)
        self._drop(partition)
        return [None]

    def _drop(self, partition: int) -> None:
        self._starting.pop(partition, None)
        self._ray.kill(self._actors.pop(partition))
