"""Time, memory and disk usage, and child processes that may be killed."""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

_BLOCK_BYTES = 512  # the unit of st_blocks on any file system


Seconds = tuple[float, float]
"""Of the clock, and of the process's CPU time."""


def began() -> Seconds:
    """Start a measurement; pass the result to :func:`took`."""
    own = time.process_time()
    return time.perf_counter(), own


def took(since: Seconds) -> Seconds:
    """The time since :func:`began`."""
    clock = time.perf_counter()
    return clock - since[0], time.process_time() - since[1]


@dataclass(frozen=True, slots=True)
class Spent:
    """Times of one operation in microseconds: by the clock, and mean CPU time.

    A busy machine disturbs the latter less; it excludes waiting for the disk.
    """

    median_us: float
    p99_us: float
    mean_us: float
    cpu_us: float
    times: int


def spent(times: Sequence[Seconds]) -> Spent:
    """Summarise times, at least one."""
    clock, own = np.asarray(times).T * 1e6
    return Spent(
        float(np.median(clock)),
        float(np.quantile(clock, 0.99)),
        float(clock.mean()),
        float(own.mean()),
        len(clock),
    )


def shared(seconds: Seconds, among: int) -> Seconds:
    """The share of each of several operations timed together."""
    return seconds[0] / among, seconds[1] / among


def anonymous_mb(process: str = "self") -> float:
    """Anonymous memory of a process (RssAnon), which the kernel cannot reclaim, in MB (10**6)."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/{process}/status tells no RssAnon: this kernel is older than Linux 4.5")


def allocated_bytes(folder: Path) -> int:
    """Allocated blocks of all files below a folder, without holes."""
    return sum(file.stat().st_blocks for file in folder.rglob("*")) * _BLOCK_BYTES


def forget_cached(folder: Path) -> None:
    """Ask the kernel to drop its cache of a folder's files."""
    for file in folder.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def is_in_memory(folder: Path) -> bool:
    """Whether a folder lies on a file system without a disk."""
    here, kind = folder.resolve(), ""
    longest = -1
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, name, *_ = line.split()
        if here.is_relative_to(point) and len(point) > longest:
            longest, kind = len(point), name
    return kind in ("tmpfs", "ramfs")


def machine() -> Mapping[str, Any]:
    """The machine's properties that figures depend on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "lmdb": ".".join(map(str, lmdb.version())),
        "py_lmdb": importlib.metadata.version("lmdb"),
        "scrapy": importlib.metadata.version("scrapy"),
        "open_files_at_most": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


@contextmanager
def killed_at_last(work: Callable[..., None], *given: object) -> Iterator[Connection]:
    """Run ``work(connection, *given)`` in a new process; ``kill -9`` it when the block ends."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *given), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()
        here.close()
