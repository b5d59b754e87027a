"""The WARC files of a crawl.

The store holds the valid length of the last file, committed with the rows; data behind it, left by
a crash, is truncated when the files are opened.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, NamedTuple

from focused.files import fsync_folder
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.topic import Topic, WarcMode
from focused.web.warc_records import (
    SERVER_NOT_MODIFIED,
    OriginalRecord,
    WarcCapture,
    WarcRecordBuilder,
    format_digest,
    warcinfo_record,
)

PARTITIONS_FOLDER = "partitions"
"""Has a crawl's folder for each partition, if several processes of one machine crawl."""
PAGES_PREFIX = "pages"
WARC_FILE = f"{PAGES_PREFIX}.warc.gz"
"""The first file; the second is ``pages-00002.warc.gz``."""

_KEY_BYTES = 8  # of a payload's digest; the whole digest is compared with the record's
_CONTACT = re.compile(r"\(\+?([^()]+)\)")
_CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class WarcPosition(NamedTuple):
    """The position of a record: file name and offset in bytes."""

    file: str
    offset: int


def warc_files(folder: Path) -> list[Path]:
    """Return the WARC files of a crawl in the order they were written, partition by partition."""
    partitions = sorted((folder / PARTITIONS_FOLDER).glob("*"))
    return [path for each in partitions or [folder] for path in _own_warc_files(each)]


def _own_warc_files(folder: Path) -> list[Path]:
    prefix = warc_prefix(folder)
    first = folder / warc_file_name(1, prefix)
    later = {path: _file_number(path.name, prefix) for path in folder.glob(_pattern(prefix))}
    numbered = sorted(
        (path for path, number in later.items() if number > 1), key=lambda path: later[path]
    )
    return [first, *numbered] if first.is_file() else numbered


def warc_prefix(folder: Path) -> str:
    """Return what the names of the WARC files in a crawl's or a partition's folder begin with."""
    return folder.name if folder.parent.name == PARTITIONS_FOLDER else PAGES_PREFIX


def warc_path(crawl: Path, name: str) -> Path:
    """Return the path of the WARC file of that name in a crawl's folder.

    Those of partitions are in the folders of their partitions, or in ``warc/``.
    """
    name = Path(name).name
    parts = crawl / PARTITIONS_FOLDER / name.rpartition("-")[0] / name
    own = crawl / name
    return next((path for path in (own, parts) if path.exists()), crawl / "warc" / name)


def warcinfo_fields(topic: Topic, policy: str) -> Mapping[str, str]:
    """Return the fields of the ``warcinfo`` record; the machine's name is left out."""
    user_agent = topic.politeness.user_agent
    contact = _CONTACT.search(user_agent)
    return {
        "software": f"focused-crawler/{metadata.version('focused-crawler')}",
        "format": "WARC File Format 1.1",
        "conformsTo": _CONFORMS_TO,
        "operator": contact[1] if contact else "",
        "http-header-user-agent": user_agent,
        "robots": "obey" if topic.politeness.robots else "ignore",
        "isPartOf": topic.name,
        "description": f"focused crawl of the topic {topic.name}, ordered by {policy}",
    }


class WarcFiles:
    """Appends the records of responses; the caller commits."""

    def __init__(
        self,
        folder: Path,
        tables: Tables,
        records: WarcMode = "responses",
        about: Mapping[str, str] | None = None,
        *,
        prefix: str = PAGES_PREFIX,
        max_bytes: int = 1_000_000_000,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        """``about`` holds the ``warcinfo`` fields; ``new_id`` creates record ids.

        A new file starts after ``max_bytes``. ``prefix`` begins the names of the files.
        """
        self._folder = folder
        self._tables = tables
        self._about = about or {}
        self._prefix = prefix
        self._max_bytes = max_bytes
        self._new_id = new_id
        self.holds_all = records != "pages"
        """Whether responses other than fetched pages are recorded too."""
        self._with_requests = records == "full"
        number, length = tables.get_meta("warc") or (1, 0)
        self._number, self._bytes = int(number), int(length)
        for path in folder.glob(_pattern(prefix)):
            number = _file_number(path.name, prefix)
            if number > self._number or (number == self._number and not self._bytes):
                path.unlink()
        self._file = self._opened() if self._number == 1 or self._bytes else None
        self._needs_warcinfo = True
        """Whether the current file lacks this session's ``warcinfo`` record."""
        self.writer = self._new_writer()
        """Builds the records for the current file."""

    def append(self, capture: WarcCapture, version: WarcPosition | None = None) -> WarcPosition:
        """Write a response's records; return the response's position.

        ``version`` is the record of the page that a response with status 304 confirms.
        """
        members = []
        if self._needs_warcinfo:
            self._needs_warcinfo = False
            info_id = self.writer.warcinfo_id
            members.append(warcinfo_record(info_id, self._file_name, capture.date, self._about))
        position = WarcPosition(self._file_name, self._bytes + sum(map(len, members)))
        original = self._original(capture) if self.holds_all else None
        confirmed = None if version is None else self._confirmed(version)
        if confirmed is not None:
            members.append(self.writer.revisit(capture, confirmed, SERVER_NOT_MODIFIED))
        elif original is None:
            members.append(capture.response)
            self._remember(capture, position.offset)
        else:
            members.append(self.writer.revisit(capture, original))
        # Directly behind the response: read_response looks there.
        members += (capture.conversion, capture.request)
        self._write(b"".join(members))
        if self._bytes >= self._max_bytes:
            self._next_file()
        return position

    def force(self) -> None:
        """Flush to the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flush to the disk and close."""
        if self._file is not None:
            self.force()
            self._file.close()
            self._file = None

    @property
    def _file_name(self) -> str:
        return warc_file_name(self._number, self._prefix)

    def _write(self, members: bytes) -> None:
        if self._file is None:
            self._file = self._opened()
            fsync_folder(self._folder)
        self._file.write(members)
        self._file.flush()
        self._advance(self._number, self._bytes + len(members))

    def _advance(self, number: int, length: int) -> None:
        self._number, self._bytes = number, length
        self._tables.put_meta("warc", [number, length])

    def _next_file(self) -> None:
        self.close()
        self._advance(self._number + 1, 0)
        self._needs_warcinfo = True
        self.writer = self._new_writer()

    def _opened(self) -> IO[bytes]:
        file = (self._folder / self._file_name).open("ab")
        if file.tell() > self._bytes:
            file.truncate(self._bytes)
            file.seek(0, os.SEEK_END)
        return file

    def _new_writer(self) -> WarcRecordBuilder:
        return WarcRecordBuilder(self._new_id().urn, requests=self._with_requests)

    def _original(self, capture: WarcCapture) -> OriginalRecord | None:
        """The record of an earlier response with the same payload, or None."""
        if not capture.payload_bytes:
            return None
        row = self._tables.get("payloads", capture.digest[:_KEY_BYTES])
        if row is None:
            return None
        number, offset = unpack(row)
        found = _read_original(self._folder / warc_file_name(number, self._prefix), offset)
        if found is None or found[1] != format_digest(capture.digest):
            return None
        return found[0]

    def _confirmed(self, version: WarcPosition) -> OriginalRecord | None:
        """The record at a position, or None if it was moved away."""
        found = _read_original(self._folder / version.file, version.offset)
        return None if found is None else found[0]

    def _remember(self, capture: WarcCapture, offset: int) -> None:
        if self.holds_all and capture.payload_bytes:
            self._tables.put("payloads", capture.digest[:_KEY_BYTES], pack([self._number, offset]))


def warc_file_name(number: int, prefix: str = PAGES_PREFIX) -> str:
    """Return the name of a WARC file by its number, from 1."""
    if number == 1 and prefix == PAGES_PREFIX:
        return WARC_FILE
    return f"{prefix}-{number:05}.warc.gz"


def _pattern(prefix: str) -> str:
    return f"{prefix}-*.warc.gz"


def _file_number(name: str, prefix: str) -> int:
    """The number in a file name; 0 for other names."""
    numbered = re.fullmatch(rf"{re.escape(prefix)}-(\d{{5,}})\.warc\.gz", name)
    return int(numbered[1]) if numbered else 0


def _read_original(path: Path, offset: int) -> tuple[OriginalRecord, str] | None:
    from focused.web.warc_reader import read_original_record  # needed once a payload repeats

    return read_original_record(path, offset)
