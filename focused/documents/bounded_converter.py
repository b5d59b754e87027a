"""Convert documents in a parser process, for callers that wait."""

from __future__ import annotations

import msgspec

from focused.documents.convert import to_html
from focused.documents.formats import document_format, needs_process
from focused.parser_process import (
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
)
from focused.web.page import Failed, FailureKind, Fetched

_encode = msgspec.msgpack.Encoder().encode
_decode_fetched = msgspec.msgpack.Decoder(Fetched).decode
_decode_answer: msgspec.msgpack.Decoder[tuple[Fetched | None, Failed | None]] = (
    msgspec.msgpack.Decoder(tuple[Fetched | None, Failed | None])
)


class BoundedConverter:
    """Converts documents within limits, in a process that starts with the first of them.

    Thread-safe; callers wait for each other. Usable as a context manager.
    """

    def __init__(self, limits: ParsingLimits | None = None) -> None:
        self._process = ParserProcess(_convert, limits or ParsingLimits())

    def to_html(self, fetched: Fetched) -> Fetched | Failed:
        """Return what :func:`focused.documents.convert.to_html` returns, or why it was stopped."""
        if not needs_process(document_format(fetched)):
            return to_html(fetched)
        try:
            html, failed = _decode_answer.decode(self._process.ask(_encode(fetched)))
        except ParsingStoppedError as stopped:
            return Failed(fetched.url, stopped.kind, fetched.status, stopped.detail)
        except HandlerError as error:
            detail = str(error)[:200]
            return Failed(fetched.url, FailureKind.INTERNAL_ERROR, fetched.status, detail)
        return html or failed or fetched

    def __enter__(self) -> BoundedConverter:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()


def _convert(message: bytes) -> bytes:
    """Convert a document; runs in the parser process."""
    converted = to_html(_decode_fetched(message))
    is_failed = isinstance(converted, Failed)
    return _encode((None, converted) if is_failed else (converted, None))
