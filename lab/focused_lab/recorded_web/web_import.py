"""Import recorded webs from a folder of HTML or from WARC files."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from focused.errors import RecordedWebError, os_errors_as
from focused.web.warc_reader import MAX_BODY_BYTES, DamagedRecord, WarcResponse, read_responses
from focused_lab.recorded_web.conditional_requests import http_date
from focused_lab.recorded_web.recorded_web import RecordedWebWriter
from focused_lab.recorded_web.web_index import INDEX_PAGE, url_key

BUILDER = "focused import 1"
_OK_BELOW = 400


@dataclass(frozen=True, slots=True)
class ImportedWeb:
    """Result of an import.

    ``skipped`` counts unreadable files and invalid URLs, ``damaged`` unreadable parts of WARC
    files, ``duplicates`` further responses for a URL, ``unknown_labels`` labels of URLs that are
    not in the web.
    """

    folder: Path
    responses: int
    skipped: int = 0
    damaged: int = 0
    duplicates: int = 0
    unknown_labels: int = 0


def import_html(
    source: Path, base_url: str, folder: Path, name: str, labels: Iterable[tuple[str, str]] = ()
) -> ImportedWeb:
    """Import the HTML files below ``source`` as a recorded web at ``folder``.

    ``base_url`` is the URL of the top folder; an ``index.html`` gets its folder's URL. A
    ``robots.txt`` in the top folder becomes the host's. Raises RecordedWebError without any HTML
    file, or for an invalid base URL.
    """
    base = _checked_base_url(base_url)
    responses = skipped = 0
    with RecordedWebWriter(folder, name, BUILDER) as writer:
        for file in _page_files(source):
            relative = PurePosixPath(file.relative_to(source).as_posix())
            try:
                body = read_html(file)
                modified = modified_at(file)
                headers = page_headers(body, modified)
                url = base + page_path(relative)
                responses += writer.add(url, 200, headers, body, modified)
            except (OSError, ValueError):
                skipped += 1
        if responses == 0:
            raise RecordedWebError(f"{source} holds no readable .html, .htm or .xhtml file")
        robots = source / "robots.txt"
        if robots.is_file():
            plain = {"content-type": "text/plain; charset=utf-8"}
            root = base[: base.index("/", 8)]
            responses += writer.add(f"{root}/robots.txt", 200, plain, robots.read_bytes())
        known, unknown = _known_labels(writer, labels)
        writer.finish(known, {"source": f"HTML files under {base}"})
    return ImportedWeb(folder, responses, skipped=skipped, unknown_labels=unknown)


def import_warc(
    files: Sequence[Path], folder: Path, name: str, labels: Iterable[tuple[str, str]] = ()
) -> ImportedWeb:
    """Import WARC files, gzipped or not, as a recorded web at ``folder``.

    Only HTTP responses are imported, with decoded bodies. Of several responses for one URL the
    first with a status below 400 counts, else the first. Raises RecordedWebError without any
    response.
    """
    for file in files:
        if not file.is_file():
            raise RecordedWebError(f"{file} is not a file: name WARC files (.warc or .warc.gz)")
    best, damaged, skipped = _best_responses(files)
    if not best:
        raise RecordedWebError(
            f"no HTTP response in {', '.join(map(str, files))} ({damaged} damaged): "
            "are these WARC files?"
        )
    taken = 0
    duplicates = 0
    with RecordedWebWriter(folder, name, BUILDER) as writer:
        for number, record in _responses(files):
            if isinstance(record, DamagedRecord) or (key := _key(record)) is None:
                continue
            if best[key][1] != number:
                duplicates += 1
                continue
            date = record.recorded_at
            try:
                taken += writer.add(key, record.status, record.headers, record.body, date)
            except ValueError:  # in UTC, the date is beyond those of datetime
                skipped += 1
        known, unknown = _known_labels(writer, labels)
        writer.finish(known, {"source": "WARC files: " + ", ".join(file.name for file in files)})
    return ImportedWeb(folder, taken, skipped, damaged, duplicates, unknown)


def _checked_base_url(base_url: str) -> str:
    try:
        base = url_key(base_url)
    except ValueError as error:
        raise RecordedWebError(
            f"base URL {base_url!r}: {error}; give one such as https://example.org/docs/"
        ) from error
    if "?" in base:
        raise RecordedWebError(f"base URL {base_url!r} has a query: give the address of a folder")
    return base if base.endswith("/") else base + "/"


def _page_files(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        raise RecordedWebError(f"{source} is not a folder")
    top = source.resolve()
    for file in sorted(source.rglob("*")):
        if is_page_name(file.name) and file.is_file() and file.resolve().is_relative_to(top):
            yield file


def _responses(files: Sequence[Path]) -> Iterator[tuple[int, WarcResponse | DamagedRecord]]:
    """Yield all responses of all files, numbered."""
    number = 0
    for file in files:
        with os_errors_as(RecordedWebError, f"{file} cannot be read"):
            for record in read_responses(file):
                yield number, record
                number += 1


def _best_responses(files: Sequence[Path]) -> tuple[dict[str, tuple[bool, int]], int, int]:
    """Return (is an error, number) of the chosen response by key; damaged; skipped."""
    best: dict[str, tuple[bool, int]] = {}
    damaged = skipped = 0
    for number, record in _responses(files):
        if isinstance(record, DamagedRecord):
            damaged += 1
            continue
        key = _key(record)
        if key is None:
            skipped += 1
            continue
        rank = (record.status >= _OK_BELOW, number)
        best[key] = min(best.get(key, rank), rank)
    return best, damaged, skipped


def _key(record: WarcResponse) -> str | None:
    try:
        return url_key(record.url)
    except ValueError:
        return None


def _known_labels(
    writer: RecordedWebWriter, labels: Iterable[tuple[str, str]]
) -> tuple[list[tuple[str, str]], int]:
    """Return the labels of recorded URLs, and the number of other labels."""
    known: list[tuple[str, str]] = []
    unknown = 0
    for url, category in labels:
        found = writer.find(url)
        if found is None:
            unknown += 1
        else:
            known.append((found, category))
    return known, unknown


PAGE_NAME = re.compile(r"\.x?html?(?:\.gz)?$", re.IGNORECASE)


def is_page_name(name: str) -> bool:
    """Whether a file name is that of HTML."""
    return PAGE_NAME.search(name) is not None


def page_path(relative: PurePosixPath) -> str:
    """Return the URL path of a file: percent-encoded, without ``.gz`` and ``index.html``."""
    path = str(relative).removesuffix(".gz")
    if relative.name.removesuffix(".gz") == INDEX_PAGE:
        path = path.removesuffix(INDEX_PAGE)
    return quote(path, safe="/~+,;=:@!$'()*&")


def read_html(file: Path) -> bytes:
    """Return a file's bytes, decompressed; raises OSError, also for more than 100 MB."""
    is_compressed = file.name.lower().endswith(".gz")
    try:
        with gzip.open(file) if is_compressed else file.open("rb") as content:
            body = content.read(MAX_BODY_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise OSError(f"{file}: {error}") from error
    if len(body) > MAX_BODY_BYTES:
        raise OSError(f"{file}: has more than {MAX_BODY_BYTES:,} bytes")
    return body


def page_headers(body: bytes, modified: datetime) -> dict[str, str]:
    """Return the headers of a static page; the charset only if the body is valid UTF-8."""
    try:
        body.decode("utf-8")
        content_type = "text/html; charset=utf-8"
    except UnicodeDecodeError:
        content_type = "text/html"
    return {
        "content-type": content_type,
        "last-modified": http_date(modified.timestamp()),
    }


def modified_at(file: Path) -> datetime:
    """Return when the file was last changed, in UTC."""
    return datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
