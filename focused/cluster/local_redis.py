"""Run Redis on this machine: one server, or a cluster of masters and replicas.

For trying out a cluster of workers, and for tests. Other users of the machine cannot use it: each
has a password of its own, and listens on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from focused.child_processes import inherited_environment
from focused.cluster.redis_connection import RedisConnection, RedisServer, TlsFiles, open_server
from focused.errors import CoordinationError

_HOST = "127.0.0.1"
_CONFIGURATION = "redis.conf"
_PORTS = range(10_000, 22_000)
"""Below the ports that a system gives to connections, also with the offset of the cluster bus."""
_BUS_OFFSET = 10_000
_TRIES = 20
_SLOTS = 16_384
_START_WITHIN_S = 60.0
_STOP_WITHIN_S = 1.0
"""A server that writes its first append-only file ignores SIGTERM."""
_ANSWER_WITHIN_S = 5.0
_POLL_S = 0.02
_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class _Node:
    """A server: its group has one master at a time."""

    group: int
    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    connection: RedisConnection | None = None
    is_suspended: bool = False

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / "log"

    @property
    def is_running(self) -> bool:
        """Whether its process has not ended."""
        return self.process is not None and self.process.poll() is None

    def execute(self, *command: str | int) -> Any:
        """Run a command. Raises CoordinationError."""
        assert self.connection is not None
        return self.connection.execute(*command)


class LocalRedis:
    """Context manager that runs redis-server in a folder; ``urls`` tell where, with the password.

    One master without replicas is a single server; otherwise a Redis Cluster. In a folder that was
    used before, they go on with their data. The servers end with the context, and with this process
    however it ends. Entering raises CoordinationError.
    """

    def __init__(
        self,
        folder: Path,
        *,
        masters: int = 1,
        replicas: int = 0,
        node_timeout_s: float = 2.0,
        tls: TlsFiles | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.password = secrets.token_hex(16)
        self._is_cluster = masters > 1 or replicas > 0
        self._masters = masters
        self._tls = tls
        self._options = {
            "bind": _HOST,
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "requirepass": self.password,
            "masterauth": self.password,
            "repl-diskless-sync-delay": "0",
            "shutdown-timeout": "0",
        }
        if self._is_cluster:
            self._options |= {
                "cluster-enabled": "yes",
                "cluster-node-timeout": str(round(node_timeout_s * 1_000)),
                "cluster-require-full-coverage": "no",
                "cluster-replica-validity-factor": "0",
            }
        if tls is not None:
            self._options |= {
                "tls-cluster": "yes",
                "tls-replication": "yes",
                "tls-ca-cert-file": str(tls.authority),
                "tls-cert-file": str(tls.certificate),
                "tls-key-file": str(tls.key),
            }
        self._options |= options or {}
        self._folder = folder
        self._nodes = [
            _Node(number % masters, folder / f"node-{number}")
            for number in range(masters * (1 + replicas))
        ]

    @property
    def urls(self) -> Sequence[str]:
        """The URLs of all servers."""
        scheme = "redis" if self._tls is None else "rediss"
        return [f"{scheme}://:{self.password}@{_HOST}:{node.port}" for node in self._nodes]

    def __enter__(self) -> Self:
        if shutil.which("redis-server") is None:
            raise CoordinationError(
                "redis-server is not installed: apt-get install redis-server, or name a running "
                "one in [cluster] url"
            )
        is_new = not any(node.folder.exists() for node in self._nodes)
        try:
            for node in self._nodes:
                node.port = _last_port(node.folder)
                self._start(node)
            if self._is_cluster:
                if is_new:
                    self._form_cluster()
                self.wait_for_masters(_START_WITHIN_S)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def master(self, group: int) -> int:
        """Return the number of the server that is the group's master at the moment.

        Raises CoordinationError if there is none.
        """
        for number, node in enumerate(self._nodes):
            if node.group == group and node.is_running and not node.is_suspended:
                with contextlib.suppress(CoordinationError):
                    if node.execute("ROLE")[0] == b"master":
                        return number
        raise CoordinationError(f"no server of group {group} is a master: start a replica")

    def kill_master(self, group: int = 0) -> int:
        """Kill the master of a group with SIGKILL; return its number."""
        number = self.master(group)
        process = self._nodes[number].process
        assert process is not None
        process.kill()
        process.wait()
        return number

    def suspend(self, number: int) -> None:
        """Stop a server's process with SIGSTOP."""
        self._signal(number, signal.SIGSTOP)
        self._nodes[number].is_suspended = True

    def resume(self, number: int) -> None:
        """Continue a suspended server."""
        self._signal(number, signal.SIGCONT)
        self._nodes[number].is_suspended = False

    def restart_killed(self) -> None:
        """Start killed servers again with their data; those of a cluster become replicas."""
        for node in self._nodes:
            if not node.is_running:
                self._start(node)

    def wait_for_masters(self, within_s: float = 30.0) -> None:
        """Return when each group has one master that all running servers know, and a replica.

        A group without a second running server needs no replica. Raises CoordinationError.
        """
        _wait_until(self._is_complete, within_s, "the cluster has no master for all slots")

    def _is_complete(self) -> bool:
        running = [node for node in self._nodes if node.is_running]
        for node in running:
            info = node.execute("CLUSTER INFO")
            if info.get("cluster_state") != "ok" or info.get("cluster_slots_fail") != "0":
                return False
        for group in range(self._masters):
            roles = [node.execute("ROLE") for node in running if node.group == group]
            masters = [role for role in roles if role[0] == b"master"]
            if len(masters) != 1 or len(masters[0][2]) != len(roles) - 1:
                return False
        return True

    def _start(self, node: _Node) -> None:
        node.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = node.port
        for _ in range(_TRIES):
            self._run(node, known or _free_port(with_bus=self._is_cluster))
            if self._answers(node):
                return
            reason = node.log.read_text("utf-8", "replace").rstrip().rpartition("\n")[2]
            if known or "listening" not in reason:  # another process took the port meanwhile
                break
        raise CoordinationError(f"redis-server ends at once: {node.log}: {reason}")

    def _run(self, node: _Node, port: int) -> None:
        ports = {"port": str(port)} if self._tls is None else {"port": "0", "tls-port": str(port)}
        options = {**self._options, **ports, "dir": str(node.folder.absolute())}
        lines = [f'{name} "{value}"' for name, value in options.items()] + ['save ""', ""]
        configuration = node.folder / _CONFIGURATION
        configuration.touch(mode=0o600)  # it tells the password
        configuration.write_text("\n".join(lines))
        node.port = port
        node.connection = open_server(
            RedisServer(_HOST, port, self._tls is not None, password=self.password),
            self._tls,
            _ANSWER_WITHIN_S,
        )
        with node.log.open("ab") as log:
            node.process = subprocess.Popen(
                ["redis-server", str(configuration)],
                env=inherited_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the workers, which need Redis to stop
                preexec_fn=_die_with_parent,
            )

    def _answers(self, node: _Node) -> bool:
        """Wait until a server answers; False if it ended, because its port is taken."""
        until = time.monotonic() + _START_WITHIN_S
        while node.is_running and time.monotonic() < until:
            with contextlib.suppress(CoordinationError):
                if node.execute("PING"):
                    return node.is_running
            time.sleep(_POLL_S)
        if node.is_running:
            raise CoordinationError(f"redis-server does not answer: see {node.log}")
        return False

    def _form_cluster(self) -> None:
        bounds = [_SLOTS * n // self._masters for n in range(self._masters + 1)]
        for number, node in enumerate(self._nodes):
            node.execute("CLUSTER SET-CONFIG-EPOCH", number + 1)
            if number < self._masters:
                first, following = bounds[number : number + 2]
                node.execute("CLUSTER ADDSLOTSRANGE", first, following - 1)
        for node in self._nodes[1:]:
            node.execute("CLUSTER MEET", _HOST, self._nodes[0].port)
        everybody = str(len(self._nodes))

        def is_known() -> bool:
            return all(
                node.execute("CLUSTER INFO").get("cluster_known_nodes") == everybody
                for node in self._nodes
            )

        _wait_until(is_known, _START_WITHIN_S, "the servers do not form a cluster")
        for node in self._nodes[self._masters :]:
            master = self._nodes[node.group].execute("CLUSTER MYID")
            node.execute("CLUSTER REPLICATE", master)

    def _signal(self, number: int, which: signal.Signals) -> None:
        process = self._nodes[number].process
        assert process is not None
        process.send_signal(which)

    def _stop(self) -> None:
        for node in self._nodes:
            if node.connection is not None:
                node.connection.close()
            if node.process is not None and node.is_running:
                node.process.send_signal(signal.SIGCONT)
                node.process.terminate()
        for node in self._nodes:
            if node.process is None:
                continue
            try:
                node.process.wait(_STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()


def _die_with_parent() -> None:
    # Runs between fork and exec, so it calls nothing but prctl; Linux alone has it.
    with contextlib.suppress(OSError, AttributeError):
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_LIBC = ctypes.CDLL(None)


def _free_port(*, with_bus: bool) -> int:
    """Return a port that is free at the moment; its server finds out whether it still is."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if _is_free(port) and (not with_bus or _is_free(port + _BUS_OFFSET)):
            return port


def _last_port(folder: Path) -> int:
    """Return the port that the server of a folder had; 0 for a new folder."""
    try:
        text = (folder / _CONFIGURATION).read_text()
    except FileNotFoundError:
        return 0
    ports = map(int, re.findall(r'^(?:tls-)?port "(\d+)"$', text, re.MULTILINE))
    return max(ports, default=0)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A port is free whose last connection has ended; redis-server thinks so, too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _wait_until(holds: Callable[[], bool], within_s: float, problem: str) -> None:
    until = time.monotonic() + within_s
    while True:
        with contextlib.suppress(CoordinationError):
            if holds():
                return
        if time.monotonic() > until:
            raise CoordinationError(f"{problem} after {within_s:.0f} s: see the servers' logs")
        time.sleep(_POLL_S)
