"""Measure the peak memory of a process.

Linux lets a process reset its high-water mark of resident memory (proc(5), ``clear_refs`` and
``VmHWM``). Other systems only know the peak since the process started.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"


def reset_peak() -> None:
    """Reset the peak, where the system can."""
    try:
        (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return


def peak_mb(process: Path = _PROCESS) -> float | None:
    """Peak resident memory in MB (10**6 bytes) since the reset, or since the process started.

    ``process`` is a folder of procfs; None for another process without one.
    """
    try:
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    if process != _PROCESS:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
