"""Letters of a query, in the charset of the page that the link stands on.

The URL standard's percent-encoding after encoding (section 1.3): a page in
windows-1251 that links to ``?q=дом`` means the bytes of windows-1251, and its
server reads no others. Paths and hosts are UTF-8 on any page.
"""

from __future__ import annotations

import codecs

_TRIMMED = "".join(map(chr, range(0x21)))  # by the URL parser, at either end
_LEFT_TO_THE_PARSER = frozenset(range(0x80)) - {0x0E, 0x0F, 0x1B}  # ISO-2022-JP shifts by these
_ESCAPES = {byte: f"%{byte:02X}" for byte in range(0x100) if byte not in _LEFT_TO_THE_PARSER}
_IN_UTF8 = ("utf-8", "utf-16-le", "utf-16-be")
# Where the standard's encoders differ from Python's (section 12 of its encodings, "encoder").
_REFERENCE = "%26%23{}%3B"
_INSTEAD = {
    "iso2022_jp": dict.fromkeys((0x0E, 0x0F, 0x1B), _REFERENCE.format(0xFFFD)),
    "gb18030": {0xE5E5: _REFERENCE.format(0xE5E5)},
    "cp932": {0xA5: "\\", 0x203E: "~", 0x2212: "\uff0d"},
    "euc_jp": {0xFF5E: "\u301c", 0xFF0D: "\u2212", 0x2225: "\u2016"},
}


def encode_query(url: str, charset: str) -> str:
    """Return ``url`` with what is beyond ASCII in its query escaped in ``charset``.

    ``charset`` is a Python codec's name. What it lacks becomes a character
    reference (``%26%231234%3B``), as in a form. The URL is not parsed: it may
    be relative, and may have a fragment.
    """
    instead = _INSTEAD.get(charset, {})
    if charset in _IN_UTF8 or (url.isascii() and not instead):
        return url
    rest, hash_, fragment = url.partition("#")
    start, mark, query = rest.lstrip(_TRIMMED).partition("?")
    escaped = (
        query.translate(instead)
        .encode(charset, "focused.web.query")
        .decode("latin-1")
        .translate(_ESCAPES)
    )
    return f"{start}{mark}{escaped}{hash_}{fragment}"


def _as_reference(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_REFERENCE.format(ord(char)) for char in lacking), error.end


codecs.register_error("focused.web.query", _as_reference)
