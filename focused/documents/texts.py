"""Convert plain text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from focused.documents.markup import DocumentMetadata, MarkupWriter, find_urls
from focused.web.decoding import MAX_PARSED_BYTES, decode

_MAX_FIRST_LINE = 120
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_FRONT_MATTER = re.compile(r"---[^\S\n]*+\n(.{0,10000}?)\n(?:---|\.\.\.)[^\S\n]*+\n", re.S)
_FIELD = re.compile(r"(title|author|date|lang|language|description)\s*+:\s*+(.{1,500})", re.I)


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
