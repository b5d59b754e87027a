"""Labels and the label file: append-only JSON Lines.

A line is a label, or ``{"undo": URL, "at": seconds}``, which withdraws the URL's last label.
A label counts once its whole line is on disk; an incomplete last line is ignored.

An honest evaluation needs pages that were drawn independently of any model and that no model was
trained on. One page in five is reserved for evaluation, by the hash of its URL; page selection
picks from the other four.
"""

from __future__ import annotations

import codecs
import fcntl
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from focused.atomic_file import append_durably, fsync_folder
from focused.errors import LabelError
from focused.text.hash_sampling import hash_fraction
from focused.topic import Training

Verdict = Literal["yes", "no", "skip"]
"""On topic, off topic, or skipped."""

Role = Literal["evaluation", "training"]
"""Labels evaluate models or train them, never both."""

Reason = Literal["random", "uncertain", "doubtful", "high", "searched", "given"]
"""Why the page was shown; ``given`` for labels from outside."""


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's answer for one page, and what the model predicted.

    ``category`` is the person's category for the page, or "". ``relevance`` (0 to 1) and
    ``model`` (prefix of its digest) are those when the page was shown; None and "" without a
    model. ``at`` is in seconds since the epoch.
    """

    url: Annotated[str, msgspec.Meta(min_length=1)]
    verdict: Verdict
    role: Role
    at: float
    category: str = ""
    reason: Reason = "given"
    relevance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    model: str = ""
    title: str = ""


EVALUATION_SHARE = 0.2
"""Share of all pages reserved for evaluation."""

_ROLE_SEED = 20  # distinct from the seeds of other samples


def evaluation_hash(url: str) -> float:
    """Return the page's position in the evaluation queue, in [0, 1): lower is shown sooner."""
    return hash_fraction(url, _ROLE_SEED)


def role_of(url: str) -> Role:
    """Return whether a label of this page evaluates or trains."""
    return "evaluation" if evaluation_hash(url) < EVALUATION_SHARE else "training"


def training_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that models may learn from: yes or no, with role training."""
    return tuple(one for one in labels if one.role == "training" and one.verdict != "skip")


def evaluation_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that evaluate models: yes or no, of randomly drawn pages."""
    return tuple(one for one in labels if one.role == "evaluation" and one.verdict != "skip")


_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Withdraws the last current label of ``undo``, a URL."""

    undo: str
    at: float


class LabelFile:
    """The labels in ``path``; appends are fsynced one by one.

    One session at a time: raises :class:`LabelError` if another session has the file open, or
    it cannot be read or written. Usable as a context manager.
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
            self._current = self._repair_last_line()
            fsync_folder(path.parent)
        except OSError as error:
            self.close()
            raise LabelError(f"{path}: cannot be opened: {error.strerror}") from error
        except LabelError:
            self.close()
            raise

    @property
    def labels(self) -> tuple[Label, ...]:
        """The current labels, at most one per URL, in the order they were given."""
        return self._current.labels

    def append(self, label: Label) -> None:
        """Append ``label`` and fsync. Raises LabelError."""
        self._write(label)
        self._current.apply(label)

    def undo(self, url: str, at: float) -> Label | None:
        """Withdraw the URL's last label and return it; None if there is none.

        The URL's previous label, if any, becomes current again.
        """
        withdrawn = self._current.current(url)
        if withdrawn is not None:
            undo = _Undo(url, at)
            self._write(undo)
            self._current.apply(undo)
        return withdrawn

    def close(self) -> None:
        """Close the file, so that other sessions can open it."""
        self._file.close()

    def __enter__(self) -> LabelFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repair_last_line(self) -> _CurrentLabels:
        """Read the file and remove or complete its last line."""
        self._file.seek(0)
        content = self._file.read()
        current_labels, whole = _parse_labels(content, self.path)
        if whole < len(content):
            self._file.truncate(whole)
        elif content and not content.endswith(b"\n"):
            append_durably(self._file.fileno(), b"\n")
        return current_labels

    def _write(self, line: Label | _Undo) -> None:
        try:
            append_durably(self._file.fileno(), msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise LabelError(f"{self.path}: cannot be written: {error.strerror}") from error


def read_labels(path: Path) -> tuple[Label, ...]:
    """Return the current labels, at most one per URL, in the order they were given.

    A missing file has no labels. Raises :class:`LabelError` with file and line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LabelError(f"{path}: cannot be read: {error.strerror}") from error
    return _parse_labels(content, path)[0].labels


def load_topic_labels(training: Training) -> tuple[Label, ...]:
    """Return the current labels of a topic."""
    return () if training.labels is None else read_labels(training.labels)


class _CurrentLabels:
    """Replays the lines of a label file."""

    def __init__(self) -> None:
        self._count = 0
        self._by_url: dict[str, list[tuple[int, Label]]] = {}

    def apply(self, line: Label | _Undo) -> None:
        """Apply one line; an undo without a label has no effect."""
        if isinstance(line, Label):
            self._by_url.setdefault(line.url, []).append((self._count, line))
            self._count += 1
        elif line.undo in self._by_url:
            self._by_url[line.undo].pop()
            if not self._by_url[line.undo]:
                del self._by_url[line.undo]

    def current(self, url: str) -> Label | None:
        """Return the current label of ``url``."""
        history = self._by_url.get(url)
        return history[-1][1] if history else None

    @property
    def labels(self) -> tuple[Label, ...]:
        """The last label of each URL, in order of time."""
        last = sorted((history[-1] for history in self._by_url.values()), key=lambda pair: pair[0])
        return tuple(label for _, label in last)


def _parse_labels(content: bytes, path: Path) -> tuple[_CurrentLabels, int]:
    """Return the current labels, and the length in bytes of the complete lines."""
    current_labels = _CurrentLabels()
    *lines, rest = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                current_labels.apply(_decode_line(line))
            except _DECODE_ERRORS as error:
                raise LabelError(
                    f"{path}:{number}: is not a label: {error}; fix or remove the line"
                ) from error
    try:
        if rest.strip():
            current_labels.apply(_decode_line(rest))
        return current_labels, len(content)
    except _DECODE_ERRORS:
        return current_labels, len(content) - len(rest)


def _decode_line(line: bytes) -> Label | _Undo:
    # Editors may add a byte order mark.
    fields = msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8), type=dict[str, Any])
    kind: type[Label] | type[_Undo] = _Undo if "undo" in fields else Label
    return msgspec.convert(fields, kind)


def _lock_file(descriptor: int, path: Path) -> None:
    """Lock the file against other sessions while it is open."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LabelError(
            f"{path}: another session is labelling into this file: end it, or go on there"
        ) from error
