"""From the bytes of a response to text that is safe to parse.

What type is it, whatever the server says; which charset; and is it markup
that a parser can take in linear time? Nothing here raises for any bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from resiliparse.parse.encoding import (
    detect_encoding,
    detect_mime,
    map_encoding_to_html5,
)

MAX_PARSED_BYTES = 2_000_000
MAX_DEPTH = 1_000
MAX_TAG_CHARS = 50_000

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# What browsers mean by a label is more than Python's codec of that name has.
_WIDER = {
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-11": "cp874",
}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)"
    rb"|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']\s*([A-Za-z0-9_.:-]+)",
    re.IGNORECASE,
)
_DECLARED_WITHIN_BYTES = 4_096  # WHATWG says 1,024; real heads are longer
_SAMPLE_BYTES = 16_384

# Atomic groups: a run of comments must not be tried in all its divisions.
_HTML_START = re.compile(
    rb"(?>\s*<!--.{0,2000}?-->)*+\s*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML_START = re.compile(rb"\s*<\?xml\b")
_HTML_ANYWHERE = re.compile(
    rb"<(?:!doctype|html|head|title|meta|body|p|a|div|table|h[1-6]|br|pre|ul|script|center|font)\b",
    re.IGNORECASE,
)
# Control characters that no charset of the Web's text uses; ESC belongs to ISO-2022-JP.
_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\f\r\x1b")
_MAX_CONTROL_SHARE = 0.02
_FEW_CONTROLS = 2
_NO_MAGIC = frozenset({"application/octet-stream", "application/xml", "application/xhtml+xml"})


def content_type_of(headers: Mapping[str, str]) -> str:
    """Return the media type in lower case without parameters, "" when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def sniff_type(body: bytes) -> str:
    """Return the media type that the bytes themselves speak for.

    ``text/html`` and ``text/plain`` among text; a type of its own for known
    binary formats; ``application/octet-stream`` for other binary.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return sniff_type(decode(body[:_SAMPLE_BYTES], {})[0].encode("utf-8", "replace"))
    sample = body[:_SAMPLE_BYTES].removeprefix(b"\xef\xbb\xbf")
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls or sample.startswith(b"%PDF-"):
        # Magic numbers are believed with control characters only: "BM" can begin a sentence.
        magic = str(detect_mime(sample[:1_024]))
        if not magic.startswith("text/") and magic not in _NO_MAGIC:
            return magic
        if controls > max(_FEW_CONTROLS, _MAX_CONTROL_SHARE * len(sample)):
            return "application/octet-stream"
    if _HTML_START.match(sample):
        return "text/html"
    if _XML_START.match(sample):
        return "application/xml"
    return "text/html" if _HTML_ANYWHERE.search(sample) else "text/plain"


def decode(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the text of a body and the charset (a Python codec name) used for it.

    The order is WHATWG's: byte order mark, Content-Type header, declaration
    in the document, and only then a look at the bytes. Bytes that the charset
    cannot read become U+FFFD.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace"), name
    charset = _declared_charset(body, headers)
    if charset is None:
        try:
            return body.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            charset = _known(str(detect_encoding(body, max_len=_SAMPLE_BYTES))) or "cp1252"
    return body.decode(charset, "replace"), charset


def _declared_charset(body: bytes, headers: Mapping[str, str]) -> str | None:
    header = _CHARSET.search(headers.get("content-type", ""))
    if header and (charset := _known(header[1])):
        return charset
    declared = _DECLARED.search(body, 0, _DECLARED_WITHIN_BYTES)
    if declared and (charset := _known((declared[1] or declared[2]).decode("ascii"))):
        # Who could read this declaration was not reading UTF-16.
        return "utf-8" if charset.startswith("utf-16") else charset
    return None


def _known(label: str) -> str | None:
    charset: str | None = map_encoding_to_html5(label, False)
    return _WIDER.get(charset or "", charset)


# Elements that the parser closes by itself, or that never hold anything.
# fmt: off
_UNCOUNTED = frozenset({
    "a", "area", "base", "body", "br", "caption", "col", "colgroup", "dd", "dt", "embed", "head",
    "hr", "html", "img", "input", "li", "link", "meta", "nobr", "optgroup", "option", "p", "param",
    "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
})
# fmt: on
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*>?")
_ANY_TAG = re.compile(r"<[a-zA-Z][^>]*+>?")
_SELF_CLOSED = re.compile(
    r"<(a|div|iframe|p|script|span|style|textarea|title|td|th|li|i|b|em)\b([^<>]*)/>",
    re.IGNORECASE,
)
_SUSPICIOUS_TAGS = 10_000


def tame(html: str) -> str:
    """Return markup that an HTML parser takes in about linear time.

    HTML's rules make a parser walk the stack of open elements at each tag,
    and a tag's attributes at each attribute. Only documents that are large
    enough to hurt are looked at: in them, start tags nested deeper than 1,000
    are dropped (their text stays), and so are tags of 50,000 characters.
    """
    half = MAX_TAG_CHARS // 2
    if any(html.find(">", i, i + half) < 0 for i in range(0, len(html) - half, half)):
        html = _ANY_TAG.sub(lambda tag: tag[0] if len(tag[0]) <= MAX_TAG_CHARS else "", html)
    if html.count("<") < _SUSPICIOUS_TAGS:
        return html
    is_open: Counter[str] = Counter()
    depth = 0

    def keep(tag: re.Match[str]) -> str:
        nonlocal depth
        name = tag[2].lower()
        if name in _UNCOUNTED:
            return tag[0]
        if not tag[1]:
            if depth >= MAX_DEPTH:
                return ""
            is_open[name] += 1
            depth += 1
        elif is_open[name]:
            is_open[name] -= 1
            depth -= 1
        return tag[0]

    return _TAG.sub(keep, html)


def close_empty_elements(xhtml: str) -> str:
    """Write ``<script/>`` as ``<script></script>``: an HTML parser never sees the slash."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", xhtml)
