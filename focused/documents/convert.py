"""Recognise documents, and convert a response that holds one into one that holds HTML.

The first bytes, the media type and the URL tell the format.

Converters and their libraries are imported with the first document of their format.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

import msgspec

from focused.parser_process import (
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
)
from focused.topic import DOCUMENT_FORMATS, missing_document_library
from focused.web.decoding import media_type_of
from focused.web.page import Failed, FailureKind, Fetched

PDF, DOCX, ODT, PPTX, EPUB, JATS, TEXT, MARKDOWN = DOCUMENT_FORMATS

_PDF_START = b"%PDF-"
_ZIP_START = b"PK\x03\x04"
_MAGIC_STARTS = (_PDF_START[:2], _ZIP_START[:2])
_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAX_BYTES_BEFORE_PDF = 1_024  # Adobe's implementation notes
_MIMETYPE_ENTRY = slice(30, 38)
_MIMETYPES = ((b"application/epub+zip", EPUB), (b"application/vnd.oasis.opendocument.text", ODT))
_MAIN_PARTS = (
    (b"word/document.xml", DOCX),
    (b"ppt/presentation.xml", PPTX),
    (b"META-INF/container.xml", EPUB),
)
_XML_HEAD_BYTES = 4_096
_ARTICLE = re.compile(rb"<(?:\w+:)?article[\s/>]")
_JATS_SIGNS = re.compile(rb"JATS|NLM//DTD|<(?:\w+:)?front[\s/>]|<(?:\w+:)?article-meta[\s>]")

_FORMAT_OF_TYPE = MappingProxyType(
    {
        "application/pdf": PDF,
        "application/x-pdf": PDF,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": DOCX,
        "application/vnd.oasis.opendocument.text": ODT,
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": PPTX,
        "application/epub+zip": EPUB,
        "text/plain": TEXT,
        "text/markdown": MARKDOWN,
        "text/x-markdown": MARKDOWN,
    }
)
_XML_TYPES = frozenset({"application/xml", "text/xml", "application/jats+xml"})
_MARKDOWN_SUFFIXES = frozenset({".md", ".markdown"})
_SOURCE_SUFFIXES = frozenset({".tex", ".ltx"})
"""Of LaTeX, whose markup is no text to read."""
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_OFFICE_FORMATS = frozenset({DOCX, PPTX})
_ZIP_FORMATS = frozenset({DOCX, ODT, PPTX, EPUB})


def document_format(fetched: Fetched) -> str | None:
    """Return the format of the document that a response holds, or None.

    One of :data:`~focused.topic.DOCUMENT_FORMATS`. The first bytes decide where
    they can; the media type and the URL tell texts apart.
    """
    body = fetched.body
    declared_type = fetched.headers.get("content-type", "")
    if declared_type.startswith("text/html") and body[:2] not in _MAGIC_STARTS:
        return None  # nearly all responses
    if body.startswith(_PDF_START):
        return PDF
    media_type = media_type_of(fetched.headers)
    declared = _FORMAT_OF_TYPE.get(media_type)
    if body.startswith(_ZIP_START):
        # The names of the parts may be missing in a truncated file.
        return _format_of_zip(body) or (declared if declared in _ZIP_FORMATS else None)
    if media_type in _HTML_TYPES:
        return None
    if body.startswith(_OLE_START):  # an encrypted file, or one of the formats before 2007
        return declared if declared in _OFFICE_FORMATS else None
    if declared == PDF or not media_type or media_type == "application/octet-stream":
        return PDF if _PDF_START in body[:_MAX_BYTES_BEFORE_PDF] else None
    if declared == TEXT:
        suffix = _suffix(fetched.url)
        if suffix in _SOURCE_SUFFIXES:
            return None
        return MARKDOWN if suffix in _MARKDOWN_SUFFIXES else TEXT
    if media_type in _XML_TYPES or media_type.endswith("+xml"):
        head = body[:_XML_HEAD_BYTES]
        return JATS if _ARTICLE.search(head) and _JATS_SIGNS.search(head) else None
    return declared if declared == MARKDOWN else None


def needs_process(format_name: str | None) -> bool:
    """Whether documents of a format are converted only in a process that can be killed."""
    return format_name is not None and format_name != TEXT


def is_ole(body: bytes) -> bool:
    """Whether this is a compound file of OLE, which holds encrypted office files."""
    return body.startswith(_OLE_START)


def _format_of_zip(body: bytes) -> str | None:
    if body[_MIMETYPE_ENTRY] == b"mimetype":
        content = body[_MIMETYPE_ENTRY.stop : _MIMETYPE_ENTRY.stop + 64]
        for mimetype, name in _MIMETYPES:
            if mimetype in content:
                rest = content.partition(mimetype)[2]
                # Templates and other kinds have longer names.
                return None if rest[:1] in (b"-", b".") else name
        return None
    return next((name for part, name in _MAIN_PARTS if part in body), None)


def _suffix(url: str) -> str:
    name = url.partition("?")[0].rpartition("/")[2].lower()
    return name[name.rfind(".") :] if "." in name else ""


class DocumentError(Exception):
    """A document that cannot be converted. ``kind`` and ``detail`` say why."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


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
        name = _FORMAT_OF_TYPE.get(media_type)
        # The URL tells kinds of text apart.
        return None if name is None else name in (TEXT, *self.accepted)

    def needs_process(self, fetched: Fetched) -> bool:
        """Whether conversion needs a process that can be killed."""
        return needs_process(document_format(fetched))

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
        PDF: ("pdf", "convert_pdf"),
        DOCX: ("office", "convert_docx"),
        ODT: ("office", "convert_odt"),
        PPTX: ("office", "convert_pptx"),
        EPUB: ("epub", "convert_epub"),
        JATS: ("jats", "convert_jats"),
        TEXT: ("texts", "convert_text"),
        MARKDOWN: ("texts", "convert_markdown"),
    }
)
"""Module and function by format; a function takes a body, those of texts the headers, too."""


def _convert_format(name: str, fetched: Fetched) -> bytes:
    module, function = _CONVERTERS[name]
    convert = getattr(import_module(f"focused.documents.{module}"), function)
    headers = (fetched.headers,) if name in (TEXT, MARKDOWN) else ()
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
