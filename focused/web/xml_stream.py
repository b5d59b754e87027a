"""Read untrusted XML as a stream: no tree is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

MAX_ELEMENTS = 1_000_000
"""Elements of one document at most; the rest is ignored. A full sitemap has 250,000."""
MAX_UNCLOSED_TAGS = 1_000
_UNCLOSED_TAG = re.compile(r"<(?=[^!?/<>][^<>]*+(?:<|\Z))")
_CHUNK_CHARS = 65_536


def feed_target(xml: str, target: Any) -> Iterator[None]:
    """Pass a document to ``target``; yield after each piece of 65,536 characters.

    ``target`` has the methods of lxml's parser targets, and ``left``: how many elements it takes.

    Entities and DTDs are not read, and there is no network access. Errors are passed over as far
    as libxml2 can; after others, and when nothing is ``left`` to take, the rest is left out.
    """
    parser = etree.XMLParser(
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
    xml = escape_unclosed_tags(xml)
    try:
        for start in range(0, len(xml), _CHUNK_CHARS):
            parser.feed(xml[start : start + _CHUNK_CHARS].encode("utf-8", "replace"))
            yield
            if target.left <= 0:
                return
        parser.close()
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        pass


def escape_unclosed_tags(xml: str) -> str:
    """Escape start tags without an end of a document that has more than 1,000 of them.

    The parser searches the rest of the document for the end of each.
    """
    if len(_UNCLOSED_TAG.findall(xml)) <= MAX_UNCLOSED_TAGS:
        return xml
    return _UNCLOSED_TAG.sub("&lt;", xml)
