"""A page for people to look at: its readable text, and the original made harmless.

The original is shown in a frame that may do nothing: the answer's headers forbid scripts,
forms and all requests. What would ask for something in ways that no header
reaches (links, prefetching, refreshing) is taken out besides.
"""

from __future__ import annotations

import re

from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser

from focused.web.decode import MAX_PARSED_BYTES, decode, tame
from focused.web.page import Fetched

MAX_TEXT_CHARS = 20_000
"""Nobody reads more to say yes or no."""

_ACTIVE = (
    "script, link, meta, base, iframe, frame, frameset, object, embed, applet, portal, "
    "fencedframe, audio, video, source, track, template"
)
_ASKING = (
    "action", "background", "data", "formaction", "href", "ping", "poster", "src", "srcset",
    "srcdoc", "xlink:href",
)  # fmt: skip
_STYLE = (
    "<style>html{background:#fff;color:#222;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:1rem;overflow-wrap:anywhere}pre{overflow:auto}img{display:none}</style>"
)


def readable_text(fetched: Fetched) -> str:
    """The main text, paragraphs kept, at most :data:`MAX_TEXT_CHARS`; empty when there is none."""
    html = _html(fetched)
    text = extract_plain_text(html, main_content=True, alt_texts=False)
    if len(text) < 200:  # the heuristic found no article: everything that is visible
        text = extract_plain_text(html, main_content=False, alt_texts=False)
    text = re.sub(r"[^\S\n]*\n(?:[^\S\n]*\n)+", "\n\n", text).strip()
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} …"


def harmless_original(fetched: Fetched) -> bytes:
    """The page's own HTML in UTF-8, without what runs, loads or leads anywhere."""
    tree = LexborHTMLParser(_html(fetched))
    for node in tree.css(_ACTIVE):
        node.decompose()
    for node in tree.css("*"):
        for name in node.attributes:
            if name.lower() in _ASKING or name.lower().startswith("on"):
                del node.attrs[name]
    return f"<!doctype html><meta charset=utf-8>{_STYLE}{tree.html or ''}".encode(
        "utf-8", "replace"
    )


def _html(fetched: Fetched) -> str:
    text, _ = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    return tame(text)
