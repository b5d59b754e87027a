"""The document of a corpus that a response of any format holds: blocks and metadata."""

from __future__ import annotations

from typing import Any

from lxml import etree
from lxml.html import HtmlElement

from focused.documents.convert import to_html
from focused.web.decoding import MAX_PARSED_BYTES
from focused.web.html.declared_metadata import declared_metadata
from focused.web.html.document import Document, extract_document
from focused.web.html.main_text import blocks_of, parse_tree
from focused.web.html.text_structure import TextBlock
from focused.web.page import Failed, Fetched

# HTML's names in trafilatura's, which :func:`~focused.web.html.main_text.blocks_of` reads.
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LISTS = ("ul", "ol", "dl")
_NAMES = {
    **dict.fromkeys(_HEADINGS, "head"),
    **dict.fromkeys(_LISTS, "list"),
    **dict.fromkeys(("li", "dt", "dd"), "item"),
    **dict.fromkeys(("figure", "figcaption", "aside", "header"), "div"),
    "blockquote": "quote",
    "tr": "row",
    "td": "cell",
    "th": "cell",
    "br": "lb",
    "pre": "code",
}


def extract_any(fetched: Fetched, *, guess_dates: bool = False) -> Document:
    """Return the document of a response of any format; without blocks if it cannot be converted.

    ``guess_dates`` is that of :func:`~focused.web.html.document.extract_document`. All text of a
    PDF, office file or other document is its main text. Needs the extra ``corpus`` for pages of
    HTML.
    """
    converted = to_html(fetched)
    if isinstance(converted, Failed):
        return Document()
    if converted is fetched:
        return extract_document(fetched, guess_dates=guess_dates)
    tree = parse_tree(converted.body[:MAX_PARSED_BYTES].decode("utf-8", "ignore"))
    metadata = declared_metadata(tree, converted.url, converted.headers)
    return Document(() if tree is None else structured_blocks(tree), metadata)


def structured_blocks(tree: HtmlElement) -> tuple[TextBlock, ...]:
    """Return all text of a tree as blocks, in document order. Changes ``tree``."""
    etree.strip_elements(tree, "head", "script", "style", "colgroup", "col", with_tail=False)
    etree.strip_tags(tree, "thead", "tbody", "tfoot")
    for caption in list(tree.iter("caption")):
        table = caption.getparent()
        if table is not None and table.tag == "table":
            caption.tag = "div"
            table.addprevious(caption)
    for item in list(tree.iter("li")):
        parent = item.getparent()
        if parent is not None and parent.tag not in _LISTS:  # converters write items alone
            around: Any = etree.Element("ul")
            around.tail, item.tail = item.tail, None
            parent.replace(item, around)
            around.append(item)
    for code in list(tree.iter("pre")):
        text, tail = code.text_content(), code.tail
        code.clear()
        code.text, code.tail = f"\n{text}\n", tail  # the line breaks tell it from inline code
    for element in tree.iter(*_NAMES):
        if element.tag in _HEADINGS or element.tag in _LISTS:
            element.set("rend", element.tag)
        element.tag = _NAMES[str(element.tag)]
    return tuple(blocks_of(tree))
