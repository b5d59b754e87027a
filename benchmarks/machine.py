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
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("/proc/self/status tells no RssAnon: this kernel is older than Linux 4.5")


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
