"""The archive of a crawl of many partitions: parts in shared storage.

The WARC files of partition 7 are ``warc/partition-0007-00001.warc.gz`` and so on; its attempts
write them locally under the same names, and rows refer to them by name. A file that is still
written to is stored in pieces: its records are gzip members, so the pieces are concatenated. Each
attempt begins a new file, and first stores whole what the one before it left in pieces.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from focused.archive.warc_files import warc_file_name
from focused.errors import StorageError
from focused.rounds.storage import SharedStorage, try_again
from focused.storage.tables import Tables

_TEMPORARY = ".replica-"
"""Begins the names of temporary files in a partition's local folder."""
_PIECES = "warc-pieces"
_PIECE_BYTES = 4_000_000


class _Piece(NamedTuple):
    """A part of the WARC file with the number ``file``, as an attempt wrote it."""

    file: int
    attempt: int
    offset: int
    bytes: int


def partition_name(partition: int) -> str:
    """Return the name of a partition in shared storage."""
    return f"partition-{partition:04}"


def _warc_name(partition: int, number: int) -> str:
    return warc_file_name(number, partition_name(partition))


def warc_end(tables: Tables) -> tuple[int, int]:
    """Return number and length of the WARC file that is appended to."""
    number, length = tables.get_meta("warc") or (1, 0)
    return int(number), int(length)


class WarcParts:
    """Uploads the WARC files in the local folder of an attempt. Methods raise StorageError."""

    def __init__(
        self, storage: SharedStorage, partition: int, attempt: int, folder: Path, number: int
    ) -> None:
        """``number`` is that of the first file that the attempt writes."""
        self._storage = storage
        self._partition = partition
        self._attempt = attempt
        self._folder = folder
        self._number = number
        self._uploaded = 0
        """Bytes of the current file that are stored in pieces."""
        self._whole = 1
        """The first file that may have to be stored whole."""

    def upload_pieces(self) -> None:
        """Upload what was written since the last call."""
        while (path := self._path(self._number)).exists():
            try:
                with path.open("rb") as file:
                    file.seek(self._uploaded)
                    while content := file.read(_PIECE_BYTES):
                        piece = _Piece(self._number, self._attempt, self._uploaded, len(content))
                        self._storage.write(_piece_name(self._partition, piece), content)
                        self._uploaded += len(content)
            except OSError as error:
                raise StorageError(
                    f"cannot read {path}: {error.strerror}; make it readable"
                ) from error
            if not self._path(self._number + 1).exists():
                break
            self._number, self._uploaded = self._number + 1, 0

    def has_complete_files(self, below: int) -> bool:
        """Whether :meth:`upload_files` has something to do."""
        return self._whole < below

    def upload_files(self, below: int) -> None:
        """Upload the files with numbers below one whole.

        Delete their pieces, and those of earlier attempts. The caller knows that the
        files are complete, and that the state which says so is durable.
        """
        while self._whole < below:
            path = self._path(self._whole)
            if path.exists():
                self._storage.upload(f"warc/{path.name}", path)
            self._whole += 1
        outdated = [
            each
            for each in list_pieces(self._storage, self._partition)
            if each.attempt < self._attempt or (each.attempt == self._attempt and each.file < below)
        ]
        # The first ones first: a file whose first piece is there may not be stored whole.
        for pieces in (
            [each for each in outdated if not each.offset],
            [each for each in outdated if each.offset],
        ):
            self._storage.delete([_piece_name(self._partition, each) for each in pieces])

    def _path(self, number: int) -> Path:
        return self._folder / _warc_name(self._partition, number)


def restore_warc_files(
    storage: SharedStorage, partition: int, attempt: int, tables: Tables, folder: Path
) -> None:
    """Write the WARC files that are not stored whole to a local folder, from their pieces.

    ``tables`` are those of the state that ``attempt`` stored. Raises StorageError.
    """
    pieces, whole = list_pieces(storage, partition), storage.entries("warc")
    number, length = warc_end(tables)
    # States of earlier versions also name files of earlier attempts.
    ends = {(file, by): end for file, by, end in tables.get_meta("warc_parts") or ()}
    ends |= {each[:2]: None for each in pieces if each.attempt == attempt and each.file < number}
    if length:
        ends[number, attempt] = length
    for (file, by), end in ends.items():
        name = _warc_name(partition, file)
        own = [each for each in pieces if each[:2] == (file, by)]
        size = whole.get(name)
        # Where the first piece is, the whole file may be of an attempt that no manifest names.
        if (own and not own[0].offset) or size is None or size < (end or 0):
            _join_pieces(storage, partition, own, end, folder / name)
        elif end is not None and size > end:
            # Of an attempt that went on, or came to its end, but into no manifest.
            content = try_again(partial(storage.read, f"warc/{name}", 0, end))
            (folder / name).write_bytes(content)


def _join_pieces(
    storage: SharedStorage, partition: int, pieces: Sequence[_Piece], end: int | None, path: Path
) -> None:
    """Write the pieces of a WARC file to a local one, cut at its ``end`` in bytes."""
    if end is None:
        end = max((each.offset + each.bytes for each in pieces), default=1)
    wanted = [each for each in pieces if each.offset < end]
    contents = storage.read_many(_piece_name(partition, each) for each in wanted)
    at = 0
    with path.open("wb") as file:
        for piece, content in zip(wanted, contents, strict=True):
            if piece.offset != at or len(content) != piece.bytes:
                break
            at += file.write(content[: end - at])
    if at != end:
        raise StorageError(
            f"{storage.name_of(_PIECES)}: the piece at byte {at} of {path.name} is missing or "
            "damaged; restore it from a copy"
        )


def download_warc_files(
    storage: SharedStorage, partition: int, tables: Tables, folder: Path
) -> None:
    """Download the WARC files of a state that :func:`restore_warc_files` did not write.

    Raises StorageError.
    """
    whole = storage.entries("warc")
    last, length = warc_end(tables)
    for number in range(1, last + 1 if length else last):
        name = _warc_name(partition, number)
        if name in whole and not (folder / name).exists():
            storage.download(f"warc/{name}", folder / name)


def list_pieces(storage: SharedStorage, partition: int) -> Sequence[_Piece]:
    """Return the pieces of a partition's WARC files, by file, attempt and offset."""
    pieces = []
    for name, size in storage.entries(f"{_PIECES}/{partition_name(partition)}").items():
        numbers = name.split("-")
        if size is not None and len(numbers) == 3 and all(map(str.isdecimal, numbers)):
            file, attempt, offset = map(int, numbers)
            pieces.append(_Piece(file, attempt, offset, size))
    return sorted(pieces)


def _piece_name(partition: int, piece: _Piece) -> str:
    name = f"{piece.file:05}-{piece.attempt:010}-{piece.offset:015}"
    return f"{_PIECES}/{partition_name(partition)}/{name}"


def upload_tables(storage: SharedStorage, partition: int, folder: Path, tables: Tables) -> None:
    """Write the rows of a partition as its parts: ``pages/partition-0007.parquet`` and so on.

    ``folder`` is for temporary files. Raises StorageError.
    """
    from focused.archive.parquet import write_parquet_files  # slow to import

    with temporary_folder(folder) as temporary:
        try:
            write_parquet_files(tables, temporary)
        except OSError as error:
            raise local_error(folder, error) from error
        for path in sorted(temporary.glob("*.parquet")):
            storage.upload(f"{path.stem}/{partition_name(partition)}.parquet", path)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder in a partition's local folder. Raises StorageError."""
    try:
        temporary = TemporaryDirectory(prefix=_TEMPORARY, dir=folder)
    except OSError as error:
        raise local_error(folder, error) from error
    with temporary:
        yield Path(temporary.name)


def local_error(folder: Path, error: Exception) -> StorageError:
    """Return the error for a local folder that cannot be written to."""
    return StorageError(f"cannot write to {folder}: {error}; free some disk, or make it writable")


def remove_local_files(folder: Path, partition: int) -> None:
    """Remove the state and the WARC files of a partition from a local folder. Raises OSError."""
    for path in (folder / "state", *folder.glob(f"{_TEMPORARY}*")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in folder.glob(f"{partition_name(partition)}-*.warc.gz"):
        path.unlink()
