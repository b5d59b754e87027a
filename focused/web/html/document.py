"""A page as a document of a corpus: its main text with structure, and what it declares."""

from __future__ import annotations

import msgspec

from focused.web.decoding import (
    MAX_PARSED_BYTES,
    close_empty_elements,
    decode,
    limit_markup,
    media_type_of,
)
from focused.web.html.dates import find_day
from focused.web.html.declared_metadata import DeclaredMetadata, declared_metadata
from focused.web.html.main_text import main_text_blocks, parse_tree, plain_text_blocks
from focused.web.html.text_structure import TextBlock
from focused.web.page import Fetched


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
