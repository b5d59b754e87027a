"""The earlier versions of a topic's model: numbered, kept, and brought back.

``NAME.joblib`` is the model in office. What it replaced lies in
``NAME.versions/``, each version with its card and the URLs it learned from:
``1.joblib``, ``1.md``, ``1.urls``, ``2.joblib`` ...
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from focused.errors import ModelError
from focused.learning.model_making import Made, install
from focused.learning.model_store import load_model
from focused.whole_file import write_whole

_CHANGES = ".changes.md"
# The model last: a version is there when its model is.
_FILES = (".md", ".urls", ".joblib")


def versions_folder(model: Path) -> Path:
    """Where the earlier versions lie."""
    return model.with_suffix(".versions")


def earlier_versions(model: Path) -> list[int]:
    """The numbers of the versions that are kept, ascending."""
    found = versions_folder(model).glob("*.joblib")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal())


def keep_version(model: Path) -> int:
    """Keep the model in office as the next version, with its card; return the number.

    It stays in office. Raises ModelError when it cannot be kept.
    """
    number = max(earlier_versions(model), default=0) + 1
    folder = versions_folder(model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _copy(model, folder / f"{number}.joblib")
    except OSError as error:
        raise ModelError(f"{folder}: the old model cannot be kept: {error.strerror}") from error
    return number


def replace_model(made: Made, model: Path) -> int | None:
    """Put ``made`` in office; return the number that the old model is kept by, None without one.

    A file that is there and cannot be loaded is not kept. Raises ModelError.
    """
    number = keep_version(model) if _is_sound(model) else None
    install(made, model)
    return number


def _is_sound(model: Path) -> bool:
    try:
        load_model(model)
    except ModelError:
        return False
    return True


@contextmanager
def alone_with(model: Path) -> Iterator[None]:
    """While the block runs, nobody else who asks for this may replace the model.

    Raises ModelError while somebody does, and where the folder cannot be written.
    """
    path = model.with_name(f".{model.stem}.lock")
    is_new = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise ModelError(
            f"training.model: cannot write beside {model}: {error.strerror}"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ModelError(
                f"{model}: another process is training this model; wait until it is done"
            ) from error
        try:
            yield
        finally:
            if is_new and list(path.parent.iterdir()) == [path]:  # no model was made
                path.unlink()
                path.parent.rmdir()


def restore_version(model: Path, number: int) -> int:
    """Put version ``number`` back in office; what is in office is kept as a version first.

    Returns the number of that. Raises ModelError when there is no such version or
    it cannot be loaded.
    """
    path = versions_folder(model) / f"{number}.joblib"
    if not path.exists():
        there = ", ".join(map(str, earlier_versions(model))) or "none"
        raise ModelError(f"{model}: there is no version {number}; kept are: {there}")
    load_model(path)
    kept = keep_version(model)
    try:
        _copy(path, model)
    except OSError as error:
        raise ModelError(f"{model}: cannot be replaced: {error.strerror}") from error
    return kept


def _copy(source: Path, target: Path) -> None:
    for suffix in _FILES:
        content = source.with_suffix(suffix)
        if content.exists():
            write_whole(target.with_suffix(suffix), content.read_bytes())
        elif target.with_suffix(suffix).exists():
            target.with_suffix(suffix).unlink()


def note_changes(model: Path, text: str) -> Path:
    """Put ``text`` on top of the model's list of changes; return its path."""
    path = model.with_suffix(_CHANGES)
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_whole(path, (f"{text.rstrip()}\n\n{before}".rstrip() + "\n").encode())
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from error
    return path
