"""A comparison as one JSON document: what was asked, what was run, what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from focused.errors import ConfigurationError
from focused.evaluation.examination.measures import Row
from focused.evaluation.examination.plan import Plan
from focused.evaluation.findings.conclusions import findings_of
from focused.whole_file import write_json

_DISTRIBUTION = "focused-crawler"


def document_of(plan: Plan, rows: Sequence[Row], command: Sequence[str]) -> dict[str, Any]:
    """The document of the runs so far; ``command`` is the command line's words."""
    return {
        "focused": _version(),
        "command": list(command),
        "terms": {**asdict(plan.terms), "live": plan.terms.live},
        "webs": plan.webs,
        "runs": list(rows),
        "skipped": [asdict(each) for each in plan.skipped],
        **findings_of(rows, plan.terms.seed),
    }


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write it whole. Raises ConfigurationError when ``path`` cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, document)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def check_writable(path: Path) -> None:
    """Raise ConfigurationError when :func:`write_document` could not write ``path``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def _version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:  # a bare checkout
        return "unknown"
