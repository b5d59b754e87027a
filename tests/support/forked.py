"""Runs commands in processes that are forked from one that has already imported them.

Each command is a process of its own: it has its own reactor, signals and exit status. The two
seconds in which Python imports Scrapy and the scientific libraries are paid once per test worker.
A test of what a command imports starts an interpreter instead.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A process that has not ended by then hangs. Less than pytest's timeout, which shows no output.
HANGS_AFTER_S = 240.0
# What a crawl imports, but for the reactor, which each process installs for itself.
PRELOADED = [
    "focused.scrapy_addon.spiders.topic_spider",
    "focused.scrapy_addon.commands.crawl",
    "focused.archive.parquet",
    "focused.cli",
    "focused.cli.crawl",
    "focused.reports.report_output",
    "scrapy.cmdline",
    "scrapy.shell",
    "tests.support.forked",
    "tests.support.preloaded",
    "joblib",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "sklearn.linear_model",
]


def fork(
    arguments: Sequence[str],
    *,
    out: Path,
    err: Path | None = None,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int | None] | None = None,
) -> BaseProcess:
    """Start ``scrapy ...``, ``focused ...`` or ``-c PROGRAM ...`` in a folder.

    ``out`` gets its standard output; ``err`` the errors, which go to ``out``, too, without it.
    """
    variables = {**os.environ, **(environment or {})}
    process = _server().Process(
        target=_run, args=(list(arguments), out, err, folder, variables, dict(limits or {}))
    )
    process.start()
    # start() asks all children whether they have ended, also those that another thread waits for.
    # Of two that read one child's exit status at once, one gets nothing and takes it for 255.
    multiprocessing.process._children.discard(process)  # type: ignore[attr-defined]
    return process


class ForkedCommand:
    """A forked command with the methods of ``subprocess.Popen`` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[int, int | None] | None = None,
        errors_apart: bool = False,
    ) -> None:
        self.args = list(arguments)
        self._out = tempfile.NamedTemporaryFile()  # noqa: SIM115  # communicate() closes it
        self._err = tempfile.NamedTemporaryFile() if errors_apart else None  # noqa: SIM115
        self._process = fork(
            arguments,
            out=Path(self._out.name),
            err=Path(self._err.name) if self._err is not None else None,
            folder=folder,
            environment=environment,
            limits=limits,
        )
        self.pid = self._process.pid
        self._read: tuple[str, str | None] | None = None

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str | None]:
        """Wait for the end; return the output and the errors."""
        self.wait(timeout)
        if self._read is None:
            self._read = (_text(self._out), None if self._err is None else _text(self._err))
        return self._read

    def first_line(self, timeout_s: float = HANGS_AFTER_S) -> str:
        """Wait for the first line of the output."""
        until = time.monotonic() + timeout_s
        while b"\n" not in (written := Path(self._out.name).read_bytes()):
            assert self.poll() is None and time.monotonic() < until, written
            time.sleep(0.01)
        return written.decode().splitlines()[0]

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self._process.pid or 0, number)


def is_running(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for what other processes do, such as end after they were killed."""
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def run_forked(
    arguments: Sequence[str],
    *,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = HANGS_AFTER_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as ``subprocess.run`` would."""
    command = ForkedCommand(arguments, folder=folder, environment=environment, errors_apart=True)
    try:
        out, err = command.communicate(timeout_s)
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()
        raise
    return subprocess.CompletedProcess(command.args, command.wait(), out, err)


def _text(file: tempfile._TemporaryFileWrapper[bytes]) -> str:
    with file:
        return Path(file.name).read_text(errors="replace")


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with contextlib.chdir(ROOT):  # where it finds what it shall import
        from multiprocessing.forkserver import ensure_running

        ensure_running()
    return context


def _run(
    arguments: list[str],
    out: Path,
    err: Path | None,
    folder: Path,
    variables: Mapping[str, str],
    limits: Mapping[int, int | None],
) -> None:
    # A collection that went through all that was imported would be half of a small crawl.
    gc.freeze()
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # TMPDIR may be another now
    if "PYTHONWARNINGS" in variables:
        warnings.simplefilter(variables["PYTHONWARNINGS"])  # type: ignore[arg-type]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    os.dup2(os.open(out, flags), 1)
    os.dup2(1 if err is None else os.open(err, flags), 2)
    if "TEST_ON_ONE_CORE" in variables:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for kind, limit in limits.items():
        if limit is not None:
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
    os.chdir(folder)
    sys.path[:0] = [str(folder), *filter(None, variables.get("PYTHONPATH", "").split(":"))]
    sys.argv = arguments
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    elif arguments[0] == "scrapy":
        from scrapy.cmdline import execute

        execute()
    else:
        from focused.cli import main

        main(prog_name="focused")
