"""The document of a corpus that a response of any format holds: blocks and metadata."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement

from focused.documents.convert import to_html
from focused.web.decoding import MAX_PARSED_BYTES
from focused.web.html.declared_metadata import declared_metadata
from focused.web.html.document import Document, extract_document
from focused.web.html.main_text import parse_tree
from focused.web.html.text_structure import (
    CODE,
    HEADING,
    ITEM,
    PARAGRAPH,
    QUOTE,
    TABLE,
    TextBlock,
    clean_text,
)
from focused.web.page import Failed, Fetched

_KINDS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), HEADING),
    **dict.fromkeys(("p", "div", "section", "article", "body", "dt", "dd"), PARAGRAPH),
    **dict.fromkeys(("ul", "ol", "dl", "figure", "figcaption", "aside", "header"), PARAGRAPH),
    "blockquote": QUOTE,
    "li": ITEM,
    "pre": CODE,
}
_LISTS = frozenset({"ul", "ol"})
_SKIPPED = frozenset({"head", "script", "style"})


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
    return Document(() if tree is None else tuple(structured_blocks(tree)), metadata)


def structured_blocks(tree: HtmlElement) -> Iterator[TextBlock]:
    """Yield all text of a tree as blocks, in document order."""
    gathered: list[str] = []
    open_blocks: list[HtmlElement] = []
    numbers: dict[HtmlElement, int] = {}

    def flush() -> Iterator[TextBlock]:
        text = clean_text("".join(gathered))
        gathered.clear()
        around = open_blocks[-1] if open_blocks else None
        kind = PARAGRAPH if around is None else _KINDS[str(around.tag)]
        text = text.strip("\n") if kind == CODE else " ".join(text.split())
        if not text.strip():
            return
        if kind == HEADING and around is not None:
            yield TextBlock(kind, text, int(str(around.tag)[1]))
            return
        level = sum(each.tag in _LISTS for each in open_blocks)
        level = max(level, int(kind == ITEM))
        number = numbers.pop(around, 0) if kind == ITEM and around is not None else 0
        yield TextBlock(kind, text, level, number)

    events = etree.iterwalk(tree, events=("start", "end"))
    for event, element in events:
        tag = element.tag
        if event == "start":
            if tag == "table" or tag in _SKIPPED:
                yield from flush()
                if tag == "table":
                    yield from _table(element, sum(each.tag in _LISTS for each in open_blocks))
                events.skip_subtree()
                continue
            if tag in _KINDS:
                yield from flush()
                open_blocks.append(element)
                if tag == "li":
                    parent = element.getparent()
                    if parent is not None and parent.tag == "ol":
                        numbers[element] = parent.index(element) + 1
            elif tag == "br":
                gathered.append("\n")
            gathered.append(element.text or "")
        else:
            if open_blocks and open_blocks[-1] is element:
                yield from flush()
                open_blocks.pop()
            gathered.append(element.tail or "")
    yield from flush()


def _table(table: HtmlElement, level: int) -> Iterator[TextBlock]:
    rows = [
        [" ".join(clean_text(" ".join(cell.itertext())).split()) for cell in row]
        for row in table.iter("tr")
    ]
    lines = ["\t".join(row) for row in rows if any(row)]
    if lines:
        yield TextBlock(TABLE, "\n".join(lines), level)
