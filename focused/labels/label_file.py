"""The file that labels are kept in: JSON Lines, only ever appended to.

Each line is a label, or ``{"undo": URL, "at": seconds}``, which takes back the last label
of that URL that still stands. A label counts from the moment its whole line is on the
disk; what a crash left of a line was never acknowledged and is passed over.
"""

from __future__ import annotations

import codecs
import fcntl
from pathlib import Path
from typing import Any

import msgspec

from focused.atomic_file import append_durably, fsync_folder
from focused.errors import LabelError
from focused.labels.label import Label
from focused.topic import Training

_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Takes back the last standing label of ``undo``, a URL."""

    undo: str
    at: float


class LabelFile:
    """Labels of one session, appended to ``path`` and forced to the disk one by one.

    ``labels`` are those that stand, as :func:`read_labels` gives them. One session at a
    time: opening a file that another has open raises :class:`LabelError`, as does a
    file that cannot be read or written. Usable as a context manager.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise LabelError(f"{path}: cannot be opened: {error.strerror}") from error
        try:
            _lock_file(self._file.fileno(), path)
            self._standing = self._mend_end()
            fsync_folder(path.parent)
        except OSError as error:
            self.close()
            raise LabelError(f"{path}: cannot be opened: {error.strerror}") from error
        except LabelError:
            self.close()
            raise

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels that stand, at most one of each URL, in the order they were given."""
        return self._standing.labels

    def append(self, label: Label) -> None:
        """Keep ``label``; it is on the disk when this returns. Raises LabelError."""
        self._write(label)
        self._standing.take(label)

    def undo(self, url: str, at: float) -> Label | None:
        """Take back the URL's last label and return it; None when none stands.

        What was said of the page before that, if anything, stands again.
        """
        taken_back = self._standing.last_of(url)
        if taken_back is not None:
            undo = _Undo(url, at)
            self._write(undo)
            self._standing.take(undo)
        return taken_back

    def close(self) -> None:
        """Let other sessions have the file."""
        self._file.close()

    def __enter__(self) -> LabelFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _mend_end(self) -> _CurrentLabels:
        """Read what is there, and make the file end in a whole line."""
        self._file.seek(0)
        content = self._file.read()
        standing, whole = _parse_labels(content, self.path)
        if whole < len(content):
            self._file.truncate(whole)
        elif content and not content.endswith(b"\n"):
            append_durably(self._file.fileno(), b"\n")
        return standing

    def _write(self, line: Label | _Undo) -> None:
        try:
            append_durably(self._file.fileno(), msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise LabelError(f"{self.path}: cannot be written: {error.strerror}") from error


def read_labels(path: Path) -> tuple[Label, ...]:
    """The labels that stand, at most one of each URL, in the order they were given.

    No file, no labels. A last line that a crash cut off is passed over. Raises
    :class:`LabelError` naming file and line when another cannot be understood.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LabelError(f"{path}: cannot be read: {error.strerror}") from error
    return _parse_labels(content, path)[0].labels


def load_topic_labels(training: Training) -> tuple[Label, ...]:
    """What people said of pages for this topic, so far."""
    return () if training.labels is None else read_labels(training.labels)


class _CurrentLabels:
    """What stands of a file's lines, taken one after the other."""

    def __init__(self) -> None:
        self._count = 0
        self._of_url: dict[str, list[tuple[int, Label]]] = {}

    def take(self, line: Label | _Undo) -> None:
        """Count one more line. An undo of what does not stand changes nothing."""
        if isinstance(line, Label):
            self._of_url.setdefault(line.url, []).append((self._count, line))
            self._count += 1
        elif line.undo in self._of_url:
            self._of_url[line.undo].pop()
            if not self._of_url[line.undo]:
                del self._of_url[line.undo]

    def last_of(self, url: str) -> Label | None:
        """The label of ``url`` that stands."""
        said = self._of_url.get(url)
        return said[-1][1] if said else None

    @property
    def labels(self) -> tuple[Label, ...]:
        """The last label of each URL, by when it was given."""
        last = sorted((said[-1] for said in self._of_url.values()), key=lambda pair: pair[0])
        return tuple(label for _, label in last)


def _parse_labels(content: bytes, path: Path) -> tuple[_CurrentLabels, int]:
    """What stands, and the length in bytes of the part that is whole."""
    standing = _CurrentLabels()
    *lines, rest = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                standing.take(_decode_line(line))
            except _DECODE_ERRORS as error:
                raise LabelError(
                    f"{path}:{number}: is no label: {error}; mend the line or take it out"
                ) from error
    try:
        if rest.strip():
            standing.take(_decode_line(rest))
        return standing, len(content)
    except _DECODE_ERRORS:
        return standing, len(content) - len(rest)


def _decode_line(line: bytes) -> Label | _Undo:
    # An editor that saved the file by hand may have put a byte order mark before it.
    fields = msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8), type=dict[str, Any])
    kind: type[Label] | type[_Undo] = _Undo if "undo" in fields else Label
    return msgspec.convert(fields, kind)


def _lock_file(descriptor: int, path: Path) -> None:
    """Hold the file against other sessions for as long as it is open, a crash included."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LabelError(
            f"{path}: another session is labelling into this file: end it, or go on there"
        ) from error
