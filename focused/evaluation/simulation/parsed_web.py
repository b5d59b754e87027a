"""A recorded web whose pages are parsed once, for all runs and processes that compare on it.

Parsed pages lie in ``parsed/`` inside the web's folder (LMDB), by the address
they were asked for, for links are resolved against that. They come in as they
are first asked for. The cache knows the WARC files and the parser's own source
that it was made from, and starts anew when either has changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import astuple, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import lmdb

import focused.web
from focused.errors import RecordedWebError
from focused.evaluation.simulation.network import RecordedNetwork
from focused.frontier.queued import link_key
from focused.recorded.store import RecordedWeb
from focused.web.feeds import is_feed
from focused.web.page import Failed, FailureKind, Fetched, Link, Outcome, Page
from focused.web.parse import parse_page

CACHE_FOLDER = "parsed"
_FORMAT = "1"
_MAP_SIZE_BYTES = 1 << 40  # address space, not disk
_PAGE_FIELDS = tuple(each.name for each in fields(Page))


class ParsedWeb:
    """A :class:`focused.evaluation.simulation.network.Network` over a recorded web.

    An answer whose page is parsed already has a body of zeros, as long as the
    recorded one: only its length matters then. Not thread-safe.
    """

    def __init__(self, web: RecordedWeb) -> None:
        """Raises RecordedWebError when the web's folder cannot be written to."""
        self.web = web
        self._network = RecordedNetwork(web)
        try:
            self._env = _open_cache(web.folder)
        except (OSError, lmdb.Error) as error:
            raise RecordedWebError(
                f"{web.folder / CACHE_FOLDER}: parsed pages cannot be kept there ({error}): "
                "make the folder writable, or remove it if it is damaged"
            ) from error
        self._heads = self._env.open_db(b"heads")
        self._pages = self._env.open_db(b"pages")

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """What a request for ``url`` brings."""
        with self._env.begin(db=self._heads) as reading:
            head = reading.get(link_key(url))
        if head is not None:
            status, headers, size = json.loads(head)
            return Fetched(url, status, headers, bytes(size), elapsed_s)
        return self._network.answer(url, now, elapsed_s)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """The answer's page, from the cache or into it."""
        key = link_key(fetched.url)
        with self._env.begin(db=self._pages, buffers=True) as reading:
            row = reading.get(key)
            if row is not None:
                return _unpack(fetched, bytes(row))
        page = parse_page(fetched)
        # What is told by its body, wherever it is asked for, keeps it.
        if not is_feed(fetched) and not fetched.url.endswith("/robots.txt"):
            self._remember(key, fetched, page)
        return page

    def close(self) -> None:
        """Close the cache and the web."""
        self._env.close()
        self.web.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _remember(self, key: bytes, fetched: Fetched, page: Page | Failed) -> None:
        head = json.dumps([fetched.status, dict(fetched.headers), len(fetched.body)])
        # Both or neither: a head without its page would have zeros parsed.
        with self._env.begin(write=True) as writing:
            writing.put(key, _pack(page), db=self._pages)
            writing.put(key, head.encode(), db=self._heads)


def _pack(page: Page | Failed) -> bytes:
    if isinstance(page, Failed):
        row: list[Any] = [str(page.kind), page.detail]
    else:
        row = [getattr(page, name) for name in _PAGE_FIELDS if name not in ("url", "links")]
        row = [row, [astuple(link) for link in page.links]]
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _unpack(fetched: Fetched, raw: bytes) -> Page | Failed:
    first, second = json.loads(raw.decode("utf-8", "surrogatepass"))
    if isinstance(first, str):
        return Failed(fetched.url, FailureKind(first), fetched.status, second)
    names = [name for name in _PAGE_FIELDS if name not in ("url", "links")]
    values = dict(zip(names, first, strict=True))
    values["headings"] = tuple(values["headings"])
    return Page(fetched.url, links=tuple(Link(*link) for link in second), **values)


def _open_cache(web: Path) -> lmdb.Environment:
    folder = web / CACHE_FOLDER
    made_from = _made_from(web)
    stamp = folder / "made-from"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != made_from:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        stamp.write_text(made_from, encoding="utf-8")
    # Lost pages are parsed again, so nothing waits for the disk.
    return lmdb.open(str(folder), map_size=_MAP_SIZE_BYTES, max_dbs=2, sync=False, metasync=False)


def _made_from(web: Path) -> str:
    """Format, parser and WARC files, so that a change of any is noticed."""
    digest = hashlib.sha256(_FORMAT.encode())
    for source in sorted(Path(focused.web.__path__[0]).glob("*.py")):
        digest.update(source.read_bytes())
    for warc in sorted(web.glob("*.warc.gz")):
        about = warc.stat()
        digest.update(f"{warc.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()
