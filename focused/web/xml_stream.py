"""A parser of untrusted XML that builds no tree."""

from __future__ import annotations

from typing import Any

from lxml import etree


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
