"""Extract the documents of a crawl's pages from its WARC files, in parser processes.

A page that cannot be extracted gives no document and a reason; it never stops an export. Results
come in order and do not depend on the number of processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import msgspec

from focused.archive.warc_files import warc_path
from focused.corpus.page_selection import SelectedPage
from focused.documents.extract import extract_any
from focused.parser_process import HandlerError, ParserProcess, ParsingLimits, ParsingStoppedError
from focused.web.html.document import Document
from focused.web.html.main_text import require_extraction
from focused.web.page import FailureKind, Fetched
from focused.web.warc_reader import read_response

UNREADABLE = "unreadable-record"
"""The reason of a page whose WARC record is missing or damaged."""
EXTRACTOR_FAILED = FailureKind.INTERNAL_ERROR.value
"""The reason of a page at which the extractor failed; a later attempt may succeed."""
NO_TEXT = "no-text"
"""The reason of a page without main text."""

EXTRACTION_LIMITS = ParsingLimits(cpu_s=30.0, elapsed_s=120.0)
"""The limits of one page."""

_WAITING_PER_PROCESS = 8


class StoredDocument(msgspec.Struct, frozen=True, array_like=True):
    """The document of the page at a position of the selection; ``reason`` is why it has no text."""

    position: int
    document: Document
    reason: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(tuple[str, int, str, bool]).decode
_decode_document = msgspec.msgpack.Decoder(Document | None).decode


def extract_stored(message: bytes) -> bytes:
    """Handle one request in a parser process: read the WARC record and extract its document."""
    path, offset, url, guess_dates = _decode_request(message)
    found = read_response(Path(path), offset)
    if found is None:
        return _encode(None)
    fetched = Fetched(url, found.status, found.headers, found.body)
    return _encode(extract_any(fetched, guess_dates=guess_dates))


def extract_documents(
    crawl: Path,
    pages: Iterable[tuple[int, SelectedPage]],
    *,
    processes: int,
    limits: ParsingLimits,
    guess_dates: bool = False,
) -> Iterator[StoredDocument]:
    """Yield the documents of pages of a crawl, in order; each within ``limits``.

    ``guess_dates`` searches the texts of pages for days of publication. Raises ModuleNotFoundError
    without the extra ``corpus``.
    """
    require_extraction()
    waiting: deque[Future[StoredDocument]] = deque()
    with ExitStack() as stack:
        idle: SimpleQueue[ParserProcess] = SimpleQueue()
        for _ in range(processes):
            idle.put(stack.enter_context(ParserProcess(extract_stored, limits)))
        pool = stack.enter_context(ThreadPoolExecutor(processes))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        extract = partial(_extract, crawl, guess_dates, idle)
        for position, page in pages:
            waiting.append(pool.submit(extract, position, page))
            if len(waiting) >= processes * _WAITING_PER_PROCESS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _extract(
    crawl: Path,
    guess_dates: bool,
    idle: SimpleQueue[ParserProcess],
    position: int,
    page: SelectedPage,
) -> StoredDocument:
    path = str(warc_path(crawl, page.warc_file))
    request = (path, page.warc_offset, page.url, guess_dates)
    process = idle.get()
    try:
        document = _decode_document(process.ask(_encode(request)))
    except HandlerError:
        return StoredDocument(position, Document(), EXTRACTOR_FAILED)
    except ParsingStoppedError as stopped:
        return StoredDocument(position, Document(), stopped.kind.value)
    finally:
        idle.put(process)
    if document is None:
        return StoredDocument(position, Document(), UNREADABLE)
    return StoredDocument(position, document, "" if document.blocks else NO_TEXT)
