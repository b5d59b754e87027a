"""Reads the files of a directory and selects a topic's samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from focused.directory import DirectoryEntry, SkippedRecords, is_in_category
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

SampleReader = Callable[[Path, SkippedRecords], Iterator[DirectoryEntry]]

_PEEKED_BYTES = 4096
_DUMP_PATTERN = "*.rdf.u8*"


def load_directory(paths: Sequence[Path]) -> list[DirectoryEntry]:
    """Return all samples of the files, for directories that fit into memory.

    Raises as :func:`iter_entries` does.
    """
    return list(iter_entries(paths, SkippedRecords()))


def iter_entries(paths: Sequence[Path], skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    """Yield the samples of the files in order, in bounded memory.

    A path is a TSV or JSON Lines file, a DMOZ dump, a folder of DMOZ dumps, or a folder of saved
    pages. Unusable records of dumps are counted in ``skipped``.

    Raises :class:`ConfigurationError` with file and line for invalid input, and
    :class:`TrainingError` when the files hold no samples.
    """
    is_empty = True
    for path in paths:
        for part, read in _readers_for(path):
            for entry in read(part, skipped):
                is_empty = False
                yield entry
    if is_empty:
        files = ", ".join(str(path) for path in paths) or "none given"
        why = "".join(f"; {remark}" for remark in skipped.messages())
        raise TrainingError(
            f"training.directory holds no samples (files: {files}{why}): "
            "add lines of category <TAB> url <TAB> title <TAB> description"
        )


def find_structure_dumps(paths: Iterable[Path]) -> list[Path]:
    """Return the structure dumps of DMOZ among the files and in the folders."""
    found = (file for path in paths for file in (sorted(path.glob(_DUMP_PATTERN)) or [path]))
    return [file for file in found if _is_structure_dump(file)]


def _readers_for(path: Path) -> list[tuple[Path, SampleReader]]:
    if path.is_dir():
        dumps = sorted(path.glob(_DUMP_PATTERN))
        return [(dump, _reader_for(dump)) for dump in dumps] or [(path, read_page_folder)]
    return [(path, _reader_for(path))]


def _reader_for(path: Path) -> SampleReader:
    return _reader_by_name(path) or _reader_by_content(path)


def _reader_by_name(path: Path) -> SampleReader | None:
    name = uncompressed_name(path)
    if name.endswith((".tsv", ".tab")):
        return _without_skipping(read_tsv)
    if name.endswith((".jsonl", ".ndjson")):
        return _without_skipping(read_json_lines)
    if name.endswith((".rdf.u8", ".rdf")):
        return _read_nothing if _is_structure_dump(path) else _read_dmoz
    return None


def _read_dmoz(path: Path, skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    from focused.directory.dmoz import read_dmoz_content  # most directories are no dumps

    return read_dmoz_content(path, skipped)


def _reader_by_content(path: Path) -> SampleReader:
    with open_sample_file(path) as file:
        try:
            beginning = file.read(_PEEKED_BYTES)
        except (OSError, *DECOMPRESSION_ERRORS):
            beginning = b""
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"{"):
        return _without_skipping(read_json_lines)
    if start.startswith((b"<?xml", b"<RDF", b"<!--")):
        return _read_dmoz
    if b"\t" in start or not start:
        return _without_skipping(read_tsv)
    raise ConfigurationError(
        f"training.directory: {path}: unknown format. It is not TSV (no tab), JSON Lines (no "
        "leading {) or a DMOZ dump (no <RDF); rename it to .tsv, .jsonl or .rdf.u8 if it is one of "
        "these"
    )


def _without_skipping(read: Callable[[Path], Iterator[DirectoryEntry]]) -> SampleReader:
    return lambda path, _: read(path)


def _read_nothing(path: Path, _: SkippedRecords) -> Iterator[DirectoryEntry]:
    return iter(())


def _is_structure_dump(path: Path) -> bool:
    name = uncompressed_name(path)
    return name.endswith((".rdf.u8", ".rdf")) and "structure" in name


def load_training_samples(training: Training) -> SampleSet:
    """Return the topic's samples, at most ``training.max_samples`` per class.

    Categories that good categories link to symbolically in a DMOZ structure are excluded from
    the other samples: editors treat them as part of the topic. Memory is bounded by the sample
    size. The same directory gives the same samples. Raises as :func:`iter_entries` and
    :func:`~focused.directory.sample_set.make_sample_set` do.
    """
    skipped = SkippedRecords()
    linked = _categories_linked_from_good(training, skipped)
    listed = make_sample_set(
        iter_entries(training.directory, skipped),
        training.good,
        limit=training.max_samples,
        linked=linked,
        allow_no_good=bool(training.keywords),  # labels and the keywords stand in for them
    )
    return replace(listed, messages=(*skipped.messages(), *_messages(listed)))


def _categories_linked_from_good(training: Training, skipped: SkippedRecords) -> frozenset[str]:
    from focused.directory.dmoz import symbolic_links

    return frozenset(
        target
        for dump in find_structure_dumps(training.directory)
        for source, target in symbolic_links(dump, skipped)
        if any(is_in_category(source, good) for good in training.good)
    )


def _messages(listed: SampleSet) -> list[str]:
    told = []
    if listed.left_out:
        kept = len(listed.entries)
        told.append(
            f"{kept:,} samples drawn by hash, {listed.left_out:,} left out (training.max_samples)"
        )
    if listed.between:
        told.append(f"{listed.between:,} samples on neither side: good categories link to them")
    return told
