"""A recorded web with a cache of parsed pages, shared by all runs and processes.

``parsed/`` inside the web's folder (LMDB) holds one row per requested URL, against which links are
resolved: the head of the answer and the parsed page. Pages are added on first use. The cache is
discarded when the WARC files or the parser's source change.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import lmdb
import msgspec

import focused.kernels
import focused.web
from focused.errors import RecordedWebError
from focused.frontier.queued_link import link_key
from focused.web.decoding import is_feed
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched, Outcome, Page
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.simulator import RecordedNetwork

CACHE_FOLDER = "parsed"
_FORMAT = "2"
_MAP_SIZE_BYTES = 1 << 40  # address space, not disk
_MAX_PENDING = 100


class _CachedPage(msgspec.Struct, frozen=True, array_like=True):
    """One row: status, headers, bytes of body; kind and detail of the failure, or the page.

    ``page`` is still encoded; ``whole`` replaces it where msgpack cannot hold it.
    """

    status: int
    headers: dict[str, str]
    size: int
    failure: tuple[str, str] | None
    page: msgspec.Raw
    whole: Page | None = None


_encoder = msgspec.msgpack.Encoder()
_decode_row = msgspec.msgpack.Decoder(_CachedPage).decode
_decode_page = msgspec.msgpack.Decoder(Page).decode


class ParsedWeb:
    """A :class:`focused_lab.simulation.simulator.Network` over a recorded web.

    The answer for a cached page has a body of zeros of the recorded length. Not thread-safe.
    """

    def __init__(self, web: RecordedWeb) -> None:
        """Raises RecordedWebError when the web's folder is not writable."""
        self.web = web
        self._network = RecordedNetwork(web)
        try:
            self._env = _open_cache(web.folder)
        except (OSError, lmdb.Error) as error:
            raise RecordedWebError(
                f"{web.folder / CACHE_FOLDER}: cannot store parsed pages ({error}): "
                "make the folder writable, or remove it if it is damaged"
            ) from error
        # Rows that answer() read and parse() will need.
        self._open: dict[str, _CachedPage] = {}

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        kept = self._kept(url)
        if kept is None:
            return self._network.answer(url, now, elapsed_s)
        if len(self._open) >= _MAX_PENDING:
            self._open.clear()
        self._open[url] = kept
        return Fetched(url, kept.status, kept.headers, bytes(kept.size), elapsed_s)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Return the answer's page from the cache, or parse and add it."""
        kept = self._open.pop(fetched.url, None) or self._kept(fetched.url)
        if kept is not None:
            return _page_from_row(kept, fetched.url)
        page = parse_page(fetched)
        # Feeds and robots.txt are read by their body, so they need it.
        if not is_feed(fetched) and not fetched.url.endswith("/robots.txt"):
            with self._env.begin(write=True) as writing:
                writing.put(link_key(fetched.url), _encode_row(fetched, page))
        return page

    def close(self) -> None:
        """Close the cache and the web."""
        self._env.close()
        self.web.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _kept(self, url: str) -> _CachedPage | None:
        with self._env.begin() as reading:
            row = reading.get(link_key(url))
        if row is None:
            return None
        return _decode_json_row(row) if row.startswith(b"[") else _decode_row(row)


def _encode_row(fetched: Fetched, page: Page | Failed) -> bytes:
    failure = (str(page.kind), page.detail) if isinstance(page, Failed) else None
    head = fetched.status, dict(fetched.headers), len(fetched.body), failure
    try:
        return _encoder.encode(_CachedPage(*head, msgspec.Raw(_encoder.encode(page))))
    except UnicodeEncodeError:  # lone surrogates: JSON can escape them
        return json.dumps([*head, msgspec.to_builtins(page)]).encode("ascii")


def _decode_json_row(row: bytes) -> _CachedPage:
    status, headers, size, failure, page = json.loads(row)
    whole = None if failure else msgspec.convert(page, Page)
    return _CachedPage(status, headers, size, failure, msgspec.Raw(), whole)


def _page_from_row(kept: _CachedPage, url: str) -> Page | Failed:
    if kept.failure is not None:
        kind, detail = kept.failure
        return Failed(url, FailureKind(kind), kept.status, detail)
    return kept.whole or _decode_page(kept.page)


def _open_cache(web: Path) -> lmdb.Environment:
    folder = web / CACHE_FOLDER
    made_from = _cache_version(web)
    stamp = folder / "made-from"
    with _locked(web):
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != made_from:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            stamp.write_text(made_from, encoding="utf-8")
        # Lost pages are parsed again, so don't wait for the disk.
        return lmdb.open(str(folder), map_size=_MAP_SIZE_BYTES, sync=False, metasync=False)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let other processes wait that open the cache of the same web."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def warc_files_stamp(folder: Path) -> str:
    """Return names, sizes and modification times of the WARC files."""
    states = ((warc.name, warc.stat()) for warc in sorted(folder.glob("*.warc.gz")))
    return "".join(f"{name} {about.st_size} {about.st_mtime_ns}\n" for name, about in states)


def _cache_version(web: Path) -> str:
    """Digest of format, parser with its kernels, and WARC files."""
    digest = hashlib.sha256(_FORMAT.encode())
    for package in (focused.web, focused.kernels):
        for source in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(source.read_bytes())
    digest.update(warc_files_stamp(web).encode())
    return digest.hexdigest()
