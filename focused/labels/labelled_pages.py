"""Store the pages of labels in a WARC file beside the labels.

Training then needs neither the crawl's folder nor the network. A page is on disk before its label.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from focused.atomic_file import append_durably
from focused.errors import LabelError
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused.web.warc_reader import WarcResponse, read_responses
from focused.web.warc_writer import response_record

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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            _truncate_partial_member(path)
            self._urls = {one.url for one in _responses(path)}
        except OSError as error:
            raise LabelError(f"{path}: cannot be opened: {error.strerror}") from error

    def __contains__(self, url: str) -> bool:
        return url in self._urls

    def append(self, fetched: Fetched, at: float) -> None:
        """Store the page durably, unless it is stored already."""
        if fetched.url in self._urls:
            return
        record = response_record(replace(fetched, received_at=at))
        try:
            append_durably(self._file.fileno(), record)
        except OSError as error:
            raise LabelError(f"{self.path}: cannot be written: {error.strerror}") from error
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
    for record in _responses(labelled_pages_path(labels)):
        page = parse_page(Fetched(record.url, record.status, record.headers, record.body))
        if isinstance(page, Page):
            pages[record.url] = page
    return pages.get


def _responses(path: Path) -> Iterator[WarcResponse]:
    if path.is_file() and path.stat().st_size:
        for record in read_responses(path):
            if isinstance(record, WarcResponse):
                yield record
