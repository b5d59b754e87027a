"""Digests of directories, by which a model knows whether its samples have changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from focused.topic import DEFAULT_MAX_SAMPLES, Training


def samples_digest(training: Training) -> str:
    """Return a digest of everything that determines the samples: content of the directory,
    good categories, and non-default limits and background.
    """
    digest = hashlib.sha256()
    for prefix in training.good:
        digest.update(b"good\0" + prefix.encode() + b"\0")
    if training.max_samples != DEFAULT_MAX_SAMPLES:
        digest.update(b"max_samples\0%d\0" % training.max_samples)
    if not training.background:
        digest.update(b"no background\0")
    for path in training.directory:
        digest.update(b"file\0" + content_digest(path))
    return digest.hexdigest()


def content_digest(path: Path) -> bytes:
    """Return the SHA-256 of a file, or of all files below a folder with their names.

    Unreadable files count as empty.
    """
    if not path.is_dir():
        return _file_digest(path)
    digest = hashlib.sha256()
    for file in _files_below(path):
        name = file.relative_to(path).as_posix()
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + _file_digest(file))
    return digest.digest()


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place) / name for name in sorted(names))


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return hashlib.sha256().digest()
