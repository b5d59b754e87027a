"""Each kind of shared storage: a folder, memory, and an S3 server on loopback.

A test module imports the fixtures ``storage_url`` and ``s3_server``.
"""

import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from focused.errors import StorageError
from focused_lab.simulation.rounds_simulator import run_at_once


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3 over HTTP."""
    from moto.server import ThreadedMotoServer  # slow to import

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.long)])
def storage_url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The URL of an empty shared storage."""
    if request.param == "file":
        return f"file://{tmp_path}/shared"
    if request.param == "memory":
        return f"memory://{uuid.uuid4()}"
    return new_bucket(request.getfixturevalue("s3_server"), monkeypatch)


def new_bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the environment as users do, and return the URL of a new bucket."""
    import s3fs  # slow to import

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"bucket-{uuid.uuid4()}"
    s3fs.S3FileSystem().mkdir(bucket)
    return f"s3://{bucket}"


class AtOnce(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return run_at_once(partial(fn, *args, **kwargs))


class Later(Executor):
    """Runs what is submitted when it is told to."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Future[Any], Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._jobs.append((Future(), partial(fn, *args, **kwargs)))
        return self._jobs[-1][0]

    def run(self) -> None:
        jobs, self._jobs = self._jobs, []
        for future, job in jobs:
            try:
                future.set_result(job())
            except StorageError as error:
                future.set_exception(error)
