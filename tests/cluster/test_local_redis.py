"""Redis servers of a folder: they are this user's alone, and end with their process."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from focused.cluster import local_redis
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_connection import RedisConnection, connect
from focused.errors import CoordinationError
from tests.support.engines import needs_redis

pytestmark = needs_redis

_CHILD = """
import sys, time
from pathlib import Path
from focused.cluster import local_redis
from focused.cluster.local_redis import LocalRedis
with LocalRedis(Path(sys.argv[1])) as redis:
    print(redis.urls[0], flush=True)
    time.sleep(600)
"""


def opened(redis: LocalRedis) -> RedisConnection:
    return connect(redis.urls[0], environ={})


def wait_for_end(process_id: int) -> None:
    """Return when a process that is no child of this one has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if "\nState:\tZ" not in Path(f"/proc/{process_id}/status").read_text():
                time.sleep(0.01)
                continue
        return
    pytest.fail(f"process {process_id} goes on")


def test_nobody_else_can_use_it(tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as redis:
        url = redis.urls[0].replace(f":{redis.password}@", "")
        with pytest.raises(CoordinationError, match="password"):
            connect(url, environ={})
        for file in (tmp_path / "node-0", tmp_path / "node-0" / "redis.conf"):
            assert not stat.S_IMODE(file.stat().st_mode) & 0o077


def test_it_ends_with_its_context(tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as redis:
        connection = opened(redis)
        process_id = connection.execute("INFO", "server")["process_id"]
    wait_for_end(process_id)
    with pytest.raises(CoordinationError):
        opened(redis)


def test_it_ends_with_a_killed_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        connection = connect(parent.stdout.readline().strip(), environ={})
        process_id = connection.execute("INFO", "server")["process_id"]
        parent.kill()
    wait_for_end(process_id)
    connection.close()


def test_it_goes_on_with_its_data(tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as redis:
        opened(redis).execute("SET", "key", "value")
    with LocalRedis(tmp_path) as redis:
        assert opened(redis).execute("GET", "key") == b"value"


def test_a_cluster_goes_on_with_its_data(tmp_path: Path) -> None:
    keys = [f"key {n}" for n in range(10)]
    with LocalRedis(tmp_path, masters=3, replicas=1) as redis:
        opened(redis).execute_all([(key, ("SET", key, "value")) for key in keys])
    with LocalRedis(tmp_path, masters=3, replicas=1) as redis:
        connection = opened(redis)
        assert {connection.execute("GET", key) for key in keys} == {b"value"}


def test_a_suspended_server_ends_too(tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as redis:
        process_id = opened(redis).execute("INFO", "server")["process_id"]
        os.kill(process_id, signal.SIGSTOP)
    wait_for_end(process_id)


def test_a_server_that_cannot_start_tells_why(tmp_path: Path) -> None:
    with (
        pytest.raises(CoordinationError, match=r"node-0.*Bad directive"),
        LocalRedis(tmp_path, options={"no-such-option": "1"}),
    ):
        pass


def test_without_redis_it_tells_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CoordinationError, match="apt-get install"), LocalRedis(tmp_path):
        pass


def test_a_port_that_is_taken_meanwhile_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalRedis(tmp_path / "other") as other:
        find = local_redis._free_port
        taken = int(other.urls[0].rpartition(":")[2])
        ports = iter([taken])
        monkeypatch.setattr(
            local_redis, "_free_port", lambda **options: next(ports, 0) or find(**options)
        )
        with LocalRedis(tmp_path / "this") as redis:
            assert opened(redis).execute("PING")
