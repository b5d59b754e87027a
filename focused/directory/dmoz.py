"""The RDF dumps of DMOZ and Curlie: ``content.rdf.u8`` has pages, ``structure.rdf.u8`` categories.

As in "ODP Data Dumps" and its list of changes (dmoz.org/rdf, 1999-2017). They are RDF by
name and XML nearly always: dumps before 2003 have text in other charsets than UTF-8 and
control characters. A record that is no XML is mended, and given up when no address is left
in it. What is used of a page: ``about``, ``d:Title``, ``d:Description``, and ``topic``, its
category; dumps before May 2003 lack the last, there it is that of the topic before it.
Priorities, dates, ages, and the lists of links in topics tell nothing more.

Of the structure only the symbolic links are used: what editors list in two places at once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from lxml import etree

from focused.directory.directory_entry import DirectoryEntry, SkippedRecords, normalise_category
from focused.directory.sample_files import DECOMPRESSION_ERRORS, TRUNCATED, open_sample_file
from focused.web.urls import normalise

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


def read_dmoz_content(path: Path, passed_over: SkippedRecords) -> Iterator[DirectoryEntry]:
    """The pages of a content dump, in order, in bounded memory.

    Raises :class:`ConfigurationError` when the file cannot be opened; whatever is wrong
    inside of it is counted in ``passed_over``.
    """
    category = ""
    for record in _records(path, passed_over):
        if record.kind == b"Topic":
            category = _topic_category(record)
        elif record.kind == b"ExternalPage":
            element = _parse_record(record)
            if element is None:
                passed_over.add(path, UNREADABLE)
                continue
            entry = _entry_from_element(element, category)
            if entry is None:
                passed_over.add(path, _skip_reason(element))
                continue
            if element.get("mended"):
                passed_over.add(path, REPAIRED)
            yield entry


def symbolic_links(path: Path, passed_over: SkippedRecords) -> Iterator[tuple[str, str]]:
    """Pairs of a category and one that it lists as if it were a part of it.

    They are the ``symbolic`` elements of a structure dump, whatever their priority.
    """
    for record in _records(path, passed_over):
        if record.kind != b"Topic" or b"<symbolic" not in record.content:
            continue
        element = _parse_record(record)
        if element is None:
            passed_over.add(path, UNREADABLE)
            continue
        source = _topic_category(record)
        for child in element.iterchildren("symbolic", "symbolic1", "symbolic2"):
            # "Typography:Top/Computers/Fonts": the name it has there, and where it leads.
            name, _, target = child.get(f"{_RDF}resource", "").partition(":Top/")
            if source and name and target:
                yield source, normalise_category(f"Top/{target}")


def _records(path: Path, passed_over: SkippedRecords) -> Iterator[DmozRecord]:
    with open_sample_file(path) as file:
        yield from split_records(_chunks(path, file, passed_over))


def _chunks(path: Path, file: BufferedIOBase, passed_over: SkippedRecords) -> Iterator[bytes]:
    try:
        # read1: what comes before the place where a compressed file is damaged is given.
        while chunk := file.read1(_CHUNK_BYTES):
            yield chunk
    except (OSError, *DECOMPRESSION_ERRORS):
        passed_over.add(path, TRUNCATED)


def _topic_category(record: DmozRecord) -> str:
    found = _TOPIC_ID.search(record.content)
    text = found[1][1:-1].decode("utf-8", "replace") if found else ""
    return normalise_category(html.unescape(text))


def _parse_record(record: DmozRecord) -> etree._Element | None:
    """The record as XML, with attribute ``mended`` when it was none; None when nothing is left."""
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
    url = normalise(element.get("about", "").strip())
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
    """The text of the record's first ``tag``: where tags are missing, it may lie anywhere."""
    wrapper = element.getparent()
    found = None if wrapper is None else next(wrapper.iter(tag), None)
    return "" if found is None else found.text or ""


def _strip_html(text: str) -> str:
    """Text without the HTML that editors wrote into it, in one line."""
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _MARKUP.sub(" ", text)
    return " ".join(text.split())


MAX_RECORD_BYTES = 1_000_000

# Topic is a record, topic an element of one: case tells them apart.
_RECORD_TAG = re.compile(rb"<(/?)(ExternalPage|Topic|Alias)(?=[\s/>])")
_TAIL_BYTES = len(b"</ExternalPage>") - 1


@dataclass(frozen=True, slots=True)
class DmozRecord:
    """``kind`` is the element's name; ``is_whole`` tells whether its end tag came."""

    kind: bytes
    content: bytes
    is_whole: bool


def split_records(chunks: Iterable[bytes]) -> Iterator[DmozRecord]:
    """The records in a stream of bytes; what stands between them is skipped.

    Of one longer than :data:`MAX_RECORD_BYTES` the beginning is given, as not whole, so
    memory is bounded by that and the largest chunk.
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
        # A tag that the chunk's end cut in two is found with the next chunk.
        searched = max(len(rest) - _TAIL_BYTES, len(kind) + 1 if kind else 0)
    if kind:
        yield DmozRecord(kind, rest, is_whole=False)
