"""Main texts and declared metadata for the items of the topic spider, on demand.

A parser process extracts and renders them within its limits, and a thread waits for it, so that the
reactor does other work. The process starts with the first page on topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from scrapy.http import Response

from focused.documents.extract import extract_any
from focused.errors import ConfigurationError, missing_extra
from focused.parser_process import (
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
)
from focused.scrapy_addon.outcomes import join_headers
from focused.web.html.document import Document
from focused.web.html.main_text import require_extraction
from focused.web.html.text_structure import render_markdown, render_text
from focused.web.page import Fetched

_READERS: Mapping[str, Callable[[Document], Any]] = {
    "text": lambda document: render_text(document.blocks),
    "markdown": lambda document: render_markdown(document.blocks),
    "published": lambda document: document.metadata.published or None,
    "modified": lambda document: document.metadata.modified or None,
    "authors": lambda document: list(document.metadata.authors),
    "licences": lambda document: list(document.metadata.licences),
    "robots": lambda document: list(document.metadata.robots),
}
ITEM_FIELDS = tuple(_READERS)
"""The fields that FOCUSED_ITEM_FIELDS may name."""

logger = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(tuple[Fetched, tuple[str, ...]]).decode
_decode_values = msgspec.msgpack.Decoder(dict[str, Any]).decode


def parse_item_fields(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in FOCUSED_ITEM_FIELDS: a list, or a text with commas.

    Raises ConfigurationError for an unknown name, MissingExtraError without the extra ``corpus``.
    """
    names = value.split(",") if isinstance(value, str) else value or ()
    if not isinstance(names, list | tuple):
        raise ConfigurationError(f"FOCUSED_ITEM_FIELDS: {value!r} must be a list or a text")
    fields = tuple(dict.fromkeys(str(name).strip() for name in names if str(name).strip()))
    unknown = [name for name in fields if name not in ITEM_FIELDS]
    if unknown:
        raise ConfigurationError(
            f"FOCUSED_ITEM_FIELDS: there is no field {unknown[0]!r}; known are "
            f"{', '.join(ITEM_FIELDS)}"
        )
    if fields:
        try:
            require_extraction()
        except ModuleNotFoundError as error:
            raise missing_extra(error, "FOCUSED_ITEM_FIELDS") or error from None
    return fields


def extract_fields(message: bytes) -> bytes:
    """Return the fields of one response, in a parser process."""
    fetched, fields = _decode_request(message)
    return _encode(_fields_of_document(extract_any(fetched), fields))


def _fields_of_document(document: Document, fields: Sequence[str]) -> dict[str, Any]:
    return {name: _READERS[name](document) for name in fields}


class ItemDocuments:
    """Computes fields of items from responses. Close it after use."""

    def __init__(self, limits: ParsingLimits) -> None:
        self._process = ParserProcess(extract_fields, limits)

    async def fields_of(self, response: Response, fields: Sequence[str]) -> dict[str, Any]:
        """Return these fields of a page; those of a page without text if it cannot be extracted."""
        headers = join_headers({name.lower(): each for name, each in response.headers.items()})
        fetched = Fetched(response.url, response.status, headers, response.body)
        try:
            answer = await asyncio.to_thread(self._process.ask, _encode((fetched, fields)))
        except (HandlerError, ParsingStoppedError) as error:
            logger.warning("the text of %s was not extracted: %s", response.url, error)
            return _fields_of_document(Document(), fields)
        return _decode_values(answer)

    def close(self) -> None:
        """End the process."""
        self._process.close()
