"""The archive of a crawl of many partitions: parts in shared storage.

The WARC files of partition 7 are ``warc/partition-0007-00001.warc.gz`` and so on; its owner writes
them locally under the same names, and rows refer to them by name. A file that is still written to
is stored in pieces: its records are gzip members, so the pieces are concatenated. Each owner begins
a new file; what it left unfinished is composed by its successor.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from focused.archive.warc_files import warc_file_name
from focused.errors import StorageError
from focused.rounds.storage import SharedStorage
from focused.storage.tables import Tables

_TEMPORARY = ".replica-"
"""Begins the names of temporary files in a partition's local folder."""
_PIECES = "warc-pieces"
_PIECE_BYTES = 4_000_000


class WarcPart(NamedTuple):
    """A WARC file of an earlier owner that may be in pieces; None: as long as its pieces."""

    number: int
    token: int
    length: int | None


class _Piece(NamedTuple):
    number: int
    token: int
    offset: int
    bytes: int


def partition_name(partition: int) -> str:
    """Return the name of a partition in shared storage."""
    return f"partition-{partition:04}"


def warc_part_name(partition: int, number: int) -> str:
    """Return the name of a partition's WARC file."""
    return warc_file_name(number, partition_name(partition))


class WarcParts:
    """Uploads the WARC files of a partition under one owner."""

    def __init__(
        self, storage: SharedStorage, partition: int, token: int, folder: Path, number: int
    ) -> None:
        """``number`` is that of the first file that the owner writes, in ``folder``."""
        self._storage = storage
        self._partition = partition
        self._token = token
        self._folder = folder
        self._number = number
        self._whole = number
        """The first file that is not stored whole."""
        self._uploaded = 0
        """Bytes of the current file that are stored in pieces."""

    def upload_pieces(self) -> None:
        """Upload what was written since the last call. Raises StorageError."""
        while (path := self._path(self._number)).exists():
            with _reading(path) as file:
                file.seek(self._uploaded)
                while piece := file.read(_PIECE_BYTES):
                    self._storage.write(self._piece_name(), piece)
                    self._uploaded += len(piece)
            if not self._path(self._number + 1).exists():
                break
            self._number, self._uploaded = self._number + 1, 0

    def has_complete_files(self, below: int) -> bool:
        """Whether :meth:`upload_files` has something to do."""
        return self._whole < below

    def upload_files(self, below: int | None = None) -> None:
        """Upload the files below a number whole, or all, and delete their pieces.

        The caller knows that the files are complete, and that the state which says so is durable.
        """
        while self._whole < (self._number + 1 if below is None else below):
            path = self._path(self._whole)
            if path.exists():
                self._storage.upload(f"warc/{path.name}", path)
                self._delete_pieces(self._whole, self._token)
            self._whole += 1

    def compose(self, parts: Iterable[WarcPart]) -> None:
        """Compose the files of earlier owners, and delete all pieces of earlier owners.

        The caller knows that the state which names the parts is durable.
        """
        pieces = list_pieces(self._storage, self._partition)
        whole = self._storage.entries("warc")
        for part in parts:
            file = warc_part_name(self._partition, part.number)
            if not _is_whole(part, whole.get(file)):
                with temporary_folder(self._folder) as folder:
                    _write_part(
                        self._storage, self._partition, part, pieces, whole, folder / "warc"
                    )
                    self._storage.upload(f"warc/{file}", folder / "warc")
        earlier = [each for each in pieces if each.token < self._token]
        self._storage.delete([_piece_name(self._partition, each) for each in earlier])

    def _delete_pieces(self, number: int, token: int) -> None:
        pieces = list_pieces(self._storage, self._partition)
        self._storage.delete(
            [_piece_name(self._partition, each) for each in pieces if each[:2] == (number, token)]
        )

    def _path(self, number: int) -> Path:
        return self._folder / warc_part_name(self._partition, number)

    def _piece_name(self) -> str:
        return _piece_name(self._partition, _Piece(self._number, self._token, self._uploaded, 0))


def download_warc_files(
    storage: SharedStorage, partition: int, folder: Path, parts: Iterable[WarcPart], below: int
) -> None:
    """Write a partition's WARC files with numbers below one to a local folder.

    ``parts`` are those that may be in pieces. Raises StorageError.
    """
    pieces, whole = list_pieces(storage, partition), storage.entries("warc")
    unfinished = {part.number: part for part in parts}
    for number in range(1, below):
        name = warc_part_name(partition, number)
        part = unfinished.get(number)
        if part is not None and not _is_whole(part, whole.get(name)):
            _write_part(storage, partition, part, pieces, whole, folder / name)
        elif name in whole:
            storage.download(f"warc/{name}", folder / name)


def _is_whole(part: WarcPart, size: int | None) -> bool:
    return size is not None and part.length in (None, size)


def _write_part(
    storage: SharedStorage,
    partition: int,
    part: WarcPart,
    pieces: Sequence[_Piece],
    whole: Mapping[str, int | None],
    path: Path,
) -> None:
    """Write the content of a WARC file to a local one, cut at its length.

    ``pieces`` are all of the partition, ``whole`` the sizes of the files that are stored whole.
    """
    name = warc_part_name(partition, part.number)
    own = [each for each in pieces if each[:2] == part[:2]]
    end = part.length
    if not own and name in whole and end is not None:
        # An attempt that came to its end, but into no manifest.
        path.write_bytes(storage.read_range(f"warc/{name}", 0, end))
        return
    if end is None:
        end = max((each.offset + each.bytes for each in own), default=1)
    at = 0
    wanted = [each for each in own if each.offset < end]
    contents = storage.read_many(_piece_name(partition, each) for each in wanted)
    with path.open("wb") as file:
        for piece, content in zip(wanted, contents, strict=True):
            if piece.offset != at or len(content) != piece.bytes:
                break
            at += file.write(content[: end - at])
    if at != end:
        raise StorageError(
            f"{storage.name_of(_PIECES)}: the piece at byte {at} of {name} is missing or damaged; "
            "restore it from a copy"
        )


def unfinished_parts(
    storage: SharedStorage,
    partition: int,
    token: int,
    earlier: Iterable[WarcPart],
    end: tuple[int, int],
) -> Sequence[WarcPart]:
    """Return the WARC files that may be in pieces after the owner with ``token``.

    ``earlier`` are those that it took over; ``end`` is the number and length of its last file.
    """
    found = {each[:2] for each in list_pieces(storage, partition)}
    number, length = end
    parts = [each for each in earlier if each[:2] in found]
    parts += [WarcPart(n, token, None) for n, by in sorted(found) if by == token and n < number]
    return [*parts, WarcPart(number, token, length)] if length else parts


def list_pieces(storage: SharedStorage, partition: int) -> Sequence[_Piece]:
    """Return the pieces of a partition's WARC files, by file, owner and offset."""
    found = storage.entries(_pieces_folder(partition))
    pieces = []
    for name, size in found.items():
        numbers = name.split("-")
        if size is not None and len(numbers) == 3 and all(map(str.isdecimal, numbers)):
            number, token, offset = map(int, numbers)
            pieces.append(_Piece(number, token, offset, size))
    return sorted(pieces)


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


def _pieces_folder(partition: int) -> str:
    return f"{_PIECES}/{partition_name(partition)}"


def _piece_name(partition: int, piece: _Piece) -> str:
    folder = _pieces_folder(partition)
    return f"{folder}/{piece.number:05}-{piece.token:010}-{piece.offset:015}"


def _reading(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}; make it readable") from error
