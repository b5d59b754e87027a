"""The entries of sitemaps, RSS and Atom, read as a stream of bounded size.

No tree is built: a few kilobytes of gzip can hold millions of elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from lxml import etree

MAX_ELEMENTS = 1_000_000
"""Of one feed; what comes later is not read. A full sitemap (50,000 URLs) has 250,000."""

MAX_TITLE_CHARS = 300
SUMMARY_CHARS = 2_000

_KEPT_CHARS = 8_000  # of one element's text; as long as a link may be before it is normalised
_CHUNK_CHARS = 65_536
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_SUMMARIES = frozenset({"description", "summary", "content", "encoded"})
_READ = _SUMMARIES | {"loc", "link", "guid", "title"}
_MARKUP = re.compile(r"<[^<>]{0,1000}>")
# libxml2 lets these pass, and lxml then breaks off.
_SURROGATE = re.compile(r"&#(?:[xX]0{0,20}[dD][89a-fA-F][0-9a-fA-F]{2}|0{0,20}5[5-7][0-9]{3});")


@dataclass(slots=True)
class Entry:
    """What one entry of a feed says; ``url`` as it stands there."""

    url: str = ""
    permalink: str = ""
    title: str = ""
    summary: str = ""


def read_entries(xml: str, channel: Entry) -> Iterator[Entry]:
    """Yield the entries in order; what stands outside of them goes to ``channel``.

    ``xml`` begins at the root. Never raises: XML that breaks off gives the
    entries before the break, the last one if its URL is whole.
    """
    reader = _Reader(channel)
    target: Any = reader  # lxml's stubs want all optional methods
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        recover=True,
        huge_tree=False,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    xml = _SURROGATE.sub("&#xFFFD;", xml)
    try:
        for start in range(0, len(xml), _CHUNK_CHARS):
            parser.feed(xml[start : start + _CHUNK_CHARS].encode("utf-8", "replace"))
            yield from reader.take()
            if reader.left <= 0:
                return
        parser.close()
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        pass
    reader.break_off()
    yield from reader.take()


class _Reader:
    """Takes the parser's events; keeps the entry it is in, and one element's text."""

    def __init__(self, channel: Entry) -> None:
        self.left = MAX_ELEMENTS
        self._channel = channel
        self._entry: Entry | None = None
        self._done: list[Entry] = []
        self._name = ""  # of the element whose text is being kept
        self._attributes: Mapping[str, str] = {}
        self._depth = 0  # below that element
        self._pieces: list[str] = []
        self._chars = 0

    def take(self) -> list[Entry]:
        """Return the entries that are complete since the last time."""
        done, self._done = self._done, []
        return done

    def break_off(self) -> None:
        """Nothing comes after this; an entry that has begun is as good as what is known of it."""
        if self._entry is not None and self._entry.url:
            self._done.append(self._entry)
            self._entry = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self.left -= 1
        name = tag.rpartition("}")[2]
        if self._name:
            self._depth += 1
            self._keep(" " if self._name in _SUMMARIES else "")
        elif name in _ENTRIES:
            self._entry = Entry()
        elif name in _READ:
            self._name, self._attributes = name, attributes
            self._depth, self._chars = 0, 0
            self._pieces.clear()

    def data(self, text: str) -> None:
        """Text, or a piece of it; a link's is its own alone, not its children's."""
        if self._name and (self._depth == 0 or self._name in _SUMMARIES or self._name == "title"):
            self._keep(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        if self._depth:
            self._depth -= 1
        elif self._name:
            _read(
                self._name,
                "".join(self._pieces),
                self._attributes,
                self._channel if self._entry is None else self._entry,
            )
            self._name = ""
        elif self._entry is not None and tag.rpartition("}")[2] in _ENTRIES:
            self._done.append(self._entry)
            self._entry = None

    def close(self) -> None:
        """The document ends."""

    def _keep(self, text: str) -> None:
        if text and self._chars < _KEPT_CHARS:
            self._pieces.append(text[:_KEPT_CHARS])
            self._chars += len(text)


def _read(name: str, text: str, attributes: Mapping[str, str], into: Entry) -> None:
    stripped = text.strip()
    if name == "loc" or (name == "link" and stripped):
        into.url = into.url or stripped
    elif name == "link" and attributes.get("rel", "alternate") == "alternate":
        into.url = into.url or attributes.get("href", "")
    elif name == "guid" and attributes.get("isPermaLink") != "false":
        into.permalink = stripped
    elif name == "title":
        into.title = into.title or _plain(text)[:MAX_TITLE_CHARS]
    elif name in _SUMMARIES:
        into.summary = into.summary or _plain(text)


def _plain(markup: str) -> str:
    """Return the text of an entry's title or summary, which may be escaped HTML."""
    text = _MARKUP.sub(" ", unescape(markup[: 2 * SUMMARY_CHARS]))
    return " ".join(text.split())[:SUMMARY_CHARS]
