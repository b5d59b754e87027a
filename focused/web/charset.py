"""The character encoding of a document: as its label, its markup or its bytes tell it.

Encodings are named as the `Encoding Standard <https://encoding.spec.whatwg.org/>`_
names them, in lower case: ``utf-8``, ``windows-1252``, ``shift_jis``.
"""

from __future__ import annotations

import re

from chardetng_py import EncodingDetector
from webencodings.labels import LABELS

FALLBACK = "windows-1252"
UTF_16 = frozenset({"utf-16le", "utf-16be"})

# The standard encourages 1,024 bytes, and has the parser begin again at a later declaration.
_PRESCAN_BYTES = 16_384
_EXAMINED_BYTES = 262_144
_SAMPLE_BYTES = 8_192
_TRIMMED = "\t\n\f\r "

_UTF_16_XML = ((b"<\x00?\x00x\x00", "utf-16le"), (b"\x00<\x00?\x00x", "utf-16be"))
_XML_DECLARATION = re.compile(rb"<\?xml[^>]{0,1000}>")
_XML_ENCODING = re.compile(
    rb"encoding[\x00-\x20]*+=[\x00-\x20]*+(?:\"([^\"\x00-\x20]*+)\"|'([^'\x00-\x20]*+)')"
)
_PARAMETER = re.compile(r"(?:^|[;,\s])charset\s*+=\s*+(?:\"([^\"]*+)\"|([^\s;,]++))", re.IGNORECASE)
_ATTRIBUTE = (
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|(?=>)|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)))?+"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_TAG = re.compile(
    rb"<(?:(?P<meta>meta)(?=[\t\n\f\r /])|(?P<close>/?)(?P<name>[a-z][^\t\n\f\r >]*+))"
    rb"(?P<attributes>(?:" + _ATTRIBUTE + rb")*+)[\t\n\f\r /]*+(?P<end>>?)",
    re.IGNORECASE,
)
_META_CHARSET = re.compile(rb"charset[\t\n\f\r ]*+=[\t\n\f\r ]*+")
_META_LABEL = re.compile(rb"\"([^\"]*+)\"|'([^']*+)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*+)")
# Their text is no markup, which the standard's prescan overlooks and browsers do not.
_RAW_TEXT = {
    name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in (b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noframes")
}

# The first byte of a run of ASCII may be the second of a character.
_LONG_ASCII = re.compile(rb"([\x00-\x7f]{20})[\x00-\x7f]{40,}+")
_JAPANESE_SHIFT = b"\x1b$"
_PYTHON_NAMES = {"cp874": "windows-874"}  # that the detector gives, and the standard has not
_BEYOND_ASCII = bytes(range(0x80, 0x100))
# A pound or degree sign is not enough to tell windows-1252 from these.
_FEW_BYTES = 6
_NEEDS_MORE = re.compile(r"iso-8859-(?:[2349]|1\d)|windows-125[0478]")


def encoding_of_label(label: str) -> str | None:
    """Return the encoding that the standard gives a label, None for labels it does not have."""
    return LABELS.get(label.strip(_TRIMMED).lower()) if label.isascii() else None


def encoding_in_content_type(value: str) -> str | None:
    """Return the encoding of the first known ``charset`` in a Content-Type header."""
    for quoted, bare in _PARAMETER.findall(value):
        if encoding := encoding_of_label(quoted or bare.strip("'")):
            return encoding
    return None


def encoding_in_document(body: bytes, *, is_html: bool) -> str | None:
    """Return the encoding that a document without a byte order mark declares.

    HTML declares it by a meta element, and by an XML declaration if there is
    no such element; in other documents the XML declaration comes first.
    """
    for start, encoding in _UTF_16_XML:
        if body.startswith(start):
            return encoding
    if is_html:
        return _in_meta(body[:_PRESCAN_BYTES]) or _in_xml_declaration(body)
    return _in_xml_declaration(body) or _in_meta(body[:_PRESCAN_BYTES])


def detect(body: bytes) -> str:
    """Return the encoding that the bytes look like, :data:`FALLBACK` if they look like none.

    Of the first 256 KiB a sample of 8 KiB is examined, long runs of ASCII left out.
    """
    shift = body.find(_JAPANESE_SHIFT, 0, _EXAMINED_BYTES)
    if shift >= 0:
        sample = body[shift : shift + _SAMPLE_BYTES]
    else:
        sample = _LONG_ASCII.sub(rb"\1 ", body[:_EXAMINED_BYTES])[:_SAMPLE_BYTES]
    detector = EncodingDetector()
    detector.feed(sample, last=True)
    name = detector.guess(tld=None, allow_utf8=False)
    encoding = encoding_of_label(_PYTHON_NAMES.get(name, name)) or FALLBACK
    if _NEEDS_MORE.fullmatch(encoding):
        letters = len(sample) - len(sample.translate(None, _BEYOND_ASCII))
        return encoding if letters >= _FEW_BYTES else FALLBACK
    return encoding


def _in_meta(head: bytes) -> str | None:
    """Prescan a byte stream to determine its encoding (HTML standard, section 13.2.3.2)."""
    last = head.lower().rfind(b"charset")
    at = head.find(b"<", 0, last)
    while at >= 0:
        if head.startswith(b"<!--", at):
            at = _after(head, b"-->", at + 2)
        elif tag := _TAG.match(head, at):
            if not tag["end"]:
                return None
            at = tag.end()
            if tag["meta"]:
                if encoding := _of_meta(tag["attributes"]):
                    return encoding
            elif not tag["close"] and (raw := _RAW_TEXT.get(tag["name"].rstrip(b"/").lower())):
                end = raw.search(head, at)
                at = end.start() if end else last
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?"):
            at = _after(head, b">", at)
        else:
            at += 1
        at = head.find(b"<", at, last) if at >= 0 else -1
    return None


def _after(head: bytes, end: bytes, start: int) -> int:
    at = head.find(end, start)
    return at + len(end) if at >= 0 else -1


def _of_meta(attributes: bytes) -> str | None:
    told: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTES.findall(attributes):
        told.setdefault(name.lower(), b"".join(values).lower())
    if b"charset" in told:
        label = told[b"charset"]
    elif told.get(b"http-equiv") == b"content-type":
        label = _label_in_content(told.get(b"content", b""))
    else:
        return None
    encoding = encoding_of_label(label.decode("latin-1"))
    if encoding in UTF_16:  # who could read this declaration was not reading UTF-16
        return "utf-8"
    return FALLBACK if encoding == "x-user-defined" else encoding


def _label_in_content(content: bytes) -> bytes:
    """Extract a character encoding from a meta element (HTML standard, section 2.4.4)."""
    start = _META_CHARSET.search(content)
    label = _META_LABEL.match(content, start.end()) if start else None
    return b"".join(group or b"" for group in label.groups()) if label else b""


def _in_xml_declaration(body: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(body)
    found = _XML_ENCODING.search(declaration[0]) if declaration else None
    if found is None:
        return None
    encoding = encoding_of_label((found[1] or found[2] or b"").decode("latin-1"))
    return "utf-8" if encoding in UTF_16 else encoding
