"""Command lines and environments of child processes.

Python puts the working directory in front of the module path for ``-m`` and ``-c``, so that a file
``json.py`` in a crawl folder would run as code. All interpreters are started by
:func:`python_command`, which prevents that, and :func:`spawn_context` does it for
:mod:`multiprocessing`. Children that handle what strangers wrote get :func:`python_environment`,
without the passwords that the environment may hold; those of :func:`spawn_context` call
:func:`drop_secrets` first.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import SpawnContext
from pathlib import Path

_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "TERM", "COLUMNS"),
        *("NO_COLOR", "FORCE_COLOR", "COLORTERM", "LANG", "LANGUAGE", "TZ", "TZDIR"),
        *("LD_LIBRARY_PATH", "FONTCONFIG_PATH"),
        *("VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
        *("MPLCONFIGDIR", "TLDEXTRACT_CACHE", "SCRAPY_SETTINGS_MODULE", "SCRAPY_PROJECT"),
    }
)
_KEPT_PREFIXES = ("LC_", "PYTHON", "OMP_", "OPENBLAS_", "MKL_", "MALLOC_")
_SAFE_PATH = "PYTHONSAFEPATH"
_PR_SET_PDEATHSIG = 1
_PARENT = "FOCUSED_PARENT_PROCESS"
"""The environment variable with the parent's process ID."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module by this interpreter.

    The module is found on the path of :func:`python_environment` or among what is installed,
    never in the working directory.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def run_child(
    command: Sequence[str], environment: Mapping[str, str], encoding: str | None = None
) -> tuple[int, str]:
    """Run a child process; return its exit status and what it wrote to standard output.

    ``encoding`` is that of its output; None is the locale's.
    Ctrl-C is passed on once, as SIGTERM: while a child imports its modules, SIGINT would print a
    traceback. Then KeyboardInterrupt is raised.
    """
    environment = {**environment, _PARENT: str(os.getpid())}
    with subprocess.Popen(
        command,
        env=environment,
        process_group=0,
        stdout=subprocess.PIPE,
        encoding=encoding or "locale",
        errors="replace",
    ) as child:
        try:
            written, _ = child.communicate()
        except KeyboardInterrupt:
            child.terminate()
            child.wait()
            raise
        return child.returncode, written


def end_with_parent(by: signal.Signals) -> None:
    """Let the system send this process a signal when its parent dies; on Linux only.

    A process of :func:`run_child` gets it at once if the parent has died meanwhile.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if int(os.environ.pop(_PARENT, 0)) not in (0, os.getppid()):
        os.kill(os.getpid(), by)


def inherited_environment() -> dict[str, str]:
    """Return the variables of this process that hold no secrets, by a list of names."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }


def python_environment(*, has_secrets: bool = False) -> dict[str, str]:
    """Return the environment of a child that is a Python interpreter.

    The child finds the modules that this process finds, also those of the user's project, by the
    same order of folders. ``has_secrets``: the child is a crawl, which needs what the user's
    settings, logins and proxies refer to.
    """
    inherited = dict(os.environ) if has_secrets else inherited_environment()
    return inherited | {"PYTHONPATH": os.pathsep.join(module_path()), _SAFE_PATH: "1"}


def module_path() -> Sequence[str]:
    """Return the folders of ``sys.path`` for a child, the working directory last.

    ``python -m`` in this process put it first. There it may hold the user's modules, but must not
    replace those that are installed. A checkout in which this package lies keeps its position.
    """
    folders = [folder for folder in sys.path if folder]
    try:
        here = os.getcwd()
    except FileNotFoundError:  # somebody removed it
        return folders
    if here not in folders or Path(here) == Path(__file__).resolve().parents[1]:
        return folders
    return [*(folder for folder in folders if folder != here), here]


def spawn_context() -> SpawnContext:
    """Return the context of :mod:`multiprocessing` that starts new interpreters.

    It cannot be given an environment, so this process's own gets a variable by which no
    interpreter looks for modules in its working directory.
    """
    os.environ[_SAFE_PATH] = "1"
    return multiprocessing.get_context("spawn")


def drop_secrets() -> None:
    """Remove all variables from the environment that :func:`inherited_environment` leaves out.

    For processes of :func:`spawn_context`, which begin with the whole environment.
    """
    kept = inherited_environment()
    for name in set(os.environ) - set(kept):
        del os.environ[name]
