"""From the bytes of a response to text that is safe to parse.

What type is it, whatever the server says; which charset; and is it markup
that a parser can take in linear time? Nothing here raises for any bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import endec
from resiliparse.parse.encoding import detect_mime

from focused.web.charset import detect, encoding_in_content_type, encoding_in_document

MAX_PARSED_BYTES = 2_000_000
MAX_DEPTH = 1_000
MAX_TAG_CHARS = 20_000

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
_UTF_16_START = (b"\xff\xfe", b"\xfe\xff", b"<\x00?\x00x\x00", b"\x00<\x00?\x00x")
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_JAPANESE_SHIFT = b"\x1b$"
_UTF8_SHARE = 10  # so many characters of UTF-8 for each error
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
    if body.startswith(_UTF_16_START):
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
    """Return the text of a body and its encoding, named as by the Encoding Standard.

    The order is the HTML standard's: byte order mark, Content-Type header,
    declaration in the document. A document without any of them is UTF-8 where
    its bytes are that, else what they look like, else windows-1252. Bytes
    that the encoding cannot read become U+FFFD.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return _decoded(body[len(bom) :], encoding), encoding
    declared = encoding_in_content_type(headers.get("content-type", "")) or encoding_in_document(
        body, is_html=content_type_of(headers) == "text/html"
    )
    if declared is not None:
        return _decoded(body, declared), declared
    if _JAPANESE_SHIFT not in body and (text := _as_utf8(body)) is not None:
        return text, "utf-8"
    encoding = detect(body)
    return _decoded(body, encoding), encoding


def _decoded(body: bytes, encoding: str) -> str:
    if encoding == "utf-8":
        return body.decode("utf-8", "replace")
    return endec.decode(body, encoding, errors="replace", bom="ignore")


def _as_utf8(body: bytes) -> str | None:
    """Return a body's text if it is UTF-8, a few errors or a cut end aside."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        text = body.decode("utf-8", "replace")
        if error.end == len(body) and error.reason == "unexpected end of data":
            return text
    errors = text.count("\N{REPLACEMENT CHARACTER}")
    others = len(text) - len(body.translate(None, _BEYOND_ASCII)) - errors
    return text if others > _UTF8_SHARE * errors else None


# Elements that the parser closes by itself, or that never hold anything.
# fmt: off
_UNCOUNTED = frozenset({
    "a", "area", "base", "body", "br", "caption", "col", "colgroup", "embed", "head", "hr",
    "html", "img", "input", "link", "meta", "p", "param", "source", "tbody", "td",
    "tfoot", "th", "thead", "tr", "track", "wbr",
})
# What the parser opens again in each block after one that left it open; without "a", a link.
_FORMATTING = frozenset({
    "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
})
# fmt: on
_RUBY = frozenset({"rb", "rp", "rt", "rtc"})
_ITEMS = {"li": "li", "dd": "dd", "dt": "dd"}  # each closes its like, and the other not
_OPTIONS = frozenset({"optgroup", "option"})
# Letters in both cases are faster here than re.IGNORECASE.
_FORMATTING_TAG = re.compile(
    "<(/?)(?=[bcefinstuBCEFINSTU])(?:{})[\\s/>]".format(
        "|".join("".join(f"[{c}{c.upper()}]" for c in name) for name in sorted(_FORMATTING))
    )
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*>?")
_ANY_TAG = re.compile(r"<[a-zA-Z][^>]*+>?")
_SELF_CLOSED = re.compile(
    r"<(a|div|iframe|p|script|span|style|textarea|title|td|th|li|i|b|em)\b([^<>]*)/>",
    re.IGNORECASE,
)
_MIN_SUSPICIOUS_TAGS = 1_000
_SUSPICIOUS_TAGS = 10_000
_MAX_OPEN_FORMATTING = 10
_MAX_REPEATED_FORMATTING = 100_000
_MAX_OPTIONS = 1_000


def tame(html: str) -> str:
    """Return markup that an HTML parser takes in about linear time.

    HTML's rules make a parser walk the stack of open elements at each tag,
    and a tag's attributes at each attribute. Only documents that are large
    enough to hurt are looked at: in them, start tags nested deeper than 1,000
    are dropped (their text stays), and so are tags of 20,000 characters, tags
    of ruby annotations, of options after the first 1,000, of formatting
    within formatting, which the parser repeats in each block, and of items of
    definition lists directly in those of other lists, and the reverse.
    """
    half = MAX_TAG_CHARS // 2
    if any(html.find(">", i, i + half) < 0 for i in range(0, len(html) - half, half)):
        html = _ANY_TAG.sub(lambda tag: tag[0] if len(tag[0]) <= MAX_TAG_CHARS else "", html)
    tags = html.count("<")
    if tags < _MIN_SUSPICIOUS_TAGS:
        return html
    if tags < _SUSPICIOUS_TAGS and not _leaves_formatting_open(html):
        return html
    max_formatting = min(_MAX_OPEN_FORMATTING, _MAX_REPEATED_FORMATTING // tags)
    is_open: Counter[str] = Counter()
    depth = formatting = options = 0
    item = ""

    def keep(tag: re.Match[str]) -> str:
        nonlocal depth, formatting, options, item
        name = tag[2].lower()
        if name in _UNCOUNTED:
            return tag[0]
        if name in _OPTIONS:
            options += not tag[1]
            return tag[0] if options <= _MAX_OPTIONS else "\n"
        if name in _RUBY:
            return ""
        if name in _ITEMS:
            if item not in ("", _ITEMS[name]):
                return "\n"
            item = _ITEMS[name]
            return tag[0]
        item = ""
        formats = name in _FORMATTING
        if not tag[1]:
            if depth >= MAX_DEPTH or (formats and formatting >= max_formatting):
                return ""
            is_open[name] += 1
            depth += 1
            formatting += formats
        elif is_open[name]:
            is_open[name] -= 1
            depth -= 1
            formatting -= formats
        return tag[0]

    return _TAG.sub(keep, html)


def _leaves_formatting_open(html: str) -> bool:
    """Whether so much formatting is open at once that the parser might repeat it many times."""
    is_open = 0
    for closes in _FORMATTING_TAG.findall(html):
        is_open = max(0, is_open - 1) if closes else is_open + 1
        if is_open > _MAX_OPEN_FORMATTING:
            return True
    return False


def close_empty_elements(xhtml: str) -> str:
    """Write ``<script/>`` as ``<script></script>``: an HTML parser never sees the slash."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", xhtml)
