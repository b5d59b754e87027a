"""Letters of a query, in the charset of the page that the link stands on.

The URL standard's percent-encoding after encoding (section 1.3): a page in
windows-1251 that links to ``?q=дом`` means the bytes of windows-1251, and its
server reads no others. Paths and hosts are UTF-8 on any page.
"""

from __future__ import annotations

import re

import endec

_TRIMMED = "".join(map(chr, range(0x21)))  # by the URL parser, at either end
_LEFT_TO_THE_PARSER = frozenset(range(0x80)) - {0x0E, 0x0F, 0x1B}  # ISO-2022-JP shifts by these
_ESCAPES = {byte: f"%{byte:02X}" for byte in range(0x100) if byte not in _LEFT_TO_THE_PARSER}
_IN_UTF8 = frozenset({"utf-8", "utf-16le", "utf-16be", "replacement"})
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_query(url: str, charset: str) -> str:
    """Return ``url`` with what is beyond ASCII in its query escaped in ``charset``.

    ``charset`` is named as by the Encoding Standard. What it lacks becomes a
    character reference (``%26%231234%3B``), as in a form. The URL is not
    parsed: it may be relative, and may have a fragment.
    """
    if charset in _IN_UTF8 or (url.isascii() and charset != "iso-2022-jp"):
        return url
    rest, hash_, fragment = url.partition("#")
    start, mark, query = rest.lstrip(_TRIMMED).partition("?")
    query = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", query)
    query = query.translate({ord(char): _reference(char, charset) for char in set(query)})
    escaped = endec.encode(query, charset).decode("latin-1").translate(_ESCAPES)
    return f"{start}{mark}{escaped}{hash_}{fragment}"


def _reference(char: str, charset: str) -> str:
    """Return the escaped reference to a character that ``charset`` lacks, or the character."""
    encoded = endec.encode(char, charset, errors="xmlcharrefreplace")
    return f"%26%23{encoded[2:-1].decode()}%3B" if encoded.startswith(b"&#") else char
