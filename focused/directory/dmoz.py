"""RDF dumps of DMOZ and Curlie: pages in ``content.rdf.u8``, categories in ``structure.rdf.u8``.

See "ODP Data Dumps" (dmoz.org/rdf, 1999-2017). The dumps are nearly XML: those before 2003
contain other charsets than UTF-8 and control characters. Invalid records are repaired, or
skipped if no address is left. Of a page the reader uses ``about``, ``d:Title``,
``d:Description`` and ``topic``, its category; dumps before May 2003 lack ``topic``, and the
page has the category of the preceding topic. Of the structure it uses the symbolic links.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from lxml import etree

from focused.directory import DirectoryEntry, SkippedRecords, normalise_category
from focused.directory.sample_files import DECOMPRESSION_ERRORS, TRUNCATED, open_sample_file
from focused.web.urls import normalize_url

UNREADABLE = "entries that could not be read"
REPAIRED = "entries that were not well-formed, read as far as they could be"
NOT_FETCHABLE = "entries whose address is not http or https"

_CHUNK_BYTES = 1 << 20
_DUBLIN_CORE = "{d}"
_RDF = "{r}"
_TOPIC_ID = re.compile(rb"""\sr:id\s*=\s*("[^"<]*"|'[^'<]*')""")
_CONTROL_CHARS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*[0-8bcef]|x0*1[0-9a-f]);"
)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_STRICT_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)
_LENIENT_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


def read_dmoz_content(path: Path, skipped: SkippedRecords) -> Iterator[DirectoryEntry]:
    """Yield the pages of a content dump in order, in bounded memory.

    Raises :class:`ConfigurationError` if the file cannot be opened; damaged records are counted
    in ``skipped``.
    """
    category = ""
    for record in _records(path, skipped):
        if record.kind == b"Topic":
            category = _topic_category(record)
        elif record.kind == b"ExternalPage":
            element = _parse_record(record)
            if element is None:
                skipped.add(path, UNREADABLE)
                continue
            entry = _entry_from_element(element, category)
            if entry is None:
                skipped.add(path, _skip_reason(element))
                continue
            if element.get("mended"):
                skipped.add(path, REPAIRED)
            yield entry


def symbolic_links(path: Path, skipped: SkippedRecords) -> Iterator[tuple[str, str]]:
    """Yield pairs of a category and a category it links to symbolically.

    Reads the ``symbolic`` elements of a structure dump, of all priorities.
    """
    for record in _records(path, skipped):
        if record.kind != b"Topic" or b"<symbolic" not in record.content:
            continue
        element = _parse_record(record)
        if element is None:
            skipped.add(path, UNREADABLE)
            continue
        source = _topic_category(record)
        for child in element.iterchildren("symbolic", "symbolic1", "symbolic2"):
            # "Typography:Top/Computers/Fonts": displayed name and target.
            name, _, target = child.get(f"{_RDF}resource", "").partition(":Top/")
            if source and name and target:
                yield source, normalise_category(f"Top/{target}")


def _records(path: Path, skipped: SkippedRecords) -> Iterator[DmozRecord]:
    with open_sample_file(path) as file:
        yield from split_records(_chunks(path, file, skipped))


def _chunks(path: Path, file: BufferedIOBase, skipped: SkippedRecords) -> Iterator[bytes]:
    try:
        # read1 returns the data before a damaged position of a compressed file.
        while chunk := file.read1(_CHUNK_BYTES):
            yield chunk
    except (OSError, *DECOMPRESSION_ERRORS):
        skipped.add(path, TRUNCATED)


def _topic_category(record: DmozRecord) -> str:
    found = _TOPIC_ID.search(record.content)
    text = found[1][1:-1].decode("utf-8", "replace") if found else ""
    return normalise_category(html.unescape(text))


def _parse_record(record: DmozRecord) -> etree._Element | None:
    """Return the record as XML, with attribute ``mended`` if repaired; None if nothing is left."""
    if record.is_whole:
        try:
            return etree.fromstring(_wrap_record(record.content), _STRICT_PARSER)[0]
        except etree.XMLSyntaxError:
            pass
    text = _CONTROL_CHARS.sub(" ", record.content.decode("utf-8", "replace"))
    try:
        wrapper = etree.fromstring(_wrap_record(text.encode()), _LENIENT_PARSER)
    except etree.XMLSyntaxError:
        return None
    if wrapper is None or not len(wrapper):
        return None
    wrapper[0].set("mended", "yes")
    return wrapper[0]


def _wrap_record(content: bytes) -> bytes:
    return b'<x xmlns:r="r" xmlns:d="d">' + content + b"</x>"


def _entry_from_element(element: etree._Element, category: str) -> DirectoryEntry | None:
    category = normalise_category(_element_text(element, "topic")) or category
    url = normalize_url(element.get("about", "").strip())
    if url is None or not category:
        return None
    title, description = (
        _strip_html(_element_text(element, f"{_DUBLIN_CORE}{name}"))
        for name in ("Title", "Description")
    )
    return DirectoryEntry(category, url, title, description)


def _skip_reason(element: etree._Element) -> str:
    scheme = element.get("about", "").strip().partition(":")[0].lower()
    return UNREADABLE if scheme in ("", "http", "https") else NOT_FETCHABLE


def _element_text(element: etree._Element, tag: str) -> str:
    """Return the text of the record's first ``tag``, wherever it is in damaged markup."""
    wrapper = element.getparent()
    found = None if wrapper is None else next(wrapper.iter(tag), None)
    return "" if found is None else found.text or ""


def _strip_html(text: str) -> str:
    """Return text without HTML, on one line."""
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _MARKUP.sub(" ", text)
    return " ".join(text.split())


MAX_RECORD_BYTES = 1_000_000

# Topic is a record, topic an element of a page: the case differs.
_RECORD_TAG = re.compile(rb"<(/?)(ExternalPage|Topic|Alias)(?=[\s/>])")
_TAIL_BYTES = len(b"</ExternalPage>") - 1


@dataclass(frozen=True, slots=True)
class DmozRecord:
    """One record. ``kind`` is the element name; ``is_whole`` is True if the end tag was found."""

    kind: bytes
    content: bytes
    is_whole: bool


def split_records(chunks: Iterable[bytes]) -> Iterator[DmozRecord]:
    """Yield the records of a byte stream; text between them is skipped.

    A record longer than :data:`MAX_RECORD_BYTES` is truncated and not whole, so that memory is
    bounded by that size and the largest chunk.
    """
    rest, kind, searched = b"", b"", 0
    for chunk in chunks:
        rest += chunk
        start = 0
        for tag in _RECORD_TAG.finditer(rest, searched):
            opens = not tag[1]
            if kind and (opens or tag[2] == kind):
                end = tag.start() if opens else tag.end() + 1
                yield DmozRecord(kind, rest[start:end], is_whole=not opens)
                kind = b""
            if opens:
                start, kind = tag.start(), tag[2]
        if kind and len(rest) - start > MAX_RECORD_BYTES:
            yield DmozRecord(kind, rest[start : start + MAX_RECORD_BYTES], is_whole=False)
            kind = b""
        rest = rest[start:] if kind else rest[-_TAIL_BYTES:]
        # A tag cut by the chunk's end is found with the next chunk.
        searched = max(len(rest) - _TAIL_BYTES, len(kind) + 1 if kind else 0)
    if kind:
        yield DmozRecord(kind, rest, is_whole=False)
