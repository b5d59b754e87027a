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
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from lxml import etree

from focused.directory.dmoz_records import DmozRecord, dmoz_records
from focused.directory.entry import DirectoryEntry, category_path
from focused.directory.opening import CUT_OFF, DAMAGED, opened
from focused.directory.passed_over import PassedOver
from focused.web.url import normalise

UNREADABLE = "entries that could not be read"
MENDED = "entries that were not well-formed, read as far as they could be"
NOT_FETCHABLE = "entries whose address is not http or https"

_CHUNK_BYTES = 1 << 20
_DUBLIN_CORE = "{d}"
_RDF = "{r}"
_ID = re.compile(rb"""\sr:id\s*=\s*("[^"<]*"|'[^'<]*')""")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*[0-8bcef]|x0*1[0-9a-f]);")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_STRICT = etree.XMLParser(resolve_entities=False, no_network=True)
_LENIENT = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


def read_dmoz_content(path: Path, passed_over: PassedOver) -> Iterator[DirectoryEntry]:
    """The pages of a content dump, in order, in bounded memory.

    Raises :class:`ConfigurationError` when the file cannot be opened; whatever is wrong
    inside of it is counted in ``passed_over``.
    """
    category = ""
    for record in _records(path, passed_over):
        if record.kind == b"Topic":
            category = _topic(record)
        elif record.kind == b"ExternalPage":
            element = _element(record)
            if element is None:
                passed_over.add(path, UNREADABLE)
                continue
            entry = _entry(element, category)
            if entry is None:
                passed_over.add(path, _what_is_wrong(element))
                continue
            if element.get("mended"):
                passed_over.add(path, MENDED)
            yield entry


def symbolic_links(path: Path, passed_over: PassedOver) -> Iterator[tuple[str, str]]:
    """Pairs of a category and one that it lists as if it were a part of it.

    They are the ``symbolic`` elements of a structure dump, whatever their priority.
    """
    for record in _records(path, passed_over):
        if record.kind != b"Topic" or b"<symbolic" not in record.content:
            continue
        element = _element(record)
        if element is None:
            passed_over.add(path, UNREADABLE)
            continue
        source = _topic(record)
        for child in element.iterchildren("symbolic", "symbolic1", "symbolic2"):
            # "Typography:Top/Computers/Fonts": the name it has there, and where it leads.
            name, _, target = child.get(f"{_RDF}resource", "").partition(":Top/")
            if source and name and target:
                yield source, category_path(f"Top/{target}")


def _records(path: Path, passed_over: PassedOver) -> Iterator[DmozRecord]:
    with opened(path) as file:
        yield from dmoz_records(_chunks(path, file, passed_over))


def _chunks(path: Path, file: BufferedIOBase, passed_over: PassedOver) -> Iterator[bytes]:
    try:
        # read1: what comes before the place where a compressed file is damaged is given.
        while chunk := file.read1(_CHUNK_BYTES):
            yield chunk
    except (OSError, *DAMAGED):
        passed_over.add(path, CUT_OFF)


def _topic(record: DmozRecord) -> str:
    found = _ID.search(record.content)
    text = found[1][1:-1].decode("utf-8", "replace") if found else ""
    return category_path(html.unescape(text))


def _element(record: DmozRecord) -> etree._Element | None:
    """The record as XML, with attribute ``mended`` when it was none; None when nothing is left."""
    if record.is_whole:
        try:
            return etree.fromstring(_wrapped(record.content), _STRICT)[0]
        except etree.XMLSyntaxError:
            pass
    text = _CONTROLS.sub(" ", record.content.decode("utf-8", "replace"))
    try:
        wrapper = etree.fromstring(_wrapped(text.encode()), _LENIENT)
    except etree.XMLSyntaxError:
        return None
    if wrapper is None or not len(wrapper):
        return None
    wrapper[0].set("mended", "yes")
    return wrapper[0]


def _wrapped(content: bytes) -> bytes:
    return b'<x xmlns:r="r" xmlns:d="d">' + content + b"</x>"


def _entry(element: etree._Element, category: str) -> DirectoryEntry | None:
    category = category_path(_text(element, "topic")) or category
    url = normalise(element.get("about", "").strip())
    if url is None or not category:
        return None
    title, description = (
        _plain(_text(element, f"{_DUBLIN_CORE}{name}")) for name in ("Title", "Description")
    )
    return DirectoryEntry(category, url, title, description)


def _what_is_wrong(element: etree._Element) -> str:
    scheme = element.get("about", "").strip().partition(":")[0].lower()
    return UNREADABLE if scheme in ("", "http", "https") else NOT_FETCHABLE


def _text(element: etree._Element, tag: str) -> str:
    """The text of the record's first ``tag``: where tags are missing, it may lie anywhere."""
    wrapper = element.getparent()
    found = None if wrapper is None else next(wrapper.iter(tag), None)
    return "" if found is None else found.text or ""


def _plain(text: str) -> str:
    """Text without the HTML that editors wrote into it, in one line."""
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _MARKUP.sub(" ", text)
    return " ".join(text.split())
