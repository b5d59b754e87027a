"""Labels and the label file: append-only JSON Lines.

A line is a label, or ``{"undo": URL, "at": seconds}``, which withdraws the URL's last label.
A label counts once its whole line is on disk; an incomplete last line is ignored.

An honest evaluation needs pages that were drawn independently of any model and that no model was
trained on. One page in five is reserved for evaluation, by the hash of its URL; page selection
picks from the other four.

:class:`LabelledPageStore` stores the pages of labels in a WARC file beside the label file. Training
then needs neither the crawl's folder nor the network. A page is on disk before its label.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from focused.documents.convert import BoundedConverter
from focused.errors import LabelError, os_errors_as
from focused.files import append_durably, fsync_folder, open_regular_file
from focused.text import hash_fraction
from focused.topic import Training
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched, Page
from focused.web.warc_reader import WarcResponse, read_responses
from focused.web.warc_records import response_record

Verdict = Literal["yes", "no", "spam", "skip"]
"""On topic, off topic, made to be found and of no use, or skipped.

A spam page may have the topic's words, so it is no sample of what the topic is not. In estimates of
precision and harvest it counts as not good.
"""

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
    """Return the labels that topic classifiers may learn from: yes or no, with role training."""
    return tuple(one for one in labels if one.role == "training" and one.verdict in ("yes", "no"))


def spam_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that spam classifiers may learn from: spam, with role training."""
    return tuple(one for one in labels if one.role == "training" and one.verdict == "spam")


def evaluation_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that evaluate models: of randomly drawn pages, not skipped."""
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
        with os_errors_as(LabelError, f"{path}: cannot be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        try:
            with os_errors_as(LabelError, f"{path}: cannot be opened"):
                _lock_file(self._file.fileno(), path)
                self._current = self._repair_last_line()
                fsync_folder(path.parent)
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
        with os_errors_as(LabelError, f"{self.path}: cannot be written"):
            append_durably(self._file.fileno(), msgspec.json.encode(line) + b"\n")


def read_labels(path: Path) -> tuple[Label, ...]:
    """Return the current labels, at most one per URL, in the order they were given.

    A missing file has no labels. Raises :class:`LabelError` with file and line.
    """
    try:
        with open_regular_file(path) as file:
            content = file.read()
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


_CHUNK_BYTES = 1 << 16


def labelled_pages_path(labels: Path) -> Path:
    """Return the WARC file of a label file: ``NAME.labels.warc.gz`` for ``.jsonl``."""
    return labels.with_suffix(".warc.gz")


class LabelledPageStore:
    """Appends pages to a WARC file; the holder of the label file's lock may use it.

    A record that a crash cut off is removed on opening. Raises :class:`LabelError` if the file
    cannot be read or written. Usable as a context manager.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with os_errors_as(LabelError, f"{path}: cannot be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            _truncate_partial_member(path)
            self._urls = {one.url for one in _responses(path)}

    def __contains__(self, url: str) -> bool:
        return url in self._urls

    def append(self, fetched: Fetched, at: float) -> None:
        """Store the page durably, unless it is stored already."""
        if fetched.url in self._urls:
            return
        record = response_record(replace(fetched, received_at=at))
        with os_errors_as(LabelError, f"{self.path}: cannot be written"):
            append_durably(self._file.fileno(), record)
        self._urls.add(fetched.url)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> LabelledPageStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _truncate_partial_member(path: Path) -> None:
    """Remove an incomplete gzip member from the end.

    Other damage is left: readers skip it.
    """
    member_start = ends = 0
    member = zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            while chunk:
                try:
                    member.decompress(chunk)
                except zlib.error:
                    return
                ends += len(chunk) - len(member.unused_data)
                chunk = member.unused_data
                if member.eof:
                    member_start, member = ends, zlib.decompressobj(wbits=31)
    if member_start < ends:
        os.truncate(path, member_start)


def labelled_page_reader(labels: Path) -> Callable[[str], Page | None]:
    """Return a function from URL to labelled page, for training; None if it is not stored."""
    pages: dict[str, Page] = {}
    with BoundedConverter() as converter:
        for record in _responses(labelled_pages_path(labels)):
            fetched = Fetched(record.url, record.status, record.headers, record.body)
            html = converter.to_html(fetched)
            page = html if isinstance(html, Failed) else parse_page(html)
            if isinstance(page, Page):
                pages[record.url] = page
    return pages.get


def _responses(path: Path) -> Iterator[WarcResponse]:
    if path.is_file() and path.stat().st_size:
        for record in read_responses(path):
            if isinstance(record, WarcResponse):
                yield record
