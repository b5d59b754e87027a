"""The main text of a page with its structure: headings, paragraphs, lists, tables and code.

trafilatura finds the main text (decision 0055) and returns a tree of its own elements: ``head``,
``p``, ``list``, ``item``, ``table``, ``row``, ``cell``, ``code``, ``quote``. It keeps code blocks
as they are only if each is a single text, so that they are prepared before. It drops the rows of
tables in lists and quotes, which are therefore passed through it as code. In some texts it leaves
HTML's own elements.

trafilatura is the extra ``corpus`` and slow to import.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from unicodedata import normalize

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from focused.errors import ExtractionError
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

MAX_TEXT_CHARS = 1_000_000
"""Characters of main text; the rest of a page is left out."""

_SHORT_CHARS = 1_000
_MAX_GROWTH = 3
_MAX_LANGUAGE_CHARS = 20
_MAX_DEPTH = 100
# lxml refuses to write these into a tree.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CONTROL_REFERENCE = re.compile(
    r"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]|fff[ef]))(?![0-9a-f]);?", re.I
)
_NOISE = etree.XPath(
    "//a[contains(@class, 'headerlink') or contains(@class, 'anchorjs-link')]"
    "|//*[self::td or self::span or self::div][contains(@class, 'lineno')]"
)
_NUMBERED_CODE = etree.XPath("//table[contains(@class, 'highlighttable')][.//pre]")
_CODE_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)-?\s*([A-Za-z][\w+#.-]*)"
)
_UNKNOWN_LANGUAGES = frozenset({"default", "none", "text", "plain", "plaintext", "source", "block"})
_LEVEL = re.compile("h([1-6])")
_BLOCK_TAGS = frozenset(
    {"p", "head", "list", "table", "row", "cell", "quote", "item", "div", "body", "fw"}
    | {"article", "section"}
)
_BLOCKS_IN_CELLS = ("p", "div", "quote", "article", "section", "lb")
_HTML_NAMES = {"tr": "row", "td": "cell", "th": "cell", "li": "item"}
_TABLES_WITHOUT_ROWS = etree.XPath(
    "//table[ancestor::li or ancestor::dd or ancestor::blockquote][.//tr[2]]"
    "[not(.//table or .//pre or .//ul or .//ol or .//dl)]"
)


def parse_tree(html: str) -> HtmlElement | None:
    """Return the tree of markup that :func:`~focused.web.decoding.limit_markup` limited.

    None if there is no element.
    """
    html = _CONTROL_REFERENCE.sub("", _CONTROLS.sub("", html))
    # Bytes: lxml refuses texts with an encoding declaration.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    try:
        return document_fromstring(html.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None


def plain_text_blocks(text: str) -> tuple[TextBlock, ...]:
    """Return the paragraphs of a plain text; they keep their line breaks."""
    paragraphs = re.split(r"\n[^\S\n]*\n", clean_text(text[:MAX_TEXT_CHARS]).strip("\n"))
    lines = ("\n".join(map(str.rstrip, each.split("\n"))).strip("\n") for each in paragraphs)
    return tuple(TextBlock(PARAGRAPH, each) for each in lines if each.strip())


def main_text_blocks(tree: HtmlElement) -> tuple[TextBlock, ...]:
    """Return the blocks of the main text of a page; empty if it has none. Changes ``tree``.

    trafilatura's default mode compares its own result with those of readability and jusText. It
    finds more on pages of unusual layout, but now and then takes a whole page for its main text.
    """
    tables = _prepare(tree)
    own = _extract(tree, tables, fast=True)
    compared = _extract(tree, tables, fast=False)
    if _chars(own) < _SHORT_CHARS or _chars(compared) < _MAX_GROWTH * _chars(own):
        return compared
    return own


def _chars(blocks: Iterable[TextBlock]) -> int:
    return sum(len(block.text) for block in blocks)


def _extract(tree: HtmlElement, tables: Mapping[str, str], *, fast: bool) -> tuple[TextBlock, ...]:
    found = _trafilatura().bare_extraction(
        tree,
        fast=fast,
        include_comments=False,
        include_tables=True,
        include_formatting=False,  # with it, some pages lose most of their text
        include_links=False,
        include_images=False,
    )
    if found is None or found.body is None:
        return ()
    for element in found.body.iter(*_HTML_NAMES):
        element.tag = _HTML_NAMES[element.tag]
    blocks: list[TextBlock] = []
    chars = 0
    for block in blocks_of(found.body):
        if block.kind == CODE and (table := tables.get(block.text.strip())):
            block = TextBlock(TABLE, table, block.level)
        chars += len(block.text)
        if chars > MAX_TEXT_CHARS:
            break
        blocks.append(block)
    return tuple(blocks)


def require_extraction() -> None:
    """Raise ModuleNotFoundError without the extra ``corpus``, ExtractionError if it is broken."""
    # It is imported, not looked for: an installed trafilatura may lack a library of its own.
    try:
        _trafilatura()
        import htmldate  # noqa: F401 -- slow, and an extra
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        if "lxml_html_clean" in str(error):  # lxml turns the missing module into a message
            raise ModuleNotFoundError(str(error), name="lxml_html_clean") from error
        raise ExtractionError(
            f"trafilatura cannot be imported ({error}): "
            "pip install --force-reinstall 'focused-crawler[corpus]'"
        ) from error


@cache
def _trafilatura() -> Any:
    import trafilatura  # slow, and an extra

    # It logs each page without text as a warning.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return trafilatura


def _prepare(tree: HtmlElement) -> dict[str, str]:
    """Remove permalinks and line numbers; make one text of each code block and nested table.

    Returns the texts of the tables that became code, by their form without outer white space.
    """
    for table in _NUMBERED_CODE(tree):
        # The numbers are in a pre before that of the code; a table in a replaced one has none.
        code = next(reversed(list(table.iter("pre"))), None)
        around = table.getparent()
        if code is not None and around is not None:
            code.tail = table.tail
            around.replace(table, code)
    for noise in _NOISE(tree):
        if noise.getparent() is not None and noise.tag != "body":
            noise.drop_tree()
    for caption in list(tree.iter("caption")):
        table = caption.getparent()
        if table is not None and table.tag == "table":
            caption.tag, caption.tail = "p", None
            table.addprevious(caption)
    for block in list(tree.iter("pre")):
        language, text, tail = _code_language(block), block.text_content(), block.tail
        block.clear()
        block.tail = tail
        code = etree.SubElement(block, "code")
        code.text = f"\n{text}\n"  # the line breaks tell it from inline code
        if language:
            code.set("class", f"language-{language}")
    for code in list(tree.iter("code", "tt", "kbd", "samp")):
        around = code.getparent()
        if around is not None and around.tag != "pre" and "\n" in (text := code.text_content()):
            tail = code.tail
            code.clear()
            code.text, code.tail = " ".join(text.split()), tail
    tables = {}
    for table in _TABLES_WITHOUT_ROWS(tree):
        for element in table.iter("br", "p", "div"):
            element.tail = f" {element.tail or ''}"
        rows = _rows(table, "tr", ("td", "th"))
        if _is_table(rows):
            tail = table.tail
            table.clear()
            table.tag, table.tail = "pre", tail
            text = "\n".join(map("\t".join, rows))
            etree.SubElement(table, "code").text = f"\n{text}\n"
            tables[text.strip()] = text
    return tables


def _rows(table: Any, row_tag: str, cell_tags: tuple[str, ...]) -> list[list[str]]:
    """Return the texts of the cells of a table, without its empty rows."""
    rows = (
        [" ".join(_composed("".join(cell.itertext())).split()) for cell in row.iter(*cell_tags)]
        for row in table.iter(row_tag)
    )
    return [row for row in rows if any(row)]


def _is_table(rows: list[list[str]]) -> bool:
    """Whether rows are more than the layout of a text: there are several rows and columns."""
    return len(rows) > 1 and max(map(len, rows)) > 1


def _code_language(block: HtmlElement) -> str:
    """Return the language that a ``pre``, its ``code`` or the two elements around it declare."""
    elements = [block.find("code"), block, block.getparent()]
    if elements[-1] is not None:
        elements.append(elements[-1].getparent())
    for element in elements:
        found = None if element is None else _CODE_LANGUAGE.search(element.get("class") or "")
        if found and found[1].lower() not in _UNKNOWN_LANGUAGES:
            return re.sub(r"[^a-z0-9+#.-]", "", found[1].lower())[:_MAX_LANGUAGE_CHARS]
    return ""


def _composed(text: str) -> str:
    """Return clean text in the normalization form C of Unicode, which searches expect."""
    return normalize("NFC", clean_text(text))


class _Inline:
    """Collects a run of inline text and its code."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, bool]] = []

    def add(self, text: str | None, *, is_code: bool = False) -> None:
        if text:
            self._pieces.append((_composed(text), is_code))

    def take(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return the text, white space collapsed except line breaks of ``add``, and empty it."""
        text, spans = "", []
        for piece, is_code in self._pieces:
            if piece == "\n":
                text = f"{text.rstrip(' ')}\n"
                continue
            words = " ".join(piece.split())
            if not words:
                text += "" if text[-1:] in ("", " ", "\n") else " "
                continue
            if piece[0].isspace() and text and text[-1] not in " \n":
                text += " "
            if is_code:
                spans.append((len(text), len(text) + len(words)))
            text += words + (" " if piece[-1].isspace() else "")
        self._pieces.clear()
        lead = len(text) - len(text.lstrip())
        return text.strip(), tuple((start - lead, end - lead) for start, end in spans)


def blocks_of(root: Any) -> Iterator[TextBlock]:
    """Yield the blocks of a tree of trafilatura's elements."""
    yield from _blocks_of(root, 0, _MAX_DEPTH)


def _blocks_of(
    parent: Any, depth: int, rest: int, *, number: int | None = None, kind: str = PARAGRAPH
) -> Iterator[TextBlock]:
    """Yield the blocks in an element.

    ``depth`` counts the lists around it, ``number`` is that of an item and None elsewhere, ``kind``
    that of text. Elements nested deeper than ``rest`` are one text.
    """
    inline = _Inline()

    def text_block() -> Iterator[TextBlock]:
        nonlocal number
        text, spans = inline.take()
        if text:
            own = kind if number is None else ITEM
            yield TextBlock(own, text, depth, number or 0, "", spans)
            number = None

    inline.add(parent.text)
    for child in parent:
        tag = child.tag
        if tag == "code" and _is_block(child):
            yield from text_block()
            yield from _code_block(child, depth)
        elif rest > 0 and (tag in _BLOCK_TAGS or _holds_blocks(child)):
            yield from text_block()
            if tag == "head":
                yield from _heading(child)
            elif tag == "table":
                yield from _table_block(child, depth, rest - 1)
            elif tag == "list":
                yield from _items(child, depth, rest - 1)
            else:
                own = QUOTE if tag == "quote" else kind
                for block in _blocks_of(child, depth, rest - 1, number=number, kind=own):
                    number = None
                    yield block
        else:
            _add_inline(inline, child)
        inline.add(child.tail)
    yield from text_block()


def _holds_blocks(element: Any) -> bool:
    return any(each.tag != "code" or _is_block(each) for each in element.iter(*_BLOCK_TAGS, "code"))


def _add_inline(inline: _Inline, element: Any) -> None:
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, each in walk:
        if event == "end":
            inline.add(each.tail if each is not element else None)
        elif each.tag == "lb":
            inline.add("\n")
        elif each.tag == "code":
            inline.add("".join(each.itertext()), is_code=True)
            walk.skip_subtree()
        elif each.tag == "graphic":
            walk.skip_subtree()
        else:
            inline.add(each.text)


def _heading(element: Any) -> Iterator[TextBlock]:
    inline = _Inline()
    _add_inline(inline, element)
    text, spans = inline.take()
    level = _LEVEL.fullmatch(element.get("rend") or "")
    if text:
        yield TextBlock(
            HEADING, text.replace("\n", " "), int(level[1]) if level else 2, 0, "", spans
        )


def _is_block(code: Any) -> bool:
    """Whether code is a block: trafilatura nests the code of some blocks."""
    return len(code) > 0 or "\n" in (code.text or "")


def _code_block(element: Any, depth: int) -> Iterator[TextBlock]:
    lines = clean_text("".join(element.itertext())).split("\n")
    code = "\n".join(map(str.rstrip, lines)).strip("\n")
    language = next(
        (
            found[1]
            for each in element.iter("code")
            if (found := _CODE_LANGUAGE.search(each.get("class") or ""))
        ),
        "",
    )
    if code.strip():
        yield TextBlock(CODE, code, depth, 0, language[:_MAX_LANGUAGE_CHARS])


def _table_block(table: Any, depth: int, rest: int) -> Iterator[TextBlock]:
    """Yield a table of several rows and columns; the text of others, which are for layout."""
    is_plain = all(row.tag == "row" and all(cell.tag == "cell" for cell in row) for row in table)
    has_blocks = next(table.iterdescendants("table", "list", "head"), None) is not None
    has_blocks = has_blocks or any(map(_is_block, table.iter("code")))
    if is_plain and not has_blocks:
        for element in table.iter(*_BLOCKS_IN_CELLS):
            element.text, element.tail = f" {element.text or ''}", f" {element.tail or ''}"
        rows = _rows(table, "row", ("cell",))
        if _is_table(rows):
            yield TextBlock(TABLE, "\n".join(map("\t".join, rows)), depth)
            return
    yield from _blocks_of(table, depth, rest)


def _items(parent: Any, depth: int, rest: int) -> Iterator[TextBlock]:
    """Yield the items of a list; terms and definitions are paragraphs."""
    is_definitions, number = parent.get("rend") == "dl", 0
    yield from _loose_text(parent.text, depth)
    for item in parent:
        if is_definitions:
            yield from _blocks_of(item, depth, rest)
        else:
            number += parent.get("rend") == "ol"
            yield from _blocks_of(item, depth + 1, rest, number=number)
        yield from _loose_text(item.tail, depth)


def _loose_text(text: str | None, depth: int) -> Iterator[TextBlock]:
    """Yield the text of a list that is in no item."""
    inline = _Inline()
    inline.add(text)
    if found := inline.take()[0]:
        yield TextBlock(PARAGRAPH, found, depth + 1)
