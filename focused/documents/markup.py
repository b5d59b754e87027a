"""Write HTML from the parts of a document: blocks, links and metadata, all escaped and limited."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from focused.web.decoding import MAX_PARSED_BYTES
from focused.web.html.declared_metadata import parse_date
from focused.web.html.text_structure import clean_line, clean_text

MAX_TEXT_CHARS = 1_000_000
"""Characters of text taken from a document; the rest is left out."""
MAX_LINKS = 20_000
"""Links taken from a document before those to one target are merged."""

_MAX_FIELD_CHARS = 500
_MAX_AUTHORS = 50
_MAX_URL_CHARS = 2_000
_TEXT_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'{}|\\^`\u201c\u201d]{3,2000}", re.I)
_DOI = re.compile(r"\bdoi:\s?(10\.\d{4,9}/[^\s<>\"']{1,200})", re.I)
_END_PUNCTUATION = ".,;:!?\u2026*_"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_WEB_SCHEMES = ("http://", "https://")

Run = tuple[str, str | None]
"""A piece of text, and the target of the link that it is, or None."""


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """What a document declares about itself; ``""`` and ``()`` if unknown.

    ``published`` and ``modified`` are dates in any notation that
    :func:`~focused.web.html.declared_metadata.parse_date` reads. ``language`` is a language tag.
    """

    title: str = ""
    authors: Sequence[str] = ()
    published: str = ""
    modified: str = ""
    language: str = ""
    description: str = ""
    licence: str = ""


class MarkupWriter:
    """Collects the blocks of a document as HTML, up to :data:`MAX_TEXT_CHARS` characters."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._chars = 0
        self._bytes = 0
        self._links = 0
        self.first_heading = ""
        """The text of the first heading."""

    @property
    def is_full(self) -> bool:
        """Whether more blocks are left out."""
        return self._chars >= MAX_TEXT_CHARS or self._bytes >= MAX_PARSED_BYTES

    def block(self, tag: str, runs: Iterable[Run], *, known_urls: Collection[str] = ()) -> None:
        """Add an element with text and links; URLs in the text become links, too.

        URLs of which one of ``known_urls`` is the continuation stay text.
        """
        if self.is_full:
            return
        inner = "".join(self._inline(text, target, known_urls) for text, target in runs)
        if not inner.strip():
            return
        if tag[0] == "h" and not self.first_heading:
            self.first_heading = clean_line(re.sub("<[^>]*>", "", inner), _MAX_FIELD_CHARS)
        self.raw(f"<{tag}>{inner}</{tag}>\n")

    def text_block(self, tag: str, text: str) -> None:
        """Add an element with text, in which URLs become links."""
        self.block(tag, [(text, None)])

    def link(self, target: str, text: str = "") -> None:
        """Add a link of its own, for one whose place in the text is unknown."""
        self.block("p", [(text or target, target)])

    def raw(self, markup: str) -> None:
        """Add markup that is safe already."""
        if not self.is_full:
            self._bytes += len(markup.encode("utf-8", "replace"))
            self._pieces.append(markup)

    def html(self, metadata: DocumentMetadata) -> bytes:
        """Return the document as HTML in UTF-8."""
        title = metadata.title.strip() or self.first_heading
        named = [
            *(("author", author) for author in metadata.authors[:_MAX_AUTHORS]),
            ("citation_publication_date", parse_date(metadata.published)),
            ("dcterms.modified", parse_date(metadata.modified)),
            ("description", metadata.description),
            ("dcterms.license", metadata.licence),
        ]
        cleaned = ((name, clean_line(value, _MAX_FIELD_CHARS)) for name, value in named)
        metas = "".join(
            f'<meta name="{name}" content="{escape(value)}">\n' for name, value in cleaned if value
        )
        language = re.match(r"[A-Za-z]{2,3}(?![A-Za-z])", metadata.language.strip())
        lang = f' lang="{language[0]}"' if language else ""
        heading = escape(clean_line(title, _MAX_FIELD_CHARS))
        head = (
            f"<!doctype html>\n<html{lang}><head><title>{heading}</title>\n{metas}</head><body>\n"
        )
        return (head + "".join(self._pieces) + "</body></html>\n").encode("utf-8", "replace")

    def _inline(self, text: str, target: str | None, known_urls: Collection[str]) -> str:
        text = clean_text(text[: MAX_TEXT_CHARS - self._chars])
        self._chars += len(text)
        if target is not None:
            return self._anchor(text, target)
        if "://" not in text and "www." not in text and "doi:" not in text.lower():
            return escape(text, quote=False)
        pieces, end = [], 0
        for start, stop, url in find_urls(text):
            if any(known.startswith(url) for known in known_urls):
                continue
            pieces += [escape(text[end:start], quote=False), self._anchor(text[start:stop], url)]
            end = stop
        return "".join([*pieces, escape(text[end:], quote=False)])

    def _anchor(self, text: str, target: str) -> str:
        shown = escape(text, quote=False)
        if self._links >= MAX_LINKS or not is_web_url(target):
            return shown
        self._links += 1
        return f'<a href="{escape(target.strip())}">{shown}</a>'


def is_web_url(target: str) -> bool:
    """Whether a target is an absolute HTTP URL of reasonable length."""
    return target.strip().lower().startswith(_WEB_SCHEMES) and len(target) <= _MAX_URL_CHARS


def find_urls(text: str) -> Iterable[tuple[int, int, str]]:
    """Yield start, end and target of each URL and DOI in a text, in order.

    Punctuation after a URL, and closing brackets that it does not open, are not part of it.
    """
    found = [(m.start(), *_trimmed(m)) for m in _TEXT_URL.finditer(text)]
    for match in _DOI.finditer(text):
        doi = _strip_end(match[1])
        found.append((match.start(), match.start(1) + len(doi), f"https://doi.org/{doi}"))
    end = 0
    for start, stop, url in sorted(found):
        if start >= end and stop > start:
            yield start, stop, url
            end = stop


def _trimmed(match: re.Match[str]) -> tuple[int, str]:
    url = _strip_end(match[0])
    stop = match.start() + len(url)
    if url.lower().startswith("www."):
        # "www." alone begins no host name.
        return (stop, f"http://{url}") if "." in url[4:] else (match.start(), "")
    return (stop, url) if url.partition("://")[2] else (match.start(), "")


def _strip_end(url: str) -> str:
    while url:
        last = url[-1]
        opening = _BRACKETS.get(last)
        if last in _END_PUNCTUATION or (opening and url.count(last) > url.count(opening)):
            url = url[:-1]
        else:
            break
    return url
