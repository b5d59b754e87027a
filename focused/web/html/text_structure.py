"""The structure of a text: blocks, and their rendering as plain text and as Markdown.

Texts of pages are untrusted. Blocks are free of control characters, and Markdown escapes whatever a
renderer could take for markup, so that a page's text stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

HEADING, PARAGRAPH, QUOTE, ITEM, CODE, TABLE = (
    "heading",
    "paragraph",
    "quote",
    "item",
    "code",
    "table",
)
"""The kinds of blocks."""

_INDENT = 4


class TextBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a text.

    ``kind`` is heading, paragraph, quote, item (of a list), code or table. Each row of a table is a
    line, its cells are separated by tabs. ``level`` is 1 to 6 for a heading; for others it is the
    number of lists around the block. ``number`` is that of an item in a numbered list, else 0.
    ``language`` is that of a code block, ``""`` if unknown. ``code_spans`` are the ranges of inline
    code in the text of a heading, paragraph, quote or item.
    """

    kind: str
    text: str
    level: int = 0
    number: int = 0
    language: str = ""
    code_spans: tuple[tuple[int, int], ...] = ()


# Terminals act on control characters; bidirectional overrides let text read otherwise than it is
# (CVE-2021-42574); noncharacters and surrogates are no text. Soft hyphens, zero-width spaces and
# word joiners tell where a line may end, and searches don't find words with them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u2060\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef"
    "\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LINE_BREAKS = re.compile("\r\n?|[\u2028\u2029]")


def clean_text(text: str) -> str:
    """Remove characters without a glyph and bidirectional overrides; keep tab and newline.

    All line breaks become newlines.
    """
    return _UNSAFE.sub("", _LINE_BREAKS.sub("\n", text))


def clean_line(text: str, max_chars: int) -> str:
    """Return the beginning of a cleaned text as one line, white space collapsed."""
    return " ".join(clean_text(text[: 4 * max_chars]).split())[:max_chars]


def render_text(blocks: Iterable[TextBlock]) -> str:
    """Return blocks as plain text: code as it is, cells of tables separated by tabs."""
    return _join((block, _plain(block)) for block in blocks)


def render_markdown(blocks: Iterable[TextBlock]) -> str:
    """Return blocks as Markdown (CommonMark with tables of GitHub)."""
    return _join((block, _markdown(block)) for block in blocks)


def _join(rendered: Iterable[tuple[TextBlock, str]]) -> str:
    """Join blocks by empty lines, items of a list by line breaks."""
    pieces: list[str] = []
    was_item = False
    for block, text in rendered:
        is_item = block.kind == ITEM
        if pieces:
            pieces.append("\n" if is_item and was_item else "\n\n")
        pieces.append(text)
        was_item = is_item
    return "".join(pieces)


def _plain(block: TextBlock) -> str:
    if block.kind != ITEM:
        return block.text
    indent = " " * 2 * max(block.level - 1, 0)
    return f"{indent}{f'{block.number}.' if block.number else '-'} {block.text}"


def _markdown(block: TextBlock) -> str:
    outer = " " * _INDENT * block.level
    if block.kind == HEADING:
        return f"{'#' * block.level} {_escaped_inline(block).replace(chr(10), ' ')}"
    if block.kind == CODE:
        return _indented(_fenced(block), outer)
    if block.kind == TABLE:
        return _indented(_table(block.text), outer)
    text = _LINE_START.sub(r"\1\\\2", _escaped_inline(block)).replace("\n", "\\\n")
    if block.kind == ITEM:
        marker = f"{block.number}." if block.number else "-"
        before = " " * _INDENT * max(block.level - 1, 0)
        return f"{before}{marker:<{_INDENT - 1}} {_indented(text, outer, first=False)}"
    return (
        _indented(f"> {text.replace(chr(10), chr(10) + '> ')}", outer)
        if (block.kind == QUOTE)
        else _indented(text, outer)
    )


def _indented(text: str, indent: str, *, first: bool = True) -> str:
    if not indent:
        return text
    return (indent if first else "") + text.replace("\n", f"\n{indent}")


_SPECIAL = re.compile(r"[\\`*\[\]<>|~$]|(?<!\w)_|_(?!\w)|&(?=#?\w{1,32};)|!(?=\[)")
_LINE_START = re.compile(r"^([^\S\n]*+(?:\d{1,9}(?=[.)]))?)([#+=.)-])", re.MULTILINE)
_BACKTICKS = re.compile("`+")


def escape_markdown(text: str) -> str:
    """Escape what Markdown could take for inline markup."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _escaped_inline(block: TextBlock) -> str:
    """Return a text with markup escaped, and inline code between backticks."""
    if not block.code_spans:
        return escape_markdown(block.text)
    pieces, end = [], 0
    for start, stop in block.code_spans:
        pieces += [escape_markdown(block.text[end:start]), _code_span(block.text[start:stop])]
        end = stop
    return "".join([*pieces, escape_markdown(block.text[end:])])


def _code_span(code: str) -> str:
    fence = "`" * (_longest_run(code) + 1)
    padding = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{fence}{padding}{code}{padding}{fence}"


def _fenced(block: TextBlock) -> str:
    fence = "`" * max(3, _longest_run(block.text) + 1)
    return f"{fence}{block.language}\n{block.text}\n{fence}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code)), default=0)


def _table(text: str) -> str:
    rows = [[escape_markdown(cell) for cell in row.split("\t")] for row in text.split("\n")]
    width = max(map(len, rows))
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    return "\n".join(map(_table_row, [rows[0], ["---"] * width, *rows[1:]]))


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
