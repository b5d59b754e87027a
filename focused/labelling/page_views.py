"""Two views of a crawled page: its main text, and its sanitised HTML.

``nh3`` keeps an allowlist of text elements. It drops all attributes that can hold a URL, style or
script, and all elements whose content is not ordinary HTML (SVG, MathML, raw text), so that every
HTML parser understands the result alike.

Both functions take quadratic time for some input;
:class:`focused.labelling.page_renderer.PageRenderer` runs them with a deadline.
"""

from __future__ import annotations

import html
import re

import nh3
from resiliparse.extract.html2text import extract_plain_text

from focused.web.decoding import MAX_PARSED_BYTES, decode, limit_markup
from focused.web.page import Fetched

MAX_TEXT_CHARS = 20_000
"""More than anybody reads to answer."""

MAX_ORIGINAL_CHARS = 2_000_000
"""Limit of the sanitised HTML; escaping can make input five times as long."""

ORIGINAL_STYLE = (
    "html{background:#fff;color:#222;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:1rem;overflow-wrap:anywhere}pre{white-space:pre-wrap}"
    "table{border-collapse:collapse}td,th{padding:.1em .5em;text-align:start;vertical-align:top}"
)
"""The only style sheet of an original, allowed by its hash."""

# fmt: off
_ALLOWED_ELEMENTS = {
    "abbr", "address", "article", "aside", "b", "bdi", "bdo", "blockquote", "br", "caption", "cite",
    "code", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure",
    "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "i", "ins", "kbd",
    "li", "main", "mark", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section",
    "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th",
    "thead", "time", "tr", "u", "ul", "var", "wbr",
}
_DROPPED_WITH_CONTENT = {
    "applet", "audio", "canvas", "datalist", "embed", "iframe", "noembed", "noframes", "noscript",
    "object", "script", "select", "style", "svg", "template", "textarea", "title", "video",
}
# fmt: on
_CLEANER = nh3.Cleaner(
    tags=_ALLOWED_ELEMENTS,
    clean_content_tags=_DROPPED_WITH_CONTENT,
    attributes={
        "*": {"dir", "lang"},
        "td": {"colspan", "rowspan"},
        "th": {"colspan", "rowspan"},
    },
    url_schemes=set(),
    link_rel=None,
)


def readable_text(fetched: Fetched) -> str:
    """The main text with paragraphs, at most :data:`MAX_TEXT_CHARS`; may be empty."""
    markup = _decode_html(fetched)
    text = extract_plain_text(markup, main_content=True, alt_texts=False)
    if len(text) < 200:  # no article found: take all visible text
        text = extract_plain_text(markup, main_content=False, alt_texts=False)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} …"


def sanitised_html(fetched: Fetched) -> str:
    """The page's HTML without scripts, resources and links, for :func:`original_document`."""
    return _CLEANER.clean(_decode_html(fetched))[:MAX_ORIGINAL_CHARS]


def original_document(sanitised: str, problem: str = "") -> bytes:
    """The document that shows ``sanitised`` HTML below ``problem``."""
    warning = f"<p role=alert><strong>{html.escape(problem)}</strong></p>" if problem else ""
    head = f"<!doctype html><meta charset=utf-8><title>Original</title><style>{ORIGINAL_STYLE}"
    return f"{head}</style><body>{warning}{sanitised}".encode("utf-8", "replace")


def _decode_html(fetched: Fetched) -> str:
    text, _ = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    return limit_markup(text)
