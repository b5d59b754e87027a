"""Read and write recorded webs.

:class:`RecordedWebWriter` works in a temporary folder and renames it at the end.

``labels.tsv`` is the ground truth, one ``url<TAB>category`` a line. A URL may have several lines.
Categories are paths such as ``Top/Computers/Databases``; a page of a category also belongs to its
ancestors.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from fastwarc.warc import ArchiveIterator

from focused.errors import RecordedWebError, os_errors_as
from focused.files import open_regular_file, write_json_atomically
from focused.web.html.parse import parse_page
from focused.web.http_response import outcome_from_response
from focused.web.page import Fetched, Page, Redirected
from focused.web.urls import host_of, normalize_url
from focused.web.warc_reader import EPOCH, parse_response_record
from focused.web.warc_records import (
    record_id_from_name,
    response_record,
    warc_date,
    warcinfo_record,
)
from focused_lab.recorded_web.web_index import (
    RecordLocation,
    WebIndex,
    find_key,
    load_index,
    url_key,
    write_index,
)

LABELS_FILE = "labels.tsv"


def write_web_labels(path: Path, labels: Iterable[tuple[str, str]]) -> int:
    """Write sorted unique lines; return their number.

    Raises RecordedWebError for a URL or category with a tab or line break.
    """
    lines = sorted({_label_line(url, category) for url, category in labels})
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _label_line(url: str, category: str) -> str:
    if not url or not category or any(char in "\t\r\n" for char in url + category):
        raise RecordedWebError(
            f"label {category!r} of {url!r} is empty or holds a tab or line break: "
            "give one URL and one category a line"
        )
    return f"{url}\t{category}\n"


def read_web_labels(path: Path) -> Mapping[str, frozenset[str]]:
    """Return categories by URL; empty without a file.

    Raises RecordedWebError for the first malformed line.
    """
    if not path.exists():
        return {}
    found: dict[str, set[str]] = {}
    for url, category in read_web_label_lines(path):
        found.setdefault(url, set()).add(category)
    shared: dict[frozenset[str], frozenset[str]] = {}
    return {
        url: shared.setdefault(frozen, frozen)
        for url, frozen in ((url, frozenset(names)) for url, names in found.items())
    }


def read_web_label_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the (url, category) pairs in file order."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordedWebError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        url, tab, category = line.rstrip("\r").partition("\t")
        if not tab or not url or not category or "\t" in category:
            raise RecordedWebError(
                f"{path}, line {number}: expected url<TAB>category, found {line[:80]!r}"
            )
        yield url, category


WEB_FILE = "web.json"
WARC_FILE = "pages.warc.gz"


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A recorded response with lower-case header names and a decoded body.

    ``url`` is the recorded URL, which may differ from the requested one in its scheme or by a
    trailing ``index.html``.
    """

    url: str
    status: int
    headers: dict[str, str]
    body: bytes


class RecordedWeb:
    """A recorded web, open for reading; thread-safe.

    Look-up tolerates what real servers tolerate: see
    :func:`~focused_lab.recorded_web.web_index.key_variants`. ``damaged`` counts unreadable records.
    """

    def __init__(self, folder: Path, index: WebIndex, details: Mapping[str, object]) -> None:
        self.folder = folder
        self.details = details
        self.damaged = index.damaged
        self._locations = index.locations
        self._files: dict[str, BinaryIO] = {}
        self._closing = ExitStack()
        self._lock = threading.Lock()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the web in ``folder``; rebuild its index if needed.

        Raises RecordedWebError if there is no recorded web or nothing in it can be read. Damaged
        records are skipped and counted.
        """
        if not folder.is_dir():
            raise RecordedWebError(
                f"there is no recorded web at {folder}: make one with 'focused web build' "
                "or 'focused web import'"
            )
        return cls(folder, load_index(folder), read_details(folder))

    @cached_property
    def urls(self) -> Sequence[str]:
        """All recorded URLs, with redirects and robots.txt, in recorded order."""
        return tuple(self._locations)

    @cached_property
    def page_urls(self) -> Sequence[str]:
        """The URLs with status 200, without robots.txt."""
        return tuple(
            key
            for key, place in self._locations.items()
            if place.status == 200 and not key.endswith("/robots.txt")
        )

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The recorded hosts."""
        return frozenset(host_of(key) for key in self._locations)

    @cached_property
    def labels(self) -> Mapping[str, frozenset[str]]:
        """Categories by recorded URL, from ``labels.tsv``."""
        return read_web_labels(self.folder / LABELS_FILE)

    def __len__(self) -> int:
        return len(self._locations)

    def __contains__(self, url: str) -> bool:
        return self.find(url) is not None

    def find(self, url: str) -> str | None:
        """Return the recorded URL that answers for ``url``, or None."""
        return find_key(url, self._locations)

    def status(self, url: str) -> int | None:
        """Return the recorded status of ``url`` without reading its body."""
        found = self.find(url)
        return None if found is None else self._locations[found].status

    def get(self, url: str) -> RecordedResponse | None:
        """Return the recorded response for ``url``, or None.

        Raises RecordedWebError if a file changed since the web was opened.
        """
        found = self.find(url)
        if found is None:
            return None
        place = self._locations[found]
        try:
            member = io.BytesIO(self._read(place))
            record = next(iter(ArchiveIterator(member, auto_decode="transfer")))
            stored = parse_response_record(record, self.folder / place.file)
        except (OSError, ValueError, StopIteration) as error:
            raise self._moved(found, place) from error
        if stored is None or (stored.url != found and find_key(stored.url, {found}) is None):
            raise self._moved(found, place)
        return RecordedResponse(found, stored.status, stored.headers, stored.body)

    def categories(self, url: str) -> frozenset[str]:
        """Return the labels of the page that answers for ``url``."""
        found = self.find(url)
        return frozenset() if found is None else self.labels.get(found, frozenset())

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._files.clear()
            self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self, place: RecordLocation) -> bytes:
        with self._lock:
            file = self._files.get(place.file)
            if file is None:
                file = self._closing.enter_context(open_regular_file(self.folder / place.file))
                self._files[place.file] = file
            file.seek(place.offset)
            return file.read(place.length)

    def _moved(self, key: str, place: RecordLocation) -> RecordedWebError:
        return RecordedWebError(
            f"{self.folder / place.file}: no readable record of {key} at byte {place.offset}; "
            "the file was changed or damaged: open the web again, or build it again"
        )


class RecordedWebWriter:
    """Writes a recorded web; ``folder`` appears with :meth:`finish`.

    As a context manager it discards its work unless ``finish`` was called. It replaces a recorded
    web at ``folder`` and refuses anything else.
    """

    def __init__(self, folder: Path, name: str, builder: str) -> None:
        self.folder = folder
        self._details: dict[str, object] = {"name": name, "builder": builder}
        self._index = WebIndex()
        _refuse_foreign(folder)
        self._part = folder.parent / f".{folder.name}.{os.getpid()}.part"
        with self._writing():
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self._part, ignore_errors=True)
            self._part.mkdir()
            self._warc = (self._part / WARC_FILE).open("wb")
        about = {"software": builder, "isPartOf": name}
        self._warc.write(
            warcinfo_record(record_id_from_name(repr(about)), WARC_FILE, warc_date(0.0), about)
        )

    def add(
        self,
        url: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        recorded_at: datetime = EPOCH,
    ) -> bool:
        """Record one response; return False if the URL is recorded already.

        ``recorded_at`` is the record's WARC-Date. Raises ValueError for a URL that cannot be
        crawled, RecordedWebError where the disk refuses.
        """
        key = url_key(url)
        if key in self._index.locations:
            return False
        received_at = recorded_at.timestamp()
        named = {name.lower(): value for name, value in headers.items()}
        fetched = Fetched(key, status, named, body, received_at=received_at)
        member = response_record(fetched)
        self._index.locations[key] = RecordLocation(
            WARC_FILE, self._warc.tell(), len(member), status
        )
        with self._writing():
            self._warc.write(member)
        return True

    def __contains__(self, url: str) -> bool:
        return self.find(url) is not None

    def find(self, url: str) -> str | None:
        """Return the recorded URL that answers for ``url``, or None."""
        return find_key(url, self._index.locations)

    def finish(
        self, labels: Iterable[tuple[str, str]] = (), details: Mapping[str, object] | None = None
    ) -> None:
        """Write labels, index and ``web.json`` (with ``details``), then rename the folder."""
        if not self._index.locations:
            self.discard()
            raise RecordedWebError(f"nothing to record: {self.folder} would hold no page")
        with self._writing():
            self._warc.close()
            write_index(self._part, self._index)
            write_web_labels(self._part / LABELS_FILE, labels)
            self._details.update(details or {})
            write_details(self._part, self._details)
            _replace(self.folder, self._part)

    def discard(self) -> None:
        """Delete what was recorded."""
        self._warc.close()
        shutil.rmtree(self._part, ignore_errors=True)

    def _writing(self) -> AbstractContextManager[None]:
        return os_errors_as(RecordedWebError, f"{self.folder} cannot be written")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._part.exists():
            self.discard()


def read_details(folder: Path) -> dict[str, object]:
    """Return the content of ``web.json``; only the folder's name without it.

    Raises RecordedWebError if the file is damaged.
    """
    path = folder / WEB_FILE
    if not path.exists():
        return {"name": folder.name, "builder": ""}
    try:
        details = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RecordedWebError(f"{path} is damaged ({error}): build the web again") from error
    if not isinstance(details, dict):
        raise RecordedWebError(f"{path} is damaged (not a JSON object): build the web again")
    return details


def write_details(folder: Path, details: Mapping[str, object]) -> None:
    """Write ``web.json`` atomically."""
    write_json_atomically(folder / WEB_FILE, dict(details))


def _refuse_foreign(folder: Path) -> None:
    occupied = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if occupied and not (folder / WEB_FILE).is_file():
        raise RecordedWebError(
            f"{folder} exists and is not a recorded web: name another folder, or remove it"
        )


def _replace(folder: Path, part: Path) -> None:
    old = folder.parent / f".{folder.name}.{os.getpid()}.old"
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


class WebSource(Protocol):
    """A source of responses for a web's hosts: a recorded web, or one in memory."""

    @property
    def hosts(self) -> Collection[str]:
        """Hosts in lower case, with the port unless it is the scheme's default."""

    def get(self, url: str) -> RecordedResponse | None:
        """Return the response recorded for an absolute URL, or None."""


_MAX_REDIRECTS = 5


def page_reader(web: RecordedWeb) -> Callable[[str], Page | None]:
    """Return a function from URL to parsed page, following redirects; None without a page."""

    def read(url: str) -> Page | None:
        target = normalize_url(url)
        for _ in range(_MAX_REDIRECTS + 1):
            response = None if target is None else web.get(target)
            if target is None or response is None:
                return None
            outcome = outcome_from_response(
                response.status, response.headers, target, response.body, elapsed_s=0.0, now=0.0
            )
            if isinstance(outcome, Fetched):
                page = parse_page(outcome)
                return page if isinstance(page, Page) else None
            target = outcome.target if isinstance(outcome, Redirected) else None
        return None

    return read
