"""Decode a response: media type, character encoding, and markup that a parser handles in linear
time.

Encodings have the names of the `Encoding Standard <https://encoding.spec.whatwg.org/>`_ in lower
case. Nothing here raises for any bytes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

import endec
from chardetng_py import EncodingDetector
from resiliparse.parse.encoding import detect_mime
from webencodings.labels import LABELS

from focused.kernels.markup_limits import limit_tags, scan_markup
from focused.web.page import Fetched

MAX_PARSED_BYTES = 2_000_000
MAX_DEPTH = 1_000
MAX_TAG_CHARS = 20_000

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
_UTF_16_START = (b"\xff\xfe", b"\xfe\xff", b"<\x00?\x00x\x00", b"\x00<\x00?\x00x")
_NON_ASCII_BYTES = bytes(range(0x80, 0x100))
_JAPANESE_SHIFT = b"\x1b$"
_UTF8_SHARE = 10  # characters for each error
_SAMPLE_BYTES = 16_384

# Possessive groups prevent backtracking over runs of comments.
_HTML_START = re.compile(
    rb"(?>\s*<!--.{0,2000}?-->)*+\s*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML_START = re.compile(rb"\s*<\?xml\b")
_HTML_ANYWHERE = re.compile(
    rb"<(?:!doctype|html|head|title|meta|body|p|a|div|table|h[1-6]|br|pre|ul|script|center|font)\b",
    re.IGNORECASE,
)
# Control characters that no charset of the Web uses for text; ISO-2022-JP uses ESC.
_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\f\r\x1b")
_MAX_CONTROL_SHARE = 0.02
_FEW_CONTROLS = 2
CONTINUATION_PATH = "OAI-PMH/resumptionToken"
"""Tag path of the link to the next part of a feed's list."""

FEED_ROOT = re.compile(
    r"\ufeff?\s*+(?>(?:<\?[^>]*+>|<!--.{0,2000}?-->|<![^>\[]*+(?:\[[^\]]*+\])?+[^>]*+>)\s*+)*+"
    r"(?P<root><)(?:[A-Za-z][\w.-]*:)?(urlset|sitemapindex|rss|feed|RDF|OAI-PMH)[\s>/]",
    re.DOTALL,
)
_FEED_NAME = re.compile(rb"[<:](?:urlset|sitemapindex|rss|feed|RDF|OAI-PMH)")
"""In the bytes of all that :data:`FEED_ROOT` matches, except in UTF-16, which has null bytes."""
_URL_LINE = re.compile(r"https?://\S+", re.IGNORECASE)
_FEED_START_BYTES = 4_096
GZIP_START = b"\x1f\x8b"
_NO_MAGIC = frozenset({"application/octet-stream", "application/xml", "application/xhtml+xml"})


def media_type_of(headers: Mapping[str, str]) -> str:
    """Return the lower-case media type without parameters, ``""`` without the header."""
    return media_type(headers.get("content-type", ""))


def media_type(declared: str) -> str:
    """Return the lower-case media type of a declaration, without its parameters."""
    return declared.partition(";")[0].strip().lower()


def sniff_media_type(body: bytes) -> str:
    """Return the media type that the bytes look like.

    Text is ``text/html`` or ``text/plain``; known binary formats have their own type, others
    ``application/octet-stream``.
    """
    if body.startswith(_UTF_16_START):
        return sniff_media_type(decode(body[:_SAMPLE_BYTES], {})[0].encode("utf-8", "replace"))
    sample = body[:_SAMPLE_BYTES].removeprefix(b"\xef\xbb\xbf")
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls or sample.startswith(b"%PDF-"):
        # Trust magic numbers only beside control characters: "BM" can begin a sentence.
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


def is_feed(fetched: Fetched) -> bool:
    """Whether a response begins like a sitemap or a feed."""
    return feed_kind(fetched) is not None


def feed_kind(fetched: Fetched) -> str | None:
    """Return the root element's name of a feed or sitemap, ``"text"`` for a list of URLs, or None.

    The body may be gzipped.
    """
    start = gunzip(fetched.body, _FEED_START_BYTES)
    is_html = media_type_of(fetched.headers) == "text/html"
    if is_html and b"\0" not in start and _FEED_NAME.search(start) is None:
        return None  # for most pages: decoding would have to guess their encoding
    text = decode(start, {})[0]
    root = FEED_ROOT.match(text)
    if root:
        return root[2]
    if is_html:
        return None
    lines = text.split("\n")[:-1] if len(start) >= _FEED_START_BYTES else text.split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    return "text" if lines and all(map(_URL_LINE.fullmatch, lines)) else None


def gunzip(body: bytes, max_bytes: int) -> bytes:
    """Return at most ``max_bytes`` of a body, decompressed if it is gzip."""
    if not body.startswith(GZIP_START):
        return body[:max_bytes]
    try:
        return zlib.decompressobj(wbits=31).decompress(body, max_bytes)
    except zlib.error:
        return b""


def decode(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the text of a body and its encoding.

    The order is that of the HTML standard: byte order mark, Content-Type header, declaration in the
    document. Without any of them the text is UTF-8 if it is valid, else the detected encoding, else
    windows-1252. Undecodable bytes become U+FFFD.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return _decode_as(body[len(bom) :], encoding), encoding
    declared = encoding_in_content_type(headers.get("content-type", "")) or encoding_in_document(
        body, is_html=media_type_of(headers) == "text/html"
    )
    if declared is not None:
        return _decode_as(body, declared), declared
    if _JAPANESE_SHIFT not in body and (text := _decode_if_utf8(body)) is not None:
        return text, "utf-8"
    encoding = detect_charset(body)
    return _decode_as(body, encoding), encoding


def _decode_as(body: bytes, encoding: str) -> str:
    if encoding == "utf-8":
        return body.decode("utf-8", "replace")
    return endec.decode(body, encoding, errors="replace", bom="ignore")


def _decode_if_utf8(body: bytes) -> str | None:
    """Return the text if the body is UTF-8, except for few errors or a cut end."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        text = body.decode("utf-8", "replace")
        if error.end == len(body) and error.reason == "unexpected end of data":
            return text
    errors = text.count("\N{REPLACEMENT CHARACTER}")
    others = len(text) - len(body.translate(None, _NON_ASCII_BYTES)) - errors
    return text if others > _UTF8_SHARE * errors else None


_ANY_TAG = re.compile(r"<[a-zA-Z][^>]*+>?")
_ROOT_TAG = re.compile(r"<(?:[hH][tT][mM][lL]|[bB][oO][dD][yY])(?=[\s/>])[^>]*+>?")
_SELF_CLOSED = re.compile(
    r"<(a|div|iframe|p|script|span|style|textarea|title|td|th|li|i|b|em)\b([^<>]*)/>",
    re.IGNORECASE,
)
_MIN_SUSPICIOUS_TAGS = 1_000
_SUSPICIOUS_TAGS = 10_000
_MAX_OPEN_FORMATTING = 10
_MAX_REPEATED_FORMATTING = 100_000
_MAX_OPTIONS = 1_000


def limit_markup(html: str) -> str:
    """Return markup that an HTML parser handles in about linear time.

    The parser walks the stack of open elements at each tag, and a tag's attributes at each
    attribute. In large documents this removes start tags nested deeper than 1,000 (their text
    stays), tags of more than 20,000 characters, ruby tags, options after the first 1,000,
    formatting within formatting, and items of definition lists directly in other lists and vice
    versa. The attributes of all ``html`` and ``body`` tags are merged: those beyond 20,000
    characters together are removed.
    """
    tags, most_open, root_chars = scan_markup(html)
    if root_chars > MAX_TAG_CHARS:
        html = _limit_root_tags(html)
    half = MAX_TAG_CHARS // 2
    if any(html.find(">", i, i + half) < 0 for i in range(0, len(html) - half, half)):
        html = _ANY_TAG.sub(lambda tag: tag[0] if len(tag[0]) <= MAX_TAG_CHARS else "", html)
    if tags < _MIN_SUSPICIOUS_TAGS:
        return html
    if tags < _SUSPICIOUS_TAGS and most_open <= _MAX_OPEN_FORMATTING:
        return html
    max_formatting = min(_MAX_OPEN_FORMATTING, _MAX_REPEATED_FORMATTING // tags)
    return limit_tags(html, MAX_DEPTH, max_formatting, _MAX_OPTIONS)


def _limit_root_tags(html: str) -> str:
    chars = 0

    def keep(tag: re.Match[str]) -> str:
        nonlocal chars
        chars += len(tag[0])
        return tag[0] if chars <= MAX_TAG_CHARS else ""

    return _ROOT_TAG.sub(keep, html)


def close_empty_elements(xhtml: str) -> str:
    """Write ``<script/>`` as ``<script></script>``, since HTML parsers ignore the slash."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", xhtml)


FALLBACK = "windows-1252"
UTF_16 = frozenset({"utf-16le", "utf-16be"})

# The standard encourages 1,024 bytes and a restart of the parser at a later declaration.
_PRESCAN_BYTES = 16_384
_DETECTION_BYTES = 262_144
_DETECTION_SAMPLE_BYTES = 8_192
_TRIMMED = "\t\n\f\r "

_UTF_16_XML = ((b"<\x00?\x00x\x00", "utf-16le"), (b"\x00<\x00?\x00x", "utf-16be"))
_XML_DECLARATION = re.compile(rb"<\?xml[^>]{0,1000}>")
_XML_ENCODING = re.compile(
    rb"encoding[\x00-\x20]*+=[\x00-\x20]*+(?:\"([^\"\x00-\x20]*+)\"|'([^'\x00-\x20]*+)')"
)
# The closing quote is missing now and then.
_PARAMETER = re.compile(r"(?:^|[;,\s])charset\s*+=\s*+\"?+\s*+([^\s;,\"]++)", re.IGNORECASE)
_ATTRIBUTE = (
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|(?=>)|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)))?+"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_TAG_BYTES = re.compile(
    rb"<(?:(?P<meta>meta)(?=[\t\n\f\r /])|(?P<close>/?)(?P<name>[a-z][^\t\n\f\r >]*+))"
    rb"(?P<attributes>(?:" + _ATTRIBUTE + rb")*+)[\t\n\f\r /]*+(?P<end>>?)",
    re.IGNORECASE,
)
_META_CHARSET = re.compile(rb"charset[\t\n\f\r ]*+=[\t\n\f\r ]*+")
_META_LABEL = re.compile(rb"\"([^\"]*+)\"|'([^']*+)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*+)")
# Elements whose text is no markup; the standard's prescan ignores this, browsers do not.
_RAW_TEXT = {
    name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in (b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noframes")
}

# The first byte of an ASCII run may be the second byte of a character.
_LONG_ASCII = re.compile(rb"([\x00-\x7f]{20})[\x00-\x7f]{40,}+")
_PYTHON_NAMES = {"cp874": "windows-874"}  # not in the standard
# A pound or degree sign is not enough to distinguish windows-1252 from these.
_MIN_NON_ASCII_BYTES = 6
_AMBIGUOUS_ENCODINGS = re.compile(r"iso-8859-(?:[2349]|1\d)|windows-125[0478]")


def encoding_of_label(label: str) -> str | None:
    """Return the encoding of a label of the standard, None for unknown labels."""
    return LABELS.get(label.strip(_TRIMMED).lower()) if label.isascii() else None


def encoding_in_content_type(value: str) -> str | None:
    """Return the encoding of the first known ``charset`` of a Content-Type header."""
    for label in _PARAMETER.findall(value):
        if encoding := encoding_of_label(label.strip("'")):
            return encoding
    return None


def encoding_in_document(body: bytes, *, is_html: bool) -> str | None:
    """Return the encoding that a document without byte order mark declares.

    In HTML a meta element comes before the XML declaration, in other documents after it.
    """
    for start, encoding in _UTF_16_XML:
        if body.startswith(start):
            return encoding
    if is_html:
        return _encoding_in_meta(body[:_PRESCAN_BYTES]) or _encoding_in_xml_declaration(body)
    return _encoding_in_xml_declaration(body) or _encoding_in_meta(body[:_PRESCAN_BYTES])


def detect_charset(body: bytes) -> str:
    """Return the encoding that the bytes look like, else :data:`FALLBACK`.

    Examines 8 KiB of the first 256 KiB, without long runs of ASCII.
    """
    shift = body.find(_JAPANESE_SHIFT, 0, _DETECTION_BYTES)
    if shift >= 0:
        sample = body[shift : shift + _DETECTION_SAMPLE_BYTES]
    else:
        sample = _LONG_ASCII.sub(rb"\1 ", body[:_DETECTION_BYTES])[:_DETECTION_SAMPLE_BYTES]
    detector = EncodingDetector()
    detector.feed(sample, last=True)
    name = detector.guess(tld=None, allow_utf8=False)
    encoding = encoding_of_label(_PYTHON_NAMES.get(name, name)) or FALLBACK
    if _AMBIGUOUS_ENCODINGS.fullmatch(encoding):
        letters = len(sample) - len(sample.translate(None, _NON_ASCII_BYTES))
        return encoding if letters >= _MIN_NON_ASCII_BYTES else FALLBACK
    return encoding


def _encoding_in_meta(head: bytes) -> str | None:
    """Prescan a byte stream for its encoding (HTML standard, section 13.2.3.2)."""
    last = head.lower().rfind(b"charset")
    at = head.find(b"<", 0, last)
    while at >= 0:
        if head.startswith(b"<!--", at):
            at = _index_after(head, b"-->", at + 2)
        elif tag := _TAG_BYTES.match(head, at):
            if not tag["end"]:
                return None
            at = tag.end()
            if tag["meta"]:
                if encoding := _encoding_of_meta(tag["attributes"]):
                    return encoding
            elif not tag["close"] and (raw := _RAW_TEXT.get(tag["name"].rstrip(b"/").lower())):
                end = raw.search(head, at)
                at = end.start() if end else last
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?"):
            at = _index_after(head, b">", at)
        else:
            at += 1
        at = head.find(b"<", at, last) if at >= 0 else -1
    return None


def _index_after(head: bytes, end: bytes, start: int) -> int:
    at = head.find(end, start)
    return at + len(end) if at >= 0 else -1


def _encoding_of_meta(attributes: bytes) -> str | None:
    attributes_by_name: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTES.findall(attributes):
        attributes_by_name.setdefault(name.lower(), b"".join(values).lower())
    if b"charset" in attributes_by_name:
        label = attributes_by_name[b"charset"]
    elif attributes_by_name.get(b"http-equiv") == b"content-type":
        label = _label_in_content(attributes_by_name.get(b"content", b""))
    else:
        return None
    encoding = encoding_of_label(label.decode("latin-1"))
    if encoding in UTF_16:  # a UTF-16 document could not have been read up to here
        return "utf-8"
    return FALLBACK if encoding == "x-user-defined" else encoding


def _label_in_content(content: bytes) -> bytes:
    """Extract the encoding from a meta element (HTML standard, section 2.4.4)."""
    start = _META_CHARSET.search(content)
    label = _META_LABEL.match(content, start.end()) if start else None
    return b"".join(group or b"" for group in label.groups()) if label else b""


def _encoding_in_xml_declaration(body: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(body)
    found = _XML_ENCODING.search(declaration[0]) if declaration else None
    if found is None:
        return None
    encoding = encoding_of_label((found[1] or found[2] or b"").decode("latin-1"))
    return "utf-8" if encoding in UTF_16 else encoding
