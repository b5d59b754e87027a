"""A page as a document of a corpus: its main text with structure, and what it declares."""

from __future__ import annotations

import logging
import re
from copy import deepcopy
from functools import cache
from typing import Any

import msgspec
from lxml.html import HtmlElement, document_fromstring

from focused.web.decoding import (
    MAX_PARSED_BYTES,
    close_empty_elements,
    decode,
    limit_markup,
    media_type_of,
)
from focused.web.html.declared_metadata import DeclaredMetadata, declared_metadata
from focused.web.html.main_text import main_text_blocks, parse_tree, plain_text_blocks
from focused.web.html.text_structure import TextBlock
from focused.web.page import Fetched

MAX_DATED_ELEMENTS = 200
MAX_DATED_CHARS = 200
_MAX_DATED_DESCENDANTS = 50

_DATED_TAGS = frozenset({"time", "abbr"})
_DATED_NAME = re.compile(
    "date|time|publi|posted|byline|meta|stamp|author|info|created|datum|fecha", re.IGNORECASE
)
_NAMES = ("class", "id", "itemprop")
# htmldate would take the present day, and an export give another result each day.
_LAST_DAY = "2100-12-31"


class Document(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The main text of a page and its metadata; ``blocks`` is empty without main text."""

    blocks: tuple[TextBlock, ...] = ()
    metadata: DeclaredMetadata = DeclaredMetadata()


def extract_document(fetched: Fetched, *, guess_dates: bool = False) -> Document:
    """Return the document that a response holds.

    A page that declares no day of publication has the one in elements for dates, with
    ``guess_dates`` that in its text. Uses the first 2,000,000 bytes. Needs the extra ``corpus``.
    Extraction may take seconds or much memory for hostile pages: run it in a
    :mod:`focused.parser_process`.
    """
    html, _ = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    media_type = media_type_of(fetched.headers)
    if media_type == "application/xhtml+xml":
        html = close_empty_elements(html)
    if media_type == "text/plain":
        metadata = declared_metadata(None, fetched.url, fetched.headers)
        return Document(plain_text_blocks(html), metadata)
    tree = parse_tree(limit_markup(html))
    metadata = declared_metadata(tree, fetched.url, fetched.headers)
    if tree is not None and not metadata.published:
        day = find_day(tree, in_text=guess_dates)
        metadata = msgspec.structs.replace(metadata, published=day)
    return Document(() if tree is None else main_text_blocks(tree), metadata)


def find_day(tree: HtmlElement, *, in_text: bool) -> str:
    """Return the day of publication in ISO 8601, or ``""``.

    Reads the meta elements, and short elements whose tag or name tells that they hold a date; with
    ``in_text`` the whole page, which finds a wrong day on most pages that show none.
    """
    try:
        # A tree, because htmldate fetches a text that is a URL.
        day = _find_date()(
            tree if in_text else _dated_elements(tree),
            extensive_search=in_text,
            original_date=True,
            max_date=_LAST_DAY,
        )
    except Exception:  # a library that fails over a date must not cost the document
        return ""
    return day or ""


def _dated_elements(tree: HtmlElement) -> HtmlElement:
    """Return a page with only the meta elements and those that may hold a date."""
    page = document_fromstring("<html><head></head><body></body></html>")
    head, body = page
    head.extend(deepcopy(each) for each in tree.iter("meta"))
    for element in tree.iter():
        if len(body) == MAX_DATED_ELEMENTS:
            break
        if _is_dated(element):
            body.append(deepcopy(element))
            body[-1].tail = None
    return page


def _is_dated(element: HtmlElement) -> bool:
    if element.tag in ("meta", "script", "style"):
        return False
    names = " ".join(element.get(each) or "" for each in _NAMES)
    if element.tag not in _DATED_TAGS and not _DATED_NAME.search(names):
        return False
    chars = 0
    for number, each in enumerate(element.iter()):
        chars += len(each.text or "") + (len(each.tail or "") if number else 0)
        if chars > MAX_DATED_CHARS or number > _MAX_DATED_DESCENDANTS:
            return False
    return True


@cache
def _find_date() -> Any:
    from htmldate import find_date  # slow to import, and of the extra corpus

    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    return find_date
