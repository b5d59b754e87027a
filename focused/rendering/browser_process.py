"""The processes of a browser: a launcher without network, memory, and their end.

The launcher is a script that Playwright starts as if it were the browser. It writes its process id,
and executes the browser in a network namespace of its own where the kernel allows that: there is no
network in it, not even the loopback of the machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from focused.child_processes import inherited_environment

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
"""Names of the browser on the PATH, in this order."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UNSHARE = ("unshare", "--user", "--net", "--map-current-user", "--")
_PROBE_S = 10.0


def find_browser(path: str | None) -> str | None:
    """Return the path of the browser: ``path``, or the first one on the PATH."""
    if path is not None:
        return path if os.access(path, os.X_OK) and Path(path).is_file() else None
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def can_unshare_network() -> bool:
    """Whether a process can be started without network (Linux, user namespaces)."""
    try:
        probe = subprocess.run(
            [*_UNSHARE, "true"],
            check=False,
            capture_output=True,
            timeout=_PROBE_S,
            env=inherited_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def write_launcher(folder: Path, browser: str, *, unshare: bool) -> Path:
    """Write the launcher into ``folder``; return its path."""
    path = folder / "launcher"
    command = shlex.join([*(_UNSHARE if unshare else ()), browser])
    pid_file = shlex.quote(str(folder / "pid"))
    path.write_text(f'#!/bin/sh\necho $$ > {pid_file}\nexec {command} "$@"\n')
    path.chmod(0o700)
    return path


def read_pid(folder: Path) -> int | None:
    """Return the process id that the launcher in ``folder`` wrote, or None."""
    try:
        return int((folder / "pid").read_text())
    except (OSError, ValueError):
        return None


def process_tree(pid: int) -> list[int]:
    """Return a process and its descendants (Linux; elsewhere the process alone)."""
    found = [pid]
    for each in found:
        found += _children(each)
    return found


def memory_bytes(pid: int) -> int:
    """Return the memory of a process that it does not share; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def is_page_process(pid: int) -> bool:
    """Whether the process runs the scripts of pages."""
    try:
        return b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill_tree(pid: int) -> None:
    """Kill a process, its descendants, and its process group if it leads one."""
    tree = process_tree(pid)
    with suppress(OSError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
    for each in tree:
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (task / "children").read_text().split())
