"""A directory read as a whole, from all its files, each by the reader it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from focused.directory.dmoz_rdf import read_dmoz_content
from focused.directory.entry import DirectoryEntry
from focused.directory.json_lines import read_json_lines
from focused.directory.opening import DAMAGED, opened, plain_name
from focused.directory.package_index import read_package_index
from focused.directory.page_folders import read_page_folder
from focused.directory.passed_over import PassedOver
from focused.directory.tsv import read_tsv
from focused.errors import ConfigurationError, TrainingError

Reader = Callable[[Path, PassedOver], Iterator[DirectoryEntry]]

_PEEKED_BYTES = 4096
_DUMP = "*.rdf.u8*"


def read_directory(paths: Sequence[Path]) -> list[DirectoryEntry]:
    """All samples of the files, in order; for directories that fit into memory.

    Raises as :func:`read_entries` does.
    """
    return list(read_entries(paths, PassedOver()))


def read_entries(paths: Sequence[Path], passed_over: PassedOver) -> Iterator[DirectoryEntry]:
    """The samples of the files one by one, in order, in bounded memory.

    A path is a file of ours (TSV or JSON Lines), a DMOZ dump, a Debian package index, a
    folder of DMOZ dumps, or a folder of saved pages. What in a dump or an index cannot be
    used is counted in ``passed_over``.

    Raises :class:`ConfigurationError` naming file and line for a file that
    cannot be read or a line that is no sample, and :class:`TrainingError`
    when the files hold no sample at all.
    """
    is_empty = True
    for path in paths:
        for part, read in _readers(path):
            for entry in read(part, passed_over):
                is_empty = False
                yield entry
    if is_empty:
        files = ", ".join(str(path) for path in paths) or "none given"
        why = "".join(f"; {remark}" for remark in passed_over.remarks())
        raise TrainingError(
            f"training.directory holds no samples (files: {files}{why}): "
            "add lines of category <TAB> url <TAB> title <TAB> description"
        )


def structure_dumps(paths: Iterable[Path]) -> list[Path]:
    """Those of the files, or in the folders, that hold the structure of a DMOZ directory."""
    found = (file for path in paths for file in (sorted(path.glob(_DUMP)) or [path]))
    return [file for file in found if _is_structure(file)]


def _readers(path: Path) -> list[tuple[Path, Reader]]:
    if path.is_dir():
        dumps = sorted(path.glob(_DUMP))
        return [(dump, _reader(dump)) for dump in dumps] or [(path, read_page_folder)]
    return [(path, _reader(path))]


def _reader(path: Path) -> Reader:
    return _by_name(path) or _by_content(path)


def _by_name(path: Path) -> Reader | None:
    name = plain_name(path)
    if name.endswith((".tsv", ".tab")):
        return _strict(read_tsv)
    if name.endswith((".jsonl", ".ndjson")):
        return _strict(read_json_lines)
    if name.endswith((".rdf.u8", ".rdf")):
        return _nothing if _is_structure(path) else read_dmoz_content
    if name == "packages" or name.endswith("_packages"):
        return read_package_index
    return None


def _by_content(path: Path) -> Reader:
    with opened(path) as file:
        try:
            beginning = file.read(_PEEKED_BYTES)
        except (OSError, *DAMAGED):
            beginning = b""
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"{"):
        return _strict(read_json_lines)
    if start.startswith((b"<?xml", b"<RDF", b"<!--")):
        return read_dmoz_content
    if start.startswith(b"Package:"):
        return read_package_index
    if b"\t" in start or not start:
        return _strict(read_tsv)
    raise ConfigurationError(
        f"training.directory: {path}: cannot tell what this is. It is no TSV (it begins without "
        "a tab), no JSON Lines (no { at its beginning), no DMOZ dump (no <RDF), no Debian "
        "package index (no Package:); name it .tsv, .jsonl or .rdf.u8 if it is one of these"
    )


def _strict(read: Callable[[Path], Iterator[DirectoryEntry]]) -> Reader:
    return lambda path, _: read(path)


def _nothing(path: Path, _: PassedOver) -> Iterator[DirectoryEntry]:
    return iter(())


def _is_structure(path: Path) -> bool:
    name = plain_name(path)
    return name.endswith((".rdf.u8", ".rdf")) and "structure" in name
