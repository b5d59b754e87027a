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

from focused.web.feed_entries import (
    MAX_ELEMENTS,
    MAX_TITLE_CHARS,
    SUMMARY_CHARS,
    FeedEntry,
    feed_target,
    parse_feed_date,
)
from focused.web.urls import normalize_url

MAX_TARGETS = 3
"""URLs taken of one record: its landing page, and files."""

_MAX_TEXT_CHARS = 4_000
_MAX_TOKEN_CHARS = 1_500
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
class _Record:
    """One record, or the header of one; ``targets`` are absolute, normalised URLs."""

    identifier: str = ""
    datestamp: str = ""
    is_deleted: bool = False
    title: str = ""
    description: str = ""
    targets: list[str] = field(default_factory=list)
    doi: str = ""

    def read(self, tag: str, text: str) -> None:
        """Take the text of an element; the first one of a kind counts."""
        if tag == f"{_OAI}identifier":
            self.identifier = self.identifier or text
        elif tag == f"{_OAI}datestamp":
            self.datestamp = self.datestamp or text
        elif tag == f"{_DC}title":
            self.title = self.title or text
        elif tag == f"{_DC}description":
            self.description = self.description or text
        elif found := _DOI.fullmatch(text):
            self.doi = self.doi or found[1]
        elif _HTTP.match(text) and len(self.targets) < MAX_TARGETS:
            url = normalize_url(text)
            if url and url not in self.targets:
                self.targets.append(url)

    def entries(self) -> Iterator[FeedEntry]:
        """Yield an entry for each URL, or for the DOI of a record without any."""
        targets = self.targets
        if not targets and self.doi:
            targets = [normalize_url(f"https://doi.org/{quote(self.doi, safe='/()')}") or ""]
        for target in filter(None, targets):
            yield FeedEntry(
                target,
                title=self.title[:MAX_TITLE_CHARS],
                summary=self.description[:SUMMARY_CHARS],
                changed_at=parse_feed_date(self.datestamp),
            )


def read_oai_entries(xml: str, url: str) -> Iterator[FeedEntry]:
    """Yield the records with a URL, then the requests that follow; ``url`` is the response's own.

    ``ListRecords`` and ``GetRecord`` give records, ``ListIdentifiers`` a request for each record,
    ``Identify`` and a request without verb the one that begins the list; the request for the rest
    of a list comes last. Deleted records are left out. Never raises: a truncated response gives the
    records before the break.
    """
    reader = _Reader()
    for _ in feed_target(xml, reader):
        pass
    base = url.partition("?")[0]
    records = [record for record in reader.records if not record.is_deleted]
    for record in records:
        yield from record.entries()
    lists_identifiers = reader.verb == "ListIdentifiers"
    if reader.verb == "Identify" or (not reader.verb and reader.error in _NEEDS_VERB):
        yield _request(base, verb="ListRecords", **_PREFIX)
    for record in records if lists_identifiers else ():
        if record.identifier:
            yield _request(base, verb="GetRecord", identifier=record.identifier, **_PREFIX)
    if reader.token and (reader.records or lists_identifiers):
        onward = _request(base, verb=reader.verb, resumptionToken=reader.token)
        onward.continues_list = True
        yield onward


def _request(base: str, **arguments: str) -> FeedEntry:
    return FeedEntry(normalize_url(f"{base}?{urlencode(arguments)}") or "")


class _Reader:
    """Parser target that collects records."""

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS
        self.verb = ""
        self.error = ""
        self.token = ""
        self.records: list[_Record] = []
        self._record: _Record | None = None
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
                self._record = _Record()
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
            self._record.read(tag, text)

    def close(self) -> None:
        """Handle the end of the document."""
