"""The content of a changing web: edited pages, sitemaps, Atom feeds and robots.txt files.

Edits insert, replace and delete paragraphs of a page's HTML, hide links, and add boilerplate. All
functions are pure. The choices of an edit depend only on its key, so the same edits give the same
bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from focused_lab.recorded_web.recorded_web import RecordedResponse

_PARAGRAPH = re.compile(
    rb"<p(?:\s[^<>]*)?>[^<]*(?:<(?!/?p[\s>])[^<]*)*</p\s*>", re.IGNORECASE
)  # without nested and unclosed ones
_LINK = re.compile(
    rb"<a\s(?>[^<>]*?href\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))[^<>]*+>(.*?)</a\s*>",
    re.IGNORECASE | re.DOTALL,
)
_LINK_END = re.compile(rb"</a\s*>", re.IGNORECASE)
_LINK_START = re.compile(rb"<a\s", re.IGNORECASE)
_HEAD_LINK = re.compile(
    rb"<(?:link|area)\s(?>[^<>]*?href\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))[^<>]*+>",
    re.IGNORECASE,
)  # such as rel="next"
_HREF = re.compile(
    rb"<(?:a|link|area)\s[^<>]*?href\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))",
    re.IGNORECASE,
)
_END_OF_BODY = re.compile(rb"</body\s*>", re.IGNORECASE)
_START_OF_BODY = re.compile(rb"<body(?:\s[^<>]*)?>", re.IGNORECASE)
_END_OF_TITLE = re.compile(rb"</title\s*>", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>|&[#\w]+;")
_WORD = re.compile(rb"[A-Za-z0-9][A-Za-z0-9'._-]*[,.;:]?")

_MIN_DONOR_WORDS = 8
_MAX_DONOR_WORDS = 80
_SENTENCE_WORDS = (8, 16)
_MAX_PARAGRAPHS_PER_EDIT = 100
_GROWTH = 2
_EXTRA_PARAGRAPHS = 10
Words = tuple[bytes, ...]
"""The words of a paragraph."""
MAX_ENTRIES = 50
"""Of a feed."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a page; ``added`` and ``deleted`` are shares of its lines in [0, 1]."""

    key: str
    added: float
    deleted: float


def paragraph_words(body: bytes) -> list[Words]:
    """Return the words of each paragraph of an HTML page that has at least eight words."""
    found = (
        tuple(_WORD.findall(_TAG.sub(b" ", match[0]))[:_MAX_DONOR_WORDS])
        for match in _PARAGRAPH.finditer(body)
    )
    return [words for words in found if len(words) >= _MIN_DONOR_WORDS]


def link_targets(body: bytes) -> list[bytes]:
    """Return the ``href`` values of an HTML page as they are written."""
    return [_href(match) for match in _HREF.finditer(body)]


def apply_edits(body: bytes, edits: Sequence[Edit], donors: Sequence[Words]) -> bytes:
    """Return the page after the edits; new text consists of words of ``donors``.

    The number of inserted, replaced and deleted paragraphs is proportional to the shares of lines.
    Paragraphs with links stay, so that edits make no page unreachable. An edit that is too small
    for a paragraph adds a sentence to one, in place of the sentence of an earlier edit. A page
    without paragraphs gets them at its end.
    """
    if not edits:
        return body
    paragraphs = _EditedParagraphs(body, donors)
    for edit in edits:
        paragraphs.apply(edit)
    return paragraphs.render()


def remove_links(body: bytes, hidden: Container[bytes], unlinked: Container[bytes]) -> bytes:
    """Remove the links to ``hidden`` targets; keep only the text of those to ``unlinked`` ones.

    Targets are given as they are written in the page.
    """

    def replacement(match: re.Match[bytes]) -> bytes:
        target = _href(match)
        if target in hidden:
            return b""
        return match[4] if target in unlinked else match[0]

    def replacement_in_head(match: re.Match[bytes]) -> bytes:
        target = _href(match)
        return b"" if target in hidden or target in unlinked else match[0]

    end = max((match.end() for match in _LINK_END.finditer(body)), default=0)
    # Behind the last end tag each link would be searched for one to the end of the page.
    body = _LINK.sub(replacement, body[:end]) + body[end:]
    return _HEAD_LINK.sub(replacement_in_head, body)


def insert_at_top(body: bytes, html: bytes) -> bytes:
    """Insert HTML at the start of the page's body."""
    match = _START_OF_BODY.search(body)
    return _insert(body, 0 if match is None else match.end(), html)


def insert_at_end(body: bytes, html: bytes) -> bytes:
    """Insert HTML at the end of the page's body."""
    return _insert(body, _end_of_body(body), html)


def insert_in_head(body: bytes, html: bytes) -> bytes:
    """Insert HTML after the page's title; pages without a title stay unchanged."""
    match = _END_OF_TITLE.search(body)
    return body if match is None else _insert(body, match.end(), html)


def _insert(body: bytes, at: int, html: bytes) -> bytes:
    return body[:at] + html + body[at:]


def _end_of_body(body: bytes) -> int:
    ends = [match.start() for match in _END_OF_BODY.finditer(body)]
    return ends[-1] if ends else len(body)


def _href(match: re.Match[bytes]) -> bytes:
    return match[1] or match[2] or match[3] or b""


@dataclass(slots=True)
class _Paragraph:
    """A paragraph after the ``gap``-th piece of the page that is not a paragraph."""

    gap: int
    html: bytes
    sentence: bytes = b""


class _EditedParagraphs:
    """The paragraphs of a page that have no links, and what stands between them."""

    def __init__(self, body: bytes, donors: Sequence[Words]) -> None:
        self._donors = donors
        self._gaps: list[bytes] = []
        self._paragraphs: list[_Paragraph] = []
        end = 0
        for match in _PARAGRAPH.finditer(body):
            if _LINK_START.search(match[0]):
                continue
            self._paragraphs.append(_Paragraph(len(self._gaps), match[0]))
            self._gaps.append(body[end : match.start()])
            end = match.end()
        if not self._gaps:
            end = _end_of_body(body)
            self._gaps.append(body[:end])
        self._rest = body[end:]
        self._most = _GROWTH * len(self._paragraphs) + _EXTRA_PARAGRAPHS

    def apply(self, edit: Edit) -> None:
        """Apply one edit."""
        draw = random.Random(edit.key)
        size = max(1, len(self._paragraphs))
        added = min(round(edit.added * size), _MAX_PARAGRAPHS_PER_EDIT)
        deleted = min(round(edit.deleted * size), len(self._paragraphs))
        if not added and not deleted:
            self._edit_sentence(draw)
            return
        at = draw.randint(0, len(self._paragraphs) - deleted)
        kept = len(self._paragraphs) - deleted
        # Pages neither grow without end nor lose their last paragraph.
        added = max(min(added, self._most - kept), 0 if kept else 1)
        gap = self._gap_at(at)
        new = [_Paragraph(gap, self._new_paragraph(draw)) for _ in range(added)]
        for paragraph, old in zip(new, self._paragraphs[at : at + deleted], strict=False):
            paragraph.gap = old.gap
        self._paragraphs[at : at + deleted] = _in_order(new)

    def render(self) -> bytes:
        """Return the page."""
        pieces: list[bytes] = []
        paragraphs = iter(self._paragraphs)
        following = next(paragraphs, None)
        for number, gap in enumerate(self._gaps):
            pieces.append(gap)
            while following is not None and following.gap == number:
                pieces.append(following.html)
                pieces.append(following.sentence)
                following = next(paragraphs, None)
        pieces.append(self._rest)
        return b"".join(pieces)

    def _gap_at(self, at: int) -> int:
        if not self._paragraphs:
            return 0
        return self._paragraphs[min(at, len(self._paragraphs) - 1)].gap

    def _edit_sentence(self, draw: random.Random) -> None:
        words = self._words(draw)
        count = draw.randint(*_SENTENCE_WORDS)
        at = draw.randint(0, max(0, len(words) - count))
        sentence = b"<p>" + b" ".join(words[at : at + count]) + b".</p>\n"
        if not self._paragraphs:
            self._paragraphs.append(_Paragraph(0, b""))
        draw.choice(self._paragraphs).sentence = sentence

    def _new_paragraph(self, draw: random.Random) -> bytes:
        first, second = self._words(draw), self._words(draw)
        # Parts of two paragraphs: a version hardly ever repeats an earlier one.
        head = first[: draw.randint(len(first) // 2, len(first))]
        tail = second[draw.randint(0, len(second) // 2) :]
        return b"<p>" + b" ".join(head + tail) + b"</p>\n"

    def _words(self, draw: random.Random) -> Words:
        if self._donors:
            return draw.choice(self._donors)
        return (b"Revision", b"%d" % draw.randrange(10**9))


def _in_order(paragraphs: list[_Paragraph]) -> list[_Paragraph]:
    """Let no paragraph stand in a gap before that of its predecessor."""
    last = 0
    for paragraph in paragraphs:
        paragraph.gap = last = max(last, paragraph.gap)
    return paragraphs


@dataclass(frozen=True, slots=True)
class Announcement:
    """A page and its last announced change; ``is_new``: its creation."""

    url: str
    at: float
    is_new: bool
    title: str


def sitemap(announced: Sequence[Announcement]) -> bytes:
    """Return a sitemap with the time of the last announced change of each page."""
    urls = "".join(
        f"<url><loc>{escape(each.url)}</loc><lastmod>{_w3c_time(each.at)}</lastmod></url>\n"
        for each in announced
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
    ).encode()


def atom_feed(site: str, announced: Sequence[Announcement], start: float) -> bytes:
    """Return an Atom feed (RFC 4287) of the latest changes."""
    latest = sorted(announced, key=lambda each: (-each.at, each.url))[:MAX_ENTRIES]
    entries = "".join(
        f"<entry><id>{escape(each.url)}</id><title>{escape(each.title)}</title>"
        f'<link href="{escape(each.url, {chr(34): "&quot;"})}"/>'
        f"<updated>{_w3c_time(each.at)}</updated>"
        f"<summary>{'New page' if each.is_new else 'Changed page'}</summary></entry>\n"
        for each in latest
    )
    updated = latest[0].at if latest else start
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{escape(site)}</id><title>Changes</title><updated>{_w3c_time(updated)}</updated>\n"
        f"{entries}</feed>\n"
    ).encode()


def robots_with_sitemap(
    url: str, recorded: RecordedResponse | None, sitemap_url: str
) -> RecordedResponse:
    """Return the recorded robots.txt, or one that allows everything, with a Sitemap line."""
    rules = b"User-agent: *\nDisallow:\n"
    if recorded is not None and recorded.status == 200:
        rules = recorded.body.rstrip() + b"\n"
    body = rules + f"\nSitemap: {sitemap_url}\n".encode()
    return RecordedResponse(url, 200, {"content-type": "text/plain"}, body)


def _w3c_time(time: float) -> str:
    return datetime.fromtimestamp(int(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
