"""What a model was made from, as a digest: by content, so that copying a file changes nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


def content_digest(path: Path) -> bytes:
    """SHA-256 of a file's bytes, or of all files of a folder with their names below it.

    What cannot be read counts as empty.
    """
    if not path.is_dir():
        return _file_digest(path)
    digest = hashlib.sha256()
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + _file_digest(file))
    return digest.digest()


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place) / name for name in sorted(names))


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return hashlib.sha256().digest()
