"""Memory and disk space of this process and machine, for benchmarks."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 512  # the unit of st_blocks on any file system


def anonymous_mb() -> float:
    """Anonymous memory of this process, which the kernel cannot reclaim, in MB (10**6 bytes)."""
    return _status_mb("RssAnon")


def peak_mb() -> float:
    """Peak memory of this process, in MB; the lab's own would load pandas into a stock crawl."""
    return _status_mb("VmHWM")


def _status_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status tells no {field}: this kernel is older than Linux 4.5")


def cpu_s_of(process: int | str) -> float:
    """CPU seconds of a running process. Raises OSError when it has ended."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")  # proc(5): utime, stime


def allocated_bytes(folder: Path) -> int:
    """Allocated blocks of all files below a folder, without holes."""
    return sum(file.stat().st_blocks for file in folder.rglob("*")) * _BLOCK_BYTES


def machine() -> Mapping[str, Any]:
    """The machine's properties that figures depend on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
