"""Recognise the format of a document by its first bytes, its media type and its URL.

Also the error of a document that cannot be converted.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from focused.topic import DOCUMENT_FORMATS
from focused.web.decoding import media_type_of
from focused.web.page import FailureKind, Fetched

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


def declared_format(media_type: str) -> str | None:
    """Return the format that a media type declares, or None; see :func:`document_format`."""
    return _FORMAT_OF_TYPE.get(media_type)


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
