"""Reads the files of a directory and selects a topic's samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from focused.directory import DirectoryEntry, SkippedRecords
from focused.directory.sample_files import (
    DECOMPRESSION_ERRORS,
    open_sample_file,
    read_json_lines,
    read_page_folder,
    read_tsv,
    uncompressed_name,
)
from focused.directory.sample_set import SampleSet, make_sample_set
from focused.errors import ConfigurationError, TrainingError
from focused.topic import Training

_PEEKED_BYTES = 4096


def load_directory(paths: Sequence[Path]) -> list[DirectoryEntry]:
    """Return all samples of the files, for directories that fit into memory.

    Raises as :func:`iter_entries` does.
    """
    return list(iter_entries(paths, SkippedRecords()))


def iter_entries(paths: Sequence[Path], skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    """Yield the samples of the files in order, in bounded memory.

    A path is a TSV or JSON Lines file, or a folder of saved pages, whose unusable files are counted
    in ``skipped``.

    Raises :class:`ConfigurationError` with file and line for invalid input, and
    :class:`TrainingError` when the files hold no samples.
    """
    is_empty = True
    for path in paths:
        is_folder = path.is_dir()
        for entry in read_page_folder(path, skipped) if is_folder else _reader_of(path)(path):
            is_empty = False
            yield entry
    if is_empty:
        files = ", ".join(str(path) for path in paths) or "none given"
        why = "".join(f"; {remark}" for remark in skipped.messages())
        raise TrainingError(
            f"training.directory holds no samples (files: {files}{why}): "
            "add lines of category <TAB> url <TAB> title <TAB> description"
        )


def _reader_of(path: Path) -> Callable[[Path], Iterator[DirectoryEntry]]:
    """Return the reader of a file, by its name or else its first bytes."""
    name = uncompressed_name(path)
    if name.endswith((".tsv", ".tab")):
        return read_tsv
    if name.endswith((".jsonl", ".ndjson")):
        return read_json_lines
    with open_sample_file(path) as file:
        try:
            beginning = file.read(_PEEKED_BYTES)
        except (OSError, *DECOMPRESSION_ERRORS):
            beginning = b""
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"{"):
        return read_json_lines
    if b"\t" in start or not start:
        return read_tsv
    raise ConfigurationError(
        f"training.directory: {path}: unknown format. It is neither TSV (no tab) nor JSON Lines "
        "(no leading {); rename it to .tsv or .jsonl if it is one of these"
    )


def load_training_samples(training: Training) -> SampleSet:
    """Return the topic's samples, at most ``training.max_samples`` per class.

    Memory is bounded by the sample size. The same directory gives the same samples. Raises as
    :func:`iter_entries` and :func:`~focused.directory.sample_set.make_sample_set` do.
    """
    skipped = SkippedRecords()
    listed = make_sample_set(
        iter_entries(training.directory, skipped),
        training.good,
        limit=training.max_samples,
        allow_no_good=bool(training.keywords),  # labels and the keywords stand in for them
    )
    messages = skipped.messages()
    if listed.left_out:
        messages += (
            f"{len(listed.entries):,} samples drawn by hash, {listed.left_out:,} left out "
            "(training.max_samples)",
        )
    return replace(listed, messages=messages)
