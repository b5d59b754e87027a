"""Read the entries of sitemaps, RSS and Atom feeds as a stream.

No network access and no entities; no tree is built, since a few kilobytes of gzip can hold millions
of elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any, NamedTuple

from lxml import etree

from focused.web.decoding import media_type
from focused.web.http_response import parse_date_time, timestamp_of
from focused.web.urls import normalize_url

MAX_ELEMENTS = 1_000_000
"""Elements of one document at most; the rest is ignored. A full sitemap has 250,000."""
MAX_UNCLOSED_TAGS = 1_000
_UNCLOSED_TAG = re.compile(r"<(?=[^!?/<>][^<>]*+(?:<|\Z))")
_CHUNK_CHARS = 65_536


def feed_target(xml: str, target: Any) -> Iterator[None]:
    """Pass a document to ``target``; yield after each piece of 65,536 characters.

    ``target`` has the methods of lxml's parser targets, and ``left``: how many elements it takes.

    Entities and DTDs are not read, and there is no network access. Errors are passed over as far
    as libxml2 can; after others, and when nothing is ``left`` to take, the rest is left out.
    """
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
    xml = escape_unclosed_tags(xml)
    try:
        for start in range(0, len(xml), _CHUNK_CHARS):
            parser.feed(xml[start : start + _CHUNK_CHARS].encode("utf-8", "replace"))
            yield
            if target.left <= 0:
                return
        parser.close()
    except (etree.XMLSyntaxError, UnicodeDecodeError):
        pass


def escape_unclosed_tags(xml: str) -> str:
    """Escape start tags without an end of a document that has more than 1,000 of them.

    The parser searches the rest of the document for the end of each.
    """
    if len(_UNCLOSED_TAG.findall(xml)) <= MAX_UNCLOSED_TAGS:
        return xml
    return _UNCLOSED_TAG.sub("&lt;", xml)


MAX_TITLE_CHARS = 300
SUMMARY_CHARS = 2_000

_KEPT_CHARS = 8_000  # of one element's text
_MAX_OPEN = 100  # containers and entries; broken feeds nest entries

_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ENCODED = "{http://purl.org/rss/1.0/modules/content/}encoded"
_XHTML_BODY = "{http://www.w3.org/1999/xhtml}body"
_DC_DATE = "{http://purl.org/dc/elements/1.1/}date"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_PARENTS_OF_ENTRIES = {
    "url": frozenset({"urlset"}),
    "sitemap": frozenset({"sitemapindex"}),
    "item": frozenset({"channel", "RDF", "rss", "item"}),  # broken feeds leave items open
    "entry": frozenset({"feed", "entry"}),
}
_SUMMARIES = frozenset({"description", "summary", "content", "encoded", "body"})
_DATES = frozenset({"lastmod", "pubDate", "updated", "published", "modified", "date"})
_ENTRY_TAGS = _SUMMARIES | _DATES | {"loc", "link", "guid", "title"}
_CHANNEL_TAGS = frozenset({"title", "description", "subtitle", "tagline"})
_TEXT_TAGS = _SUMMARIES | _CHANNEL_TAGS
_ATOM = frozenset({"feed", "entry"})
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_ALTERNATE = frozenset({"alternate", "http://www.iana.org/assignments/relation/alternate"})
_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)

# fmt: off
_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "dfn", "em", "font", "i",
    "ins", "kbd", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "tt", "u", "var",
})
# fmt: on
_HIDDEN = frozenset({"script", "style", "template", "noscript", "iframe"})
_NOT_NAME = r"(?=[\s/>])"
_REST_OF_TAG = r"""(?:[^>"']++|"[^"]*+"|'[^']*+'|["'])*+>?"""
# HTML tags, but not "x < 5". Repetitions are possessive and unclosed tags reach to the end, so that
# matching takes linear time.
_MARKUP = re.compile(
    rf"<(?P<hidden>{'|'.join(sorted(_HIDDEN))}){_NOT_NAME}{_REST_OF_TAG}"
    rf".*?(?:</(?P=hidden){_NOT_NAME}{_REST_OF_TAG}|\Z)"
    rf"|<!--.*?(?:-->|\Z)|</?(?P<name>[a-z][^\s/>]*+){_REST_OF_TAG}|<[!/?][^>]*+>?",
    re.IGNORECASE | re.DOTALL,
)
# libxml2 accepts these, and lxml then fails.
_SURROGATE = re.compile(r"&#(?:[xX]0{0,20}[dD][89a-fA-F][0-9a-fA-F]{2}|0{0,20}5[5-7][0-9]{3});")


@dataclass(slots=True)
class FeedEntry:
    """One entry of a feed; its URLs are absolute and normalised.

    ``fallback_url`` is used without a ``url``: a permanent guid, a link to a format other than
    HTML, or the URL of external content. ``changed_at`` is the latest readable time of the entry in
    seconds since the epoch. ``continues_list``: the URL is not a page's, but of the rest of the
    list.
    """

    url: str = ""
    fallback_url: str = ""
    title: str = ""
    summary: str = ""
    changed_at: float | None = None
    continues_list: bool = False

    @property
    def target(self) -> str:
        """The URL of the entry's page, or ``""``."""
        return self.url or self.fallback_url


class _OpenElement(NamedTuple):
    """An open element whose children matter; they belong to ``entry``."""

    namespace: str
    name: str
    base: str
    entry: FeedEntry


def read_entries(xml: str, channel: FeedEntry, url: str) -> Iterator[FeedEntry]:
    """Yield the entries in order; text outside of them goes to ``channel``.

    ``xml`` begins at the root; ``url`` is the document's own. Only children in the entry's own
    namespace or none are read. Never raises: truncated XML gives the entries before the break, the
    last one if its URL is complete.
    """
    reader = _EntryReader(channel, url)
    for _ in feed_target(_SURROGATE.sub("&#xFFFD;", xml), reader):
        yield from reader.take()
    reader.break_off()
    yield from reader.take()


class _EntryReader:
    """Parser target that collects entries."""

    def __init__(self, channel: FeedEntry, url: str) -> None:
        self.left = MAX_ELEMENTS
        self._channel = channel
        self._url = url
        self._open: list[_OpenElement] = []
        self._done: list[FeedEntry] = []
        self._skipped = 0  # depth below an irrelevant element
        self._name = ""  # of the current text element
        self._attributes: Mapping[str, str] = {}
        self._depth = 0  # below the text element
        self._hidden = 0  # the depth at which a script or style element began, or 0
        self._pieces: list[str] = []
        self._chars = 0

    def take(self) -> list[FeedEntry]:
        """Return the entries that were completed since the last call."""
        done, self._done = self._done, []
        return done

    def break_off(self) -> None:
        """Handle the end of a truncated document: keep entries with a URL."""
        while self._open:
            self._close(self._open.pop(), needs_url=True)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle a start tag."""
        self.left -= 1
        if self._name:
            self._start_within(tag.rpartition("}")[2].lower())
        elif self._skipped:
            self._skipped += 1
        else:
            namespace, _, name = tag.rpartition("}")
            self._start_child(namespace[1:], name, tag, attributes)

    def _start_within(self, name: str) -> None:
        self._depth += 1
        if name in _HIDDEN and not self._hidden:
            self._hidden = self._depth
        if self._name in _TEXT_TAGS and name not in _INLINE:
            self._keep(" ")

    def _start_child(
        self, namespace: str, name: str, tag: str, attributes: Mapping[str, str]
    ) -> None:
        parent = self._open[-1] if self._open else None
        if parent is None:
            self._begin(namespace, name, attributes, self._channel)
        elif self._is_entry(name, namespace, parent) and len(self._open) < _MAX_OPEN:
            self._begin(namespace, name, attributes, FeedEntry())
        elif name == "channel" and parent.name in ("rss", "RDF"):
            self._begin(namespace, name, attributes, self._channel)
        elif tag in (_ENCODED, _XHTML_BODY, _DC_DATE) or (
            namespace in (parent.namespace, "")
            and name in (_CHANNEL_TAGS if parent.entry is self._channel else _ENTRY_TAGS)
        ):
            self._name, self._attributes = name, attributes
            self._depth, self._hidden, self._chars = 0, 0, 0
            self._pieces.clear()
        else:
            self._skipped = 1

    def _is_entry(self, name: str, namespace: str, parent: _OpenElement) -> bool:
        return parent.name in _PARENTS_OF_ENTRIES.get(name, ()) and (
            namespace in (parent.namespace, "") or parent.namespace == _RDF
        )

    def _begin(
        self, namespace: str, name: str, attributes: Mapping[str, str], entry: FeedEntry
    ) -> None:
        if self._open:
            outer = self._open[-1]
            if outer.entry is not self._channel:  # not closed: the next entry ends it
                self._close(outer, needs_url=True)
                self._open[-1] = outer._replace(entry=self._channel)
        base = self._base(attributes)
        self._open.append(_OpenElement(namespace, name, base, entry))

    def _base(self, attributes: Mapping[str, str]) -> str:
        base = self._open[-1].base if self._open else self._url
        xml_base = attributes.get(_XML_BASE)
        return (normalize_url(xml_base, base) if xml_base else None) or base

    def data(self, text: str) -> None:
        """Handle text; only a link's own text counts, not that of its children."""
        if self._name and not self._hidden and (self._depth == 0 or self._name in _TEXT_TAGS):
            self._keep(text)

    def end(self, tag: str) -> None:
        """Handle an end tag."""
        if self._name:
            if self._depth:
                if self._hidden == self._depth:
                    self._hidden = 0
                self._depth -= 1
            else:
                self._read()
                self._name = ""
        elif self._skipped:
            self._skipped -= 1
        elif self._open:
            self._close(self._open.pop())

    def close(self) -> None:
        """Handle the end of the document."""

    def _close(self, element: _OpenElement, *, needs_url: bool = False) -> None:
        entry = element.entry
        if entry is not self._channel and (entry.url or not needs_url):
            self._done.append(entry)

    def _keep(self, text: str) -> None:
        if text and self._chars < _KEPT_CHARS:
            self._pieces.append(text[:_KEPT_CHARS])
            self._chars += len(text)

    def _read(self) -> None:
        """Store the current element's text; the first of a kind counts."""
        parent, name, attributes = self._open[-1], self._name, self._attributes
        entry, text = parent.entry, "".join(self._pieces)
        if name in ("loc", "link"):
            self._read_link(entry, text.strip())
        elif name == "guid":
            if attributes.get("isPermaLink") != "false" and _ABSOLUTE.match(text.strip()):
                entry.fallback_url = entry.fallback_url or self._resolved(text.strip())
        elif name in _DATES:
            found = parse_feed_date(text)
            if found is not None:
                entry.changed_at = max(found, entry.changed_at or 0.0)
        elif name == "title":
            entry.title = entry.title or self._text(text, parent)[:MAX_TITLE_CHARS]
        elif name == "content" and "src" in attributes:
            entry.fallback_url = entry.fallback_url or self._resolved(attributes["src"])
        else:
            entry.summary = entry.summary or self._text(text, parent)

    def _read_link(self, entry: FeedEntry, text: str) -> None:
        if text:
            entry.url = entry.url or self._resolved(text)
        elif self._attributes.get("rel", "alternate").strip().lower() in _ALTERNATE:
            url = self._resolved(self._attributes.get("href", ""))
            if media_type(self._attributes.get("type", "")) in _HTML_TYPES:
                entry.url = entry.url or url
            else:
                entry.fallback_url = entry.fallback_url or url

    def _resolved(self, href: str) -> str:
        return normalize_url(href, self._base(self._attributes)) or "" if href else ""

    def _text(self, text: str, parent: _OpenElement) -> str:
        """Return a title or summary as plain text."""
        if parent.name in _ATOM:
            kind = media_type(self._attributes.get("type", "")) or "text"
            is_xml = kind.endswith("xml") or kind == "xhtml"
            if kind not in ("text", "html") and not kind.startswith("text/") and not is_xml:
                return ""
            # Atom 0.3 has a mode attribute: content that is not escaped is XML.
            if kind not in ("html", "text/html") or self._attributes.get("mode") == "xml":
                return " ".join(text[: 2 * SUMMARY_CHARS].split())[:SUMMARY_CHARS]
        return _strip_markup(text)


def _strip_markup(html: str) -> str:
    """Return the text of escaped HTML."""
    text = unescape(_MARKUP.sub(_tag_replacement, html[: 2 * SUMMARY_CHARS]))
    return " ".join(text.split())[:SUMMARY_CHARS]


def _tag_replacement(markup: re.Match[str]) -> str:
    return "" if (markup["name"] or "").lower() in _INLINE else " "


_MAX_DATE_CHARS = 50
_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?")


def parse_feed_date(text: str) -> float | None:
    """Return seconds since the epoch of a date in RFC 3339, RFC 822 or W3C format, or None.

    A date without time is its first moment, a time without zone is UTC. Never raises.
    """
    text = text.strip()[:_MAX_DATE_CHARS]
    if month := _YEAR_OR_MONTH.fullmatch(text):
        text = f"{month[1]}-{month[2] or '01'}-01"
    seconds = timestamp_of(parse_date_time(text))
    return None if seconds is None or seconds < 0 else seconds
