"""Read OAI-PMH responses: the lists of records that repositories of papers offer.

Open Archives Initiative Protocol for Metadata Harvesting 2.0, https://www.openarchives.org/pmh/.
The records must be in Dublin Core (``oai_dc``), which every repository supports. XML is parsed as
a stream, without network access and without entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from lxml import etree

from focused.web.urls import normalize_url
from focused.web.xml_stream import escape_unclosed_tags, make_stream_parser

MAX_ELEMENTS = 1_000_000
"""Elements of one response at most; the rest is ignored."""

MAX_TARGETS = 3
"""URLs taken of one record: its landing page, and files."""

_MAX_TEXT_CHARS = 4_000
_MAX_TOKEN_CHARS = 1_500
_CHUNK_CHARS = 65_536
_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_PREFIX = {"metadataPrefix": "oai_dc"}
_TEXTS = frozenset(
    [f"{_DC}{name}" for name in ("title", "description", "identifier")]
    + [f"{_OAI}{name}" for name in ("identifier", "datestamp", "resumptionToken")]
)
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_DOI = re.compile(r"(?:doi:|info:doi/)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_NEEDS_VERB = frozenset({"badVerb", "badArgument"})


@dataclass(slots=True)
class OaiRecord:
    """One record, or the header of one.

    ``targets`` are absolute, normalised URLs; ``datestamp`` as the repository gives it.
    """

    identifier: str = ""
    datestamp: str = ""
    is_deleted: bool = False
    title: str = ""
    description: str = ""
    targets: list[str] = field(default_factory=list)
    doi: str = ""


@dataclass(slots=True)
class OaiResponse:
    """Records of one response, and ``onward``: the request for the rest of the list, or ``""``.

    Requests for single records and a request that begins a list are ``requests``.
    """

    records: list[OaiRecord] = field(default_factory=list)
    onward: str = ""
    requests: list[str] = field(default_factory=list)


def read_oai_response(xml: str, url: str) -> OaiResponse:
    """Return the records with a URL, and the requests that follow; ``url`` is the response's own.

    ``ListRecords`` and ``GetRecord`` give records, ``ListIdentifiers`` a request for each record,
    ``Identify`` and a request without verb the one that begins the list. Deleted records are left
    out. Never raises: a truncated response gives the records before the break.
    """
    reader = _Reader()
    parser = make_stream_parser(reader)
    xml = escape_unclosed_tags(xml)
    try:
        for start in range(0, len(xml), _CHUNK_CHARS):
            parser.feed(xml[start : start + _CHUNK_CHARS].encode("utf-8", "replace"))
            if reader.left <= 0:
                break
        else:
            parser.close()
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        pass
    return _response(reader, url.partition("?")[0])


def _response(reader: _Reader, base: str) -> OaiResponse:
    response = OaiResponse()
    if reader.verb == "Identify" or (not reader.verb and reader.error in _NEEDS_VERB):
        response.requests.append(_request(base, verb="ListRecords", **_PREFIX))
    for record in reader.records:
        if record.is_deleted:
            continue
        if reader.verb == "ListIdentifiers" and record.identifier:
            response.requests.append(
                _request(base, verb="GetRecord", identifier=record.identifier, **_PREFIX)
            )
        if not record.targets and record.doi:
            found = normalize_url(f"https://doi.org/{quote(record.doi, safe='/()')}")
            record.targets = [found] if found else []
        if record.targets:
            response.records.append(record)
    if reader.token and (reader.records or reader.verb == "ListIdentifiers"):
        response.onward = _request(base, verb=reader.verb, resumptionToken=reader.token)
    return response


def _request(base: str, **arguments: str) -> str:
    return normalize_url(f"{base}?{urlencode(arguments)}") or ""


class _Reader:
    """Parser target that collects records."""

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS
        self.verb = ""
        self.error = ""
        self.token = ""
        self.records: list[OaiRecord] = []
        self._record: OaiRecord | None = None
        self._depth = 0
        self._text_tag = ""
        self._pieces: list[str] = []
        self._chars = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle a start tag."""
        self.left -= 1
        self._depth += 1
        if self._depth == 2 and tag.startswith(_OAI):
            name = tag.removeprefix(_OAI)
            if name == "error":
                self.error = attributes.get("code", "")
            elif name not in ("responseDate", "request"):
                self.verb = name
        elif tag in (f"{_OAI}record", f"{_OAI}header"):
            if tag.endswith("}record") or self._depth == 3:
                self._record = OaiRecord()
                self.records.append(self._record)
            if attributes.get("status") == "deleted" and self._record is not None:
                self._record.is_deleted = True
        elif tag in _TEXTS:
            self._text_tag, self._chars = tag, 0
            self._pieces.clear()

    def data(self, text: str) -> None:
        """Handle text."""
        if self._text_tag and self._chars < _MAX_TEXT_CHARS:
            self._pieces.append(text)
            self._chars += len(text)

    def end(self, tag: str) -> None:
        """Handle an end tag."""
        self._depth -= 1
        if tag != self._text_tag:
            return
        self._text_tag = ""
        text = " ".join("".join(self._pieces).split())[:_MAX_TEXT_CHARS]
        if tag == f"{_OAI}resumptionToken":
            self.token = text if len(text) <= _MAX_TOKEN_CHARS else ""
        elif text and self._record is not None:
            _read_into(self._record, tag, text)

    def close(self) -> None:
        """Handle the end of the document."""


def _read_into(record: OaiRecord, tag: str, text: str) -> None:
    name = tag.rpartition("}")[2]
    if tag.startswith(_OAI):
        if name == "identifier":
            record.identifier = record.identifier or text
        else:
            record.datestamp = record.datestamp or text
    elif name == "title":
        record.title = record.title or text
    elif name == "description":
        record.description = record.description or text
    elif name == "identifier":
        if found := _DOI.fullmatch(text):
            record.doi = record.doi or found[1]
        elif _HTTP.match(text) and len(record.targets) < MAX_TARGETS:
            url = normalize_url(text)
            if url and url not in record.targets:
                record.targets.append(url)


def iterate_targets(response: OaiResponse) -> Iterator[tuple[str, OaiRecord]]:
    """Yield each URL of the records, in order."""
    for record in response.records:
        for target in record.targets:
            yield target, record
