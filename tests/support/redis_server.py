"""A real redis-server on a socket of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from redis import Redis
from redis.backoff import ConstantBackoff, NoBackoff
from redis.exceptions import BusyLoadingError, ConnectionError
from redis.retry import Retry

COMMAND = shutil.which("redis-server")


@contextmanager
def redis_server() -> Iterator[Redis]:
    """Run a server without a port, and end it."""
    assert COMMAND is not None, "install redis-server"
    # The path of a socket has at most 107 bytes.
    with TemporaryDirectory(prefix="redis-") as folder:
        socket = Path(folder) / "socket"
        options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder)
        process = subprocess.Popen([COMMAND, *options], stdout=subprocess.DEVNULL)
        errors = (ConnectionError, BusyLoadingError, FileNotFoundError)
        until_ready = Retry(ConstantBackoff(0.05), 400, supported_errors=errors)
        client = Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0))
        try:
            with Redis(unix_socket_path=str(socket), retry=until_ready) as waiting:
                waiting.ping()
            yield client
        finally:
            client.close()
            process.kill()
            process.wait()
