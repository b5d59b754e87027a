"""The files of a comparison: the log of finished runs, and the JSON document.

``runs.jsonl`` holds one line per finished run, its key and its record, flushed to disk before the
next run is reported. An interrupted comparison resumes from it and ignores records of other keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import msgspec

import focused
import focused_lab
from focused.errors import ConfigurationError, StateError
from focused.files import write_json_atomically
from focused.installed_features import installed_parts
from focused.orderings import ENTRY_POINT_GROUP as ORDERINGS
from focused_lab.analysis.comparison_analysis import analysis_to_dict
from focused_lab.experiment_plan import ExperimentPlan
from focused_lab.run_measures import RunRecord

RUN_LOG_FILE = "runs.jsonl"
_IGNORED_PATHS = ("cli", "analysis", "commands")


class RunLog:
    """The finished runs by key; locks its file while open."""

    def __init__(self, folder: Path) -> None:
        """Open the log in ``folder``, which is created.

        Raises ConfigurationError when it cannot be written, StateError when another comparison has
        it open.
        """
        self.path = folder / RUN_LOG_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
        except OSError as error:
            raise ConfigurationError(f"--out {folder} is not writable: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise StateError(
                f"{self.path} is in use by another comparison: wait for it, or pass another --out"
            ) from error
        self._rows = self._read()

    @property
    def rows(self) -> Mapping[str, RunRecord]:
        """All records by key."""
        return self._rows

    def add(self, key: str, row: RunRecord) -> None:
        """Append a record and force it to disk."""
        line = json.dumps({"key": key, "run": row}, ensure_ascii=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._rows[key] = row

    def reload(self) -> None:
        """Read the file again: an interrupt may have come during :meth:`add`."""
        self._rows = self._read()

    def _read(self) -> dict[str, RunRecord]:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        # A crash can cut off the last line.
        self._file.truncate(whole)
        rows: dict[str, RunRecord] = {}
        self.damaged = 0
        for line in content[:whole].splitlines():
            try:
                entry = json.loads(line)
                rows[entry["key"]] = dict(entry["run"])
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += 1
        return rows

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def rotate_run_log(folder: Path) -> Path | None:
    """Rename the log in ``folder`` to the first free name; None when it is empty."""
    path = folder / RUN_LOG_FILE
    if not path.is_file() or not path.stat().st_size:
        return None
    number = 1
    while (aside := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return path.rename(aside)


def program_digest(policies: Sequence[str]) -> str:
    """Digest of the source code that decides about a run.

    Covers the crawler and the lab, except modules that only show results, and the modules of
    policies of other packages and of custom ones, named ``package.module.function``.
    """
    digest = hashlib.sha256()
    for package in (focused, focused_lab):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and path.suffix != ".pyc" and not name.startswith(_IGNORED_PATHS):
                digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    points = installed_parts(ORDERINGS)
    modules = {name: name.rpartition(".")[0] for name in policies if "." in name}
    modules |= {name: points[name].module for name in policies if name in points}
    for _, module in sorted(modules.items()):
        if module.partition(".")[0] == focused_lab.__name__:
            continue  # it is covered, whatever is compared
        found = importlib.util.find_spec(module)
        if found is not None and found.origin is not None:
            digest.update(Path(found.origin).read_bytes())
    return digest.hexdigest()


_DISTRIBUTION = "focused-crawler"


def build_comparison(
    plan: ExperimentPlan, rows: Sequence[RunRecord], command: Sequence[str]
) -> dict[str, Any]:
    """Build the document of the runs so far; ``command`` are the command line's words."""
    return {
        "focused": _package_version(),
        "command": list(command),
        "settings": msgspec.structs.asdict(plan.settings),
        "webs": plan.webs,
        "runs": list(rows),
        "skipped": [msgspec.structs.asdict(each) for each in plan.skipped],
        **analysis_to_dict(rows, plan.settings.seed),
    }


def write_comparison(path: Path, document: dict[str, Any]) -> None:
    """Write the document atomically. Raises ConfigurationError when ``path`` cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json_atomically(path, document)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def check_writable(path: Path) -> None:
    """Raise ConfigurationError when :func:`write_comparison` could not write ``path``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def _package_version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:  # not installed
        return "unknown"
