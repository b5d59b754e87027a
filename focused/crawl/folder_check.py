"""Check a crawl's folder for damage without writing to it.

Checks the state (:mod:`focused.frontier.state_check`), then the WARC records and Parquet files that
its archive rows refer to.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from focused.archive.archive import PageRow
from focused.archive.page_history import decode_history, decode_visit
from focused.archive.warc_files import WarcPosition, warc_file_name, warc_files, warc_prefix
from focused.files import open_regular_file
from focused.frontier.state_check import check_state
from focused.storage.rows import unpack

Progress = Callable[[int, int], None]
ShowProgress = Callable[[str], AbstractContextManager[Progress]]
"""Takes a title; returns a context with a callback for the amounts done and in total."""

_CHUNK_BYTES = 1 << 16
_TARGET_URI = re.compile(rb"^WARC-Target-URI: *+<?(.*?)>?\r\n", re.MULTILINE | re.IGNORECASE)
_PARQUET_FILES = ("pages.parquet", "links.parquet", "visits.parquet")
_JSON_FILES = ("settings.json", "stats.json", "report.json")


@dataclass(slots=True)
class FolderReport:
    """The amounts checked, and the damage found, one line each."""

    rows: int = 0
    tables: int = 0
    records: int = 0
    files: int = 0
    damaged: list[str] = field(default_factory=list)


def check_folder(folder: Path, show: ShowProgress) -> FolderReport:
    """Check the crawl's folder. Raises StateError without a state, or while a crawl runs on it."""
    report = FolderReport()
    archive = _ArchiveIndex(warc_prefix(folder))
    with show("the state") as progress:
        state = check_state(folder / "state", archive.take, progress)
    report.rows, report.tables = sum(state.rows.values()), len(state.rows)
    report.damaged += state.damaged
    archive.add_first_versions()
    if not state.damaged:
        report.damaged += [f"{folder / 'state'}: {reason}" for reason in archive.disagreements()]
    for path in _warc_files(folder, archive):
        _check_warc(path, archive, report, show)
    _check_files(folder, report, show)
    return report


class _ArchiveIndex:
    """What the archive rows say of each other and of the WARC."""

    def __init__(self, prefix: str) -> None:
        """``prefix`` begins the names of WARC files."""
        self._prefix = prefix
        self.places: dict[WarcPosition, str] = {}
        """URLs by the position of their WARC record."""
        self.warc_end = WarcPosition(warc_file_name(1, prefix), 0)
        """The end of the last WARC file."""
        self._pages: set[int] = set()
        self._with_links: set[int] = set()
        self._settled = 0
        self._unreadable = 0
        self._urls: dict[int, str] = {}
        self._with_history: set[int] = set()
        self._first_versions: dict[WarcPosition, int] = {}
        """Pages by the position of their first version, where a newer one replaced it."""
        self._visits: set[int] = set()
        self._visited: set[int] = set()
        self._counted_visits = 0
        self._unreadable_histories = 0

    def take(self, table: str, key: bytes, value: bytes) -> None:
        """Index a row of the state."""
        if table == "pages":
            self._pages.add(int.from_bytes(key, "big"))
            try:
                row = dict(zip(PageRow.__struct_fields__, unpack(value), strict=True))
            except (ValueError, TypeError, msgspec.MsgspecError):
                self._unreadable += 1
                return
            self._unreadable += row["seq"] != int.from_bytes(key, "big")
            self._urls[row["seq"]] = row["url"]
            if row["warc_offset"] is not None:
                self.places[WarcPosition(row["warc_file"], row["warc_offset"])] = row["url"]
        elif table in ("page_histories", "visits"):
            try:
                self._take_history(table, int.from_bytes(key, "big"), value)
            except msgspec.MsgspecError:
                self._unreadable_histories += 1
        elif table == "page_links":
            self._with_links.add(int.from_bytes(key, "big"))
        elif table == "meta" and key == b"warc":
            number, length = msgspec.json.decode(value)
            self.warc_end = WarcPosition(warc_file_name(int(number), self._prefix), int(length))
        elif table == "meta" and key == b"visits":
            self._counted_visits = int(msgspec.json.decode(value))
        elif table == "meta" and key == b"counters":
            counters: Mapping[str, Any] = msgspec.json.decode(value)
            self._settled = int(counters.get("settled", 0))

    def _take_history(self, table: str, number: int, value: bytes) -> None:
        if table == "visits":
            self._visits.add(number)
            visit = decode_visit(value)
            self._visited.add(visit.page)
            if visit.warc_file is not None and visit.warc_offset is not None:
                self.places[WarcPosition(visit.warc_file, visit.warc_offset)] = visit.url
            return
        self._with_history.add(number)
        first = decode_history(value).first_version
        if first is not None and first.warc_file is not None and first.warc_offset is not None:
            self._first_versions[WarcPosition(first.warc_file, first.warc_offset)] = number

    def add_first_versions(self) -> None:
        """Index the WARC records of first versions, once all rows are taken."""
        for place, page in self._first_versions.items():
            if page in self._urls:
                self.places[place] = self._urls[page]

    def disagreements(self) -> list[str]:
        """Return the inconsistencies between rows."""
        last = max(self._pages, default=-1)
        missing_visits = max(self._visits, default=-1) + 1 - len(self._visits)
        problems = {
            f"{self._unreadable:,} rows of pages cannot be read": self._unreadable,
            f"{last + 1 - len(self._pages):,} rows of pages are missing": last
            + 1
            - len(self._pages),
            f"{self._settled:,} pages were counted, {len(self._pages):,} have rows": self._settled
            - len(self._pages),
            f"{len(self._with_links - self._pages):,} pages with links have no row": len(
                self._with_links - self._pages
            ),
            f"{self._unreadable_histories:,} rows of visits and histories cannot be "
            "read": self._unreadable_histories,
            f"{len(self._with_history - self._pages):,} pages with a history have no row": len(
                self._with_history - self._pages
            ),
            f"{len(self._visited - self._with_history):,} visited pages have no history": len(
                self._visited - self._with_history
            ),
            f"{self._counted_visits:,} visits were counted, {len(self._visits):,} have "
            "rows": self._counted_visits - len(self._visits),
            f"{missing_visits:,} rows of visits are missing": missing_visits,
        }
        return [reason for reason, count in problems.items() if count]


def _warc_files(folder: Path, archive: _ArchiveIndex) -> list[Path]:
    """The WARC files named by rows, and those found, up to the last one written."""
    named = {place.file for place in archive.places}
    if archive.warc_end.offset:
        named.add(archive.warc_end.file)
    there = warc_files(folder)
    last = next((at for at, path in enumerate(there) if path.name == archive.warc_end.file), -1)
    kept = there[: last + 1]
    return [*kept, *(folder / name for name in sorted(named) if folder / name not in kept)]


def _check_warc(
    path: Path, archive: _ArchiveIndex, report: FolderReport, show: ShowProgress
) -> None:
    """Check that each record can be unpacked and that rows refer to records of their URL.

    Data behind the recorded end is what a kill left behind: no damage.
    """
    wanted = {place.offset: url for place, url in archive.places.items() if place.file == path.name}
    try:
        found_bytes = path.stat().st_size
        is_last = path.name == archive.warc_end.file
        length = archive.warc_end.offset if is_last else found_bytes
        if found_bytes < length:
            report.damaged.append(f"{path}: has {found_bytes:,} bytes of {length:,}")
        with show(path.name) as progress, open_regular_file(path) as file:
            at = 0
            while at < min(length, found_bytes):
                progress(at, length)
                head, end = _read_member(file, at)
                if end is None:
                    report.damaged.append(f"{path}: the record at offset {at:,} is damaged")
                    at = min((each for each in wanted if each > at), default=length)
                    continue
                report.records += 1
                if at in wanted and _target_uri(head) == wanted[at]:
                    del wanted[at]
                at = end
    except OSError as error:
        report.damaged.append(f"{path}: cannot be read: {error.strerror or error}")
        return
    for offset, url in wanted.items():
        report.damaged.append(f"{path}: there is no record of {url} at offset {offset:,}")


def _read_member(file: BinaryIO, at: int) -> tuple[bytes, int | None]:
    """Unpack a gzip member and verify its checksum; return its beginning and its end offset.

    The end is None when it is damaged.
    """
    file.seek(at)
    gzip = zlib.decompressobj(wbits=31)
    head = b""
    try:
        while not gzip.eof:
            packed = gzip.unconsumed_tail or file.read(_CHUNK_BYTES)
            if not packed:
                return head, None
            unpacked = gzip.decompress(packed, _CHUNK_BYTES)
            head = head or unpacked[:_CHUNK_BYTES]
    except zlib.error:
        return head, None
    return head, file.tell() - len(gzip.unused_data)


def _target_uri(head: bytes) -> str | None:
    found = _TARGET_URI.search(head)
    return None if found is None else found[1].decode("utf-8", "replace")


def _check_files(folder: Path, report: FolderReport, show: ShowProgress) -> None:
    import pyarrow as pa  # slow to import
    import pyarrow.parquet as pq

    for path in (folder / name for name in _PARQUET_FILES):
        if not path.exists():
            continue
        report.files += 1
        try:
            with (
                show(path.name) as progress,
                pq.ParquetFile(path, page_checksum_verification=True) as file,
            ):
                groups = file.num_row_groups
                for number in range(groups):
                    file.read_row_group(number).validate(full=True)
                    progress(number + 1, groups)
        except (OSError, ValueError, pa.ArrowException) as error:
            report.damaged.append(f"{path}: cannot be read: {error}")
    for path in (folder / name for name in _JSON_FILES):
        if path.exists():
            report.files += 1
            try:
                json.loads(path.read_bytes())
            except (OSError, ValueError, RecursionError) as error:
                report.damaged.append(f"{path}: cannot be read: {error}")
