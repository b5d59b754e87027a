"""Convert plain text, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from focused.documents.formats import DocumentError
from focused.documents.markup import DocumentMetadata, MarkupWriter, Run, find_urls
from focused.web.decoding import MAX_PARSED_BYTES, decode
from focused.web.page import FailureKind

_MAX_FIRST_LINE = 120
_MAX_LATEX_DEPTH = 50
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_FRONT_MATTER = re.compile(r"---[^\S\n]*+\n(.{0,10000}?)\n(?:---|\.\.\.)[^\S\n]*+\n", re.S)
_FIELD = re.compile(r"(title|author|date|lang|language|description)\s*+:\s*+(.{1,500})", re.I)
_LATEX_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_LATEX_FIELD = r"\\%s\s*+(?:\[[^\]]{0,500}\])?\s*+\{((?:[^{}]|\{[^{}]{0,500}\}){1,2000})\}"
_LATEX_LINK = re.compile(
    r"\\href\s*\{([^{}]{1,2000})\}\s*\{((?:[^{}]|\{[^{}]{0,500}\}){0,2000})\}"
    r"|\\(?:url|nolinkurl)\s*\{([^{}]{1,2000})\}"
)
_LATEX_SECTION = re.compile(
    r"\\(part|chapter|section|subsection|subsubsection)\*?\s*+(?:\[[^\]]{0,500}\])?\s*+"
    r"\{((?:[^{}]|\{[^{}]{0,500}\}){1,1000})\}"
)
_LATEX_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4}
_LATEX_BODY = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.S)
_ESCAPED = re.compile(r"\\([%#&_~])")
_LATEX_DROPPED = re.compile(
    r"\\(?:today|maketitle|tableofcontents)(?![a-zA-Z])"
    r"|\\(?:cite[a-z]{0,10}|ref|eqref|autoref|cref|label|pageref)\*?(?:\[[^\]]{0,500}\]){0,2}"
    r"\s*\{[^{}]{0,500}\}"
)
_LATEX_AND = re.compile(r"\\and(?![a-zA-Z])")
# Private use characters stand for what is inserted after the conversion.
_MARK = "\ue000{}\ue001"
_MARKED = re.compile("\ue000(\\d+)\ue001")


def convert_text(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a plain text as HTML, a paragraph after each empty line.

    A short first line is the title, too.
    """
    writer = MarkupWriter()
    text = _decoded(body, headers)
    for paragraph in _PARAGRAPH_END.split(text):
        writer.text_block("pre" if re.search(r"^[ \t]{4,}", paragraph, re.M) else "p", paragraph)
    first = text.lstrip().partition("\n")[0].strip()
    return writer.html(DocumentMetadata(title=first if len(first) <= _MAX_FIRST_LINE else ""))


def convert_markdown(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return Markdown (CommonMark with tables) as HTML; HTML in it is shown as text.

    Needs the extra ``documents``.
    """
    from markdown_it import MarkdownIt  # an extra

    text = _decoded(body, headers)
    front = _FRONT_MATTER.match(text)
    fields: dict[str, str] = {}
    if front is not None:
        text = text[front.end() :]
        for line in front[1].split("\n"):
            if found := _FIELD.match(line):
                fields[found[1].lower()] = found[2].strip().strip("\"'")
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("text", _render_text)
    writer = MarkupWriter()
    rendered = parser.render(text)
    writer.raw(rendered)
    heading = re.search(r"<h1>(.{1,2000}?)</h1>", rendered, re.S)
    if heading is not None:
        writer.first_heading = re.sub("<[^>]*>", "", heading[1])
    return writer.html(
        DocumentMetadata(
            title=fields.get("title", ""),
            authors=[fields["author"]] if "author" in fields else [],
            published=fields.get("date", ""),
            language=fields.get("lang", "") or fields.get("language", ""),
            description=fields.get("description", ""),
        )
    )


def convert_latex(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the text of a LaTeX source as HTML; no file that it names is read.

    Raises DocumentError for sources that cannot be parsed. Needs the extra ``documents``.
    """
    from pylatexenc.latex2text import LatexNodes2Text  # an extra
    from pylatexenc.latexwalker import LatexWalker

    decoded = _decoded(body, headers).replace("\ue000", "").replace("\ue001", "")
    source = _LATEX_COMMENT.sub("", decoded)
    source = _LATEX_AND.sub(" and ", _LATEX_DROPPED.sub("", source))
    converter = LatexNodes2Text(math_mode="text", strict_latex_spaces=False)

    def plain(part: str) -> str:
        walker = LatexWalker(part, tolerant_parsing=True)
        walker.get_latex_nodes = _limit_depth(walker.get_latex_nodes)
        try:
            return str(converter.nodelist_to_text(walker.get_latex_nodes()[0]))
        except (ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
            raise DocumentError(FailureKind.DAMAGED, f"LaTeX: {error}"[:200]) from error

    fields = {
        name: plain(found[1])
        for name in ("title", "author", "date")
        if (found := re.search(_LATEX_FIELD % name, source))
    }
    inside = _LATEX_BODY.search(source)
    text = source if inside is None else inside[1]
    inserted: list[tuple[str, str, str]] = []  # tag, text, target

    def mark_link(match: re.Match[str]) -> str:
        target = _ESCAPED.sub(r"\1", match[1] or match[3])
        inserted.append(("a", match[2] if match[1] else target, target.strip()))
        return _MARK.format(len(inserted) - 1)

    def mark_section(match: re.Match[str]) -> str:
        inserted.append((f"h{_LATEX_LEVELS[match[1]]}", match[2], ""))
        return f"\n\n{_MARK.format(len(inserted) - 1)}\n\n"

    text = _LATEX_SECTION.sub(mark_section, _LATEX_LINK.sub(mark_link, text))
    writer = MarkupWriter()
    title = " ".join(fields.get("title", "").split())
    writer.text_block("h1", title)
    for paragraph in _PARAGRAPH_END.split(plain(text)):
        _write_latex(writer, paragraph, inserted, plain)
    return writer.html(
        DocumentMetadata(
            title=title,
            authors=[name for name in re.split(r"\s+and\s+|\n", fields.get("author", "")) if name],
            published=fields.get("date", ""),
        )
    )


def _limit_depth(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that parses a nested part of a LaTeX source, as long as it isn't too deep.

    Waiting for Python's limit is no way: Python 3.11 ends the process if the parser's handlers
    of errors run into the limit again.
    """
    depth = 0

    def parse_part(*given: Any, **named: Any) -> Any:
        nonlocal depth
        if depth >= _MAX_LATEX_DEPTH:
            raise DocumentError(FailureKind.DAMAGED, "LaTeX nested too deeply")
        depth += 1
        try:
            return parse(*given, **named)
        finally:
            depth -= 1

    return parse_part


def _decoded(body: bytes, headers: Mapping[str, str]) -> str:
    text, _ = decode(body[:MAX_PARSED_BYTES], headers)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _render_text(
    renderer: Any, tokens: Sequence[Any], index: int, options: object, env: object
) -> str:
    """Render a text of Markdown, with links for the URLs in it."""
    text: str = tokens[index].content
    if index and tokens[index - 1].type == "link_open":
        return escape(text)
    pieces, end = [], 0
    for start, stop, url in find_urls(text):
        link = f'<a href="{escape(url)}">{escape(text[start:stop])}</a>'
        pieces += [escape(text[end:start]), link]
        end = stop
    return "".join([*pieces, escape(text[end:])])


def _write_latex(
    writer: MarkupWriter,
    paragraph: str,
    inserted: Sequence[tuple[str, str, str]],
    plain: Callable[[str], str],
) -> None:
    """Write a converted paragraph, with the links and headings that its marks stand for."""
    tag, runs = "p", list[Run]()
    pieces = deque(_split_marks(paragraph))
    while pieces:
        piece = pieces.popleft()
        kind, text, target = ("", piece, "") if isinstance(piece, str) else inserted[piece[0]]
        if kind == "a":
            runs.append((text if text.strip() == target else plain(text), target))
        elif kind:
            tag = kind
            pieces.extendleft(reversed(_split_marks(plain(text))))  # a heading with links
        else:
            runs.append((text, None))
    writer.block(tag, runs)


def _split_marks(text: str) -> list[str | tuple[int]]:
    """Return the texts between marks, and the numbers of the marks."""
    found = _MARKED.split(" ".join(text.split()))
    return [(int(piece),) if place % 2 else piece for place, piece in enumerate(found)]
