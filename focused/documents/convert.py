"""Convert a response that holds a document into one that holds HTML.

Converters and their libraries are imported with the first document of their format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

import msgspec

from focused.documents import formats
from focused.documents.formats import DocumentError, document_format, needs_process
from focused.parser_process import (
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
)
from focused.topic import DOCUMENT_FORMATS, missing_document_library
from focused.web.page import Failed, FailureKind, Fetched

_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class DocumentConverter:
    """The :class:`focused.crawl.page_parser.PageConverter` of documents of some formats."""

    accepted: Collection[str]

    def format_of(self, fetched: Fetched) -> str | None:
        """Return the format of a document that is accepted; None for other responses."""
        name = document_format(fetched)
        return name if name in self.accepted else None

    def takes_type(self, media_type: str) -> bool | None:
        """Whether responses of a media type may be accepted; None if it does not tell."""
        name = formats.declared_format(media_type)
        # The URL tells kinds of text apart.
        return None if name is None else name in (formats.TEXT, *self.accepted)

    def needs_process(self, fetched: Fetched) -> bool:
        """Whether conversion needs a process that can be killed."""
        return formats.needs_process(document_format(fetched))

    def to_html(self, fetched: Fetched) -> Fetched | Failed:
        """Convert a document; see :func:`to_html`."""
        return to_html(fetched, self.accepted)


def to_html(fetched: Fetched, accepted: Collection[str] = DOCUMENT_FORMATS) -> Fetched | Failed:
    """Return a response with its document as HTML; other responses as they are.

    ``accepted`` are the formats to convert. Never raises but MemoryError. Failed: the document is
    encrypted, damaged, too large, holds only images, or needs a library that is not installed.
    """
    name = document_format(fetched)
    if name is None or name not in accepted:
        return fetched
    if (library := missing_document_library(name)) is not None:
        detail = f"{library} is not installed: pip install 'focused-crawler[documents]'"
        return Failed(fetched.url, FailureKind.MISSING_LIBRARY, fetched.status, detail)
    try:
        body = _convert_format(name, fetched)
    except DocumentError as error:
        return Failed(fetched.url, error.kind, fetched.status, error.detail)
    except RecursionError:
        detail = f"the {name} file is nested too deeply"
        return Failed(fetched.url, FailureKind.DAMAGED, fetched.status, detail)
    headers = {**fetched.headers, "content-type": _HTML}
    return replace(fetched, headers=headers, body=body, exchange=None)


_CONVERTERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        formats.PDF: ("pdf", "convert_pdf"),
        formats.DOCX: ("office", "convert_docx"),
        formats.ODT: ("office", "convert_odt"),
        formats.PPTX: ("office", "convert_pptx"),
        formats.EPUB: ("epub", "convert_epub"),
        formats.JATS: ("jats", "convert_jats"),
        formats.TEXT: ("texts", "convert_text"),
        formats.MARKDOWN: ("texts", "convert_markdown"),
    }
)
"""Module and function by format; a function takes a body, those of texts the headers, too."""


def _convert_format(name: str, fetched: Fetched) -> bytes:
    module, function = _CONVERTERS[name]
    convert = getattr(import_module(f"focused.documents.{module}"), function)
    headers = (fetched.headers,) if name in (formats.TEXT, formats.MARKDOWN) else ()
    html: bytes = convert(fetched.body, *headers)
    return html


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
