"""Directories of sample pages under categories: readers and the choice of samples.

Readers turn files into :class:`DirectoryEntry`. Nothing here fetches a page. A model knows by the
digest of its directory whether its samples have changed.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

from focused.files import open_regular_file
from focused.topic import DEFAULT_MAX_SAMPLES, Training

_CONTENT_SCHEME = "sample://"


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One sample. ``url`` is absolute and normalised; texts may be "".

    A sample may contain its page: ``text`` is the page's text, ``file`` a saved page. Such a
    page is not fetched. Without a web address its ``url`` is that of :func:`content_url`.
    ``weight`` is the sample weight, > 0.
    """

    category: str
    url: str
    title: str = ""
    description: str = ""
    weight: float = 1.0
    text: str = ""
    file: Path | None = None

    @property
    def needs_fetch(self) -> bool:
        """Whether the page must be fetched from the Web."""
        return not self.text and self.file is None and not self.url.startswith(_CONTENT_SCHEME)


def content_url(content: bytes) -> str:
    """Return a URL that identifies a page without a web address by its content.

    It has a host of its own and cannot be fetched.
    """
    return f"{_CONTENT_SCHEME}{xxhash.xxh3_128_hexdigest(content)}/"


def normalise_category(text: str) -> str:
    """Return a category path without blanks or empty parts around its slashes."""
    return "/".join(part.strip() for part in text.split("/") if part.strip())


@dataclass(frozen=True, slots=True)
class SkippedRecords:
    """Counts records that readers could not use, by file and reason."""

    counts: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def add(self, path: Path, reason: str) -> None:
        """Count one record; ``reason`` must read well after a number."""
        self.counts[path, reason] += 1

    def messages(self) -> tuple[str, ...]:
        """Return a line per file and reason: ``content.rdf.u8: 12 entries that ...``."""
        return tuple(
            f"{path.name}: {count:,} {reason}"
            for (path, reason), count in sorted(self.counts.items())
        )


def is_in_category(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")


def samples_digest(training: Training) -> str:
    """Return a digest of all that determines the samples; defaults add nothing to it."""
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
    """Return the SHA-256 of a file, or of a folder's files and names; unreadable ones are empty."""
    if not path.is_dir():
        return _file_digest(path)
    digest = hashlib.sha256()
    for place, folders, names in os.walk(path):
        folders.sort()
        for file in (Path(place) / name for name in sorted(names)):
            name = file.relative_to(path).as_posix()
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + _file_digest(file))
    return digest.digest()


def _file_digest(path: Path) -> bytes:
    try:
        with open_regular_file(path) as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return hashlib.sha256().digest()
