"""A parser of untrusted XML that builds no tree."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

MAX_UNCLOSED_TAGS = 1_000
_UNCLOSED_TAG = re.compile(r"<(?=[^!?/<>][^<>]*+(?:<|\Z))")


def escape_unclosed_tags(xml: str) -> str:
    """Escape start tags without an end of a document that has more than 1,000 of them.

    The parser searches the rest of the document for the end of each.
    """
    if len(_UNCLOSED_TAG.findall(xml)) <= MAX_UNCLOSED_TAGS:
        return xml
    return _UNCLOSED_TAG.sub("&lt;", xml)


def make_stream_parser(target: Any) -> Any:
    """Return a parser that calls ``target``, without entities, DTDs and network access.

    Feed it UTF-8. It recovers from errors as far as libxml2 can; ``feed`` and ``close`` may raise
    XMLSyntaxError and UnicodeDecodeError.
    """
    return etree.XMLParser(
        target=target,
        encoding="utf-8",
        recover=True,
        huge_tree=False,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
