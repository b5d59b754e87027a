"""Convert PDF by PDFium: text in reading order, link annotations, declared metadata.

PDFium joins words that are hyphenated at the end of a line. Lines become paragraphs by their
lengths; headers, footers and page numbers are left out. Lines that the outline names are headings.

The title is the declared one, unless a program filled it in, else the text in the largest font of
the first page.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, NamedTuple

from focused.documents.convert import DocumentError
from focused.documents.markup import (
    MAX_LINKS,
    MAX_TEXT_CHARS,
    DocumentMetadata,
    MarkupWriter,
    Run,
    is_web_url,
)
from focused.web.page import FailureKind

MAX_PAGES = 5_000
"""Pages read; the rest of a document is left out."""

_END_MARK = b"%%EOF"
_END_BYTES = 4_096
_MAX_OUTLINE = 2_000
_OUTLINE_DEPTH = 6
_MAX_TITLE_CHARS = 300
_TITLE_FROM_CHARS = 3_000
_MIN_TITLE_LETTERS = 4
_MIN_SIZE_RATIO = 1.15
_SAME_SIZE = 0.95
_IMAGE_PAGES = 20
_MIN_REPEATS = 3
_MAX_MARGIN_LINES = 2
_MIN_ROW_NUMBERS = 2
_MAX_UNIT_LETTERS = 3
_SHORT_LINE = 0.8
_LINK_INSET = 0.25
_MAX_TRIED_PLACES = 20
_URI_BYTES = 4_096
_TEXT_FACTOR = 1.1  # headers and footers

_HYPHEN = "\ufffe"  # PDFium's sign for a hyphen at the end of a line, where it joins the word
_NUMBERS = re.compile(r"\b(?:\d+|[ivxlc]+)\b")
_LEADERS = re.compile(r"(?:\s?\.){4,}")
_PAGE_NUMBER = re.compile(
    r"\W*(?:page\s*)?(?:\d{1,5}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,5})?\W*", re.I
)
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[^\w\s]{0,2}\d[\d.,:/%\u2012-\u2015\u2212-]*[^\w\s]{0,2}")
_SECTION_NUMBER = re.compile(
    r"(?:(?:chapter|appendix|section)\s++)?(?:[A-Z]?[\d.]*\d|[A-Z]\b)?[.:)]?\s*", re.I
)
_HEADER_NUMBER = re.compile(r"\s+\d{1,5}$")
_BULLET = re.compile(r"\s*(?:[\u2022\u25aa\u25cf\u2013\u2014*-]\s|\(?\d{1,3}[.)]\s|\[\d{1,3}\]\s)")
_BULLET_SIGN = re.compile(r"\s*[\u2022\u25aa\u25cf]\s*")
_SENTENCE_END = re.compile(r"[.:;!?\u2026][\"')\]\u201d\u2019]*$")
# Between lines: inside a URL, and in scripts without spaces.
_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_NO_SPACE = re.compile(rf"^\n|(?:https?://|www\.)\S*[/\-_=?&.%]\n|{_UNSPACED}\n{_UNSPACED}", re.I)
_GENERATED_TITLE = re.compile(
    r"(?:microsoft (?:word|powerpoint) - .*|untitled.*|no title|title|document\d*|slide \d+"
    r"|.*\.(?:docx?|pptx?|tex|dvi|ps|pdf|indd|qxd|rtf|odt|p65|fm|html?))",
    re.I,
)
_DATE = re.compile(r"D?:?\s*(\d{4})(\d\d)?(\d\d)?")


class _PdfLink(NamedTuple):
    url: str
    anchor: str


class _PdfPage(NamedTuple):
    lines: list[str]
    links: list[_PdfLink]


def convert_pdf(body: bytes) -> bytes:
    """Return a PDF as HTML.

    Raises DocumentError for files that are encrypted, damaged or truncated, or hold only images.
    Needs the extra ``documents``.
    """
    import pypdfium2  # an extra

    if _END_MARK not in body[-_END_BYTES:]:
        raise DocumentError(FailureKind.DAMAGED, "truncated: the mark of the end is missing")
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        code = pypdfium2.raw.FPDF_GetLastError()
        if code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise DocumentError(FailureKind.ENCRYPTED, "the PDF has a password") from error
        raise DocumentError(FailureKind.DAMAGED, str(error)[:200]) from error
    with document:
        return _convert(document)


def _convert(document: Any) -> bytes:
    pages, largest = _read_pages(document)
    if not any(page.lines for page in pages):
        raise _no_text(document)
    declared = document.get_metadata_dict()
    title = _declared_title(declared.get("Title", "")) or largest
    writer = MarkupWriter()
    _write(writer, pages, _outline(document), title)
    return writer.html(
        DocumentMetadata(
            title=title,
            authors=_authors(declared.get("Author", "")),
            published=_date(declared.get("CreationDate", "")),
            modified=_date(declared.get("ModDate", "")),
            language=_language(document),
            description=declared.get("Subject", ""),
        )
    )


def _read_pages(document: Any) -> tuple[list[_PdfPage], str]:
    """Return the pages, and the text of the first page in the largest font."""
    import pypdfium2

    pages: list[_PdfPage] = []
    title, chars, links = "", 0, 0
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            continue
        try:
            textpage = page.get_textpage()
            text = textpage.get_text_range()
            found = list(_links(document, page, textpage, MAX_LINKS - links))
            if not pages:
                title = _largest_text(textpage)
        except pypdfium2.PdfiumError:
            continue
        finally:
            page.close()
        text = _LEADERS.sub(" ", text.replace(_HYPHEN, ""))
        lines = (" ".join(line.split()) for line in text.splitlines())
        pages.append(_PdfPage([line for line in lines if line], found))
        chars += len(text)
        links += len(found)
        if chars > _TEXT_FACTOR * MAX_TEXT_CHARS:
            break
    if not pages:
        raise DocumentError(FailureKind.DAMAGED, "no page can be read")
    return pages, title


def _links(document: Any, page: Any, textpage: Any, most: int) -> Iterator[_PdfLink]:
    """Yield the links of a page to the Web; one that is broken over lines comes in parts."""
    from pypdfium2 import raw

    position, link, rect = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    for _ in range(most):
        if not raw.FPDFLink_Enumerate(page, position, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        buffer = ctypes.create_string_buffer(_URI_BYTES)
        length = raw.FPDFAction_GetURIPath(document, action, buffer, _URI_BYTES)
        if not 0 < length <= _URI_BYTES or not raw.FPDFLink_GetAnnotRect(link, rect):
            continue
        url = buffer.value.decode("utf-8", "replace").strip()
        if is_web_url(url):
            # Descenders of the line above reach in.
            top = rect.top - _LINK_INSET * (rect.top - rect.bottom)
            text = textpage.get_text_bounded(rect.left, rect.bottom, rect.right, top)
            yield _PdfLink(url, " ".join(text.replace(_HYPHEN, "").split()))


def _largest_text(textpage: Any) -> str:
    """Return the lines in the largest font, ``""`` if it is not clearly larger than the rest."""
    from pypdfium2 import raw

    lines: list[tuple[list[float], list[str]]] = [([], [])]
    for index in range(min(textpage.count_chars(), _TITLE_FROM_CHARS)):
        char = chr(raw.FPDFText_GetUnicode(textpage, index))
        if char in "\r\n":
            lines.append(([], []))
            continue
        lines[-1][1].append(char)
        if char.isalpha():
            box = raw.FS_RECTF()
            # The box knows the scale of the page, which the size of the font does not.
            raw.FPDFText_GetLooseCharBox(textpage, index, box)
            lines[-1][0].append(round(box.top - box.bottom, 1))
    sized = [
        (sorted(sizes)[len(sizes) // 2], "".join(chars))
        for sizes, chars in lines
        if len(sizes) >= _MIN_TITLE_LETTERS
    ]
    if not sized:
        return ""
    letters: Counter[float] = Counter()
    for size, text in sized:
        letters[size] += len(text)
    usual = letters.most_common(1)[0][0]
    largest = max(size for size, _ in sized)
    if largest < _MIN_SIZE_RATIO * usual:
        return ""
    start = next(i for i, (size, _) in enumerate(sized) if size == largest)
    same = takewhile(lambda line: line[0] >= _SAME_SIZE * largest, sized[start:])
    title = " ".join(text for _, text in same).replace(_HYPHEN, "")
    return " ".join(title.split())[:_MAX_TITLE_CHARS]


def _no_text(document: Any) -> DocumentError:
    from pypdfium2 import raw

    for number in range(min(len(document), _IMAGE_PAGES)):
        page = document[number]
        if next(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3), None) is not None:
            return DocumentError(FailureKind.SCANNED, "the pages are images without text")
    return DocumentError(FailureKind.EMPTY, "no text")


def _outline(document: Any) -> frozenset[str]:
    """Return the titles of the outline as :func:`_heading_key` writes them."""
    titles = islice(document.get_toc(max_depth=_OUTLINE_DEPTH), _MAX_OUTLINE)
    return frozenset(_heading_key(item.get_title()) for item in titles) - {""}


def _heading_key(text: str) -> str:
    return "".join(
        _SECTION_NUMBER.sub("", text.strip()[:_MAX_TITLE_CHARS], count=1).lower().split()
    )


def _language(document: Any) -> str:
    from pypdfium2 import raw

    buffer = (ctypes.c_ushort * 64)()
    length = raw.FPDFCatalog_GetLanguage(document, buffer, 64)
    return bytes(buffer)[: 2 * max(length - 1, 0)].decode("utf-16-le", "ignore")


def _declared_title(title: str) -> str:
    title = " ".join(title.split())
    return "" if _GENERATED_TITLE.fullmatch(title) else title


def _authors(declared: str) -> Sequence[str]:
    """Split the field of the authors at semicolons and "and", at commas only between full names."""
    parts = re.split(r"\s*;\s*|\s+and\s+|\s*&\s*", declared.strip())
    names: list[str] = []
    for part in parts:
        by_comma = [name.strip() for name in part.split(",")]
        names += by_comma if all(" " in name for name in by_comma) else [part.strip()]
    return [name for name in names if name]


def _date(declared: str) -> str:
    found = _DATE.match(declared)
    return f"{found[1]}-{found[2] or '01'}-{found[3] or '01'}" if found else ""


def _write(
    writer: MarkupWriter, pages: Sequence[_PdfPage], outline: frozenset[str], title: str
) -> None:
    title_key = _heading_key(title)
    headings = outline | {title_key}
    margins = _Margins(_repeated_margins(pages), _page_offsets(pages), len(pages))
    for position, page in enumerate(pages):
        kept = _without_margins(page.lines, position, margins, outline)
        blocks = list(_paragraphs(kept, headings))
        urls = frozenset(link.url for link in page.links)
        runs, lost = _with_links([text for _, text in blocks], page.links)
        for (is_heading, text), inner in zip(blocks, runs, strict=True):
            tag = "p"
            if is_heading:
                tag = "h1" if _heading_key(text) == title_key else "h2"
            elif (sign := _BULLET_SIGN.match(inner[0][0])) is not None:
                tag, inner[0] = "li", (inner[0][0][sign.end() :], inner[0][1])
            writer.block(tag, inner, known_urls=urls)
        for link in lost:
            writer.link(link.url, link.anchor)
        if writer.is_full:
            break


def _margin_key(line: str) -> str:
    return _NUMBERS.sub("", line.lower())


def _repeated_margins(pages: Sequence[_PdfPage]) -> frozenset[str]:
    """Return what the first and last lines of several pages have in common, besides numbers."""
    seen: Counter[str] = Counter()
    for page in pages:
        if len(page.lines) > 1:
            seen.update({_margin_key(page.lines[0]), _margin_key(page.lines[-1])})
    return frozenset(
        key for key, count in seen.items() if count >= _MIN_REPEATS and any(map(str.isalpha, key))
    )


def _page_number(line: str) -> int | None:
    """Return the number in a line that may be a page number; None for Roman numerals."""
    number = _DIGITS.search(line) if _PAGE_NUMBER.fullmatch(line) else None
    return int(number[0]) if number else None


def _page_offsets(pages: Sequence[_PdfPage]) -> frozenset[int]:
    """Return what page numbers add to the position of their page, where several pages agree."""
    seen: Counter[int] = Counter()
    for position, page in enumerate(pages):
        numbers = map(_page_number, (*page.lines[:2], *page.lines[-2:]))
        seen.update({number - position for number in numbers if number is not None})
    return frozenset(offset for offset, count in seen.items() if count >= _MIN_REPEATS)


@dataclass(frozen=True, slots=True)
class _Margins:
    """What the headers and footers of a document have in common."""

    repeated: frozenset[str]
    offsets: frozenset[int]
    pages: int

    def lines_at_start(self, lines: Sequence[str], position: int) -> int:
        """Return how many of a page's lines, in order from its edge, are header or footer.

        A column of numbers is no page number, nor is a number that breaks the sequence.
        """
        repeats = numbers = 0
        for line, inner in zip(lines, (*lines[1:], ""), strict=True):
            if repeats < _MAX_MARGIN_LINES and _margin_key(line) in self.repeated:
                repeats += 1
            elif not numbers and self._is_page_number(line, inner, position):
                numbers += 1
            else:
                break
        return repeats + numbers

    def _is_page_number(self, line: str, inner: str, position: int) -> bool:
        if not _PAGE_NUMBER.fullmatch(line):
            return False
        number = _page_number(line)
        if number is None or "page" in line.lower():
            return True
        if self.offsets:
            return number - position in self.offsets
        return self.pages < 2 * _MIN_REPEATS and not _is_value(inner)


def _without_margins(
    lines: list[str], position: int, margins: _Margins, outline: frozenset[str]
) -> list[str]:
    """Return the lines of a page without header, footer and page number."""
    end = len(lines) - margins.lines_at_start(lines[::-1], position)
    start = min(margins.lines_at_start(lines, position), end)
    if start < end and _heading_key(_HEADER_NUMBER.sub("", lines[start])) in outline:
        # A heading beside a page number is a header.
        start += _HEADER_NUMBER.search(lines[start]) is not None
    return lines[start:end]


def _is_value(line: str) -> bool:
    """Whether a line is a number, perhaps with a unit."""
    return any(map(str.isdigit, line)) and sum(map(str.isalpha, line)) <= _MAX_UNIT_LETTERS


def _is_row(line: str) -> bool:
    """Whether a line is a row of a table of numbers: most of its words are numbers."""
    words = line.split()
    numbers = sum(_NUMBER.fullmatch(word) is not None for word in words)
    return numbers >= _MIN_ROW_NUMBERS and 2 * numbers >= len(words)


def _paragraphs(lines: Sequence[str], outline: frozenset[str]) -> Iterator[tuple[bool, str]]:
    """Yield whether a block is a heading, and its text."""
    lengths = sorted(map(len, lines))
    width = lengths[len(lengths) * 9 // 10] if lengths else 0
    gathered = ""
    was_short = was_row = False
    for line in lines:
        is_row = _is_row(line)
        if (key := _heading_key(line)) and key in outline:
            if gathered:
                yield False, gathered
            yield True, line
            gathered = ""
            continue
        ends = was_short and (_SENTENCE_END.search(gathered) or not line[:1].islower())
        if gathered and (ends or is_row or was_row or _BULLET.match(line)):
            yield False, gathered
            gathered = ""
        glue = "" if _NO_SPACE.search(f"{gathered[-_URI_BYTES:]}\n{line[:1]}") else " "
        gathered = f"{gathered}{glue}{line}"
        was_short, was_row = len(line) < _SHORT_LINE * width, is_row
    if gathered:
        yield False, gathered


def _with_links(
    texts: Sequence[str], links: Sequence[_PdfLink]
) -> tuple[list[list[Run]], list[_PdfLink]]:
    """Return the texts of a page with its links in them, and the links that have no place there.

    A link stands at the next place of its anchor after the link before, or else at the first.
    """
    spans: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    lost: list[_PdfLink] = []
    here = (0, 0)
    for link in links:
        place = _find_anchor(texts, link.anchor, here, spans) or _find_anchor(
            texts, link.anchor, (0, 0), spans
        )
        if place is None:
            lost.append(link)
            continue
        number, start = place
        here = number, start + len(link.anchor)
        spans[number].append((start, here[1], link.url))
    runs: list[list[Run]] = []
    for text, found in zip(texts, spans, strict=True):
        pieces: list[Run] = []
        end = 0
        for start, stop, url in sorted(found):
            if start < end:
                lost.append(_PdfLink(url, text[start:stop]))
                continue
            if pieces and pieces[-1][1] == url and text[end:start].isspace():
                pieces[-1] = (f"{pieces[-1][0]}{text[end:stop]}", url)  # broken over lines
                end = stop
                continue
            pieces += [(text[end:start], None), (text[start:stop], url)]
            end = stop
        runs.append([*pieces, (text[end:], None)])
    return runs, lost


def _find_anchor(
    texts: Sequence[str],
    anchor: str,
    after: tuple[int, int],
    taken: Sequence[Sequence[tuple[int, int, str]]],
) -> tuple[int, int] | None:
    """Return number and start of the first text after a place that no other link has taken."""
    if not anchor:
        return None
    for number in range(after[0], len(texts)):
        start = texts[number].find(anchor, after[1] if number == after[0] else 0)
        for _ in range(_MAX_TRIED_PLACES):
            if start < 0:
                break
            end = start + len(anchor)
            if all(end <= first or start >= last for first, last, _ in taken[number]):
                return number, start
            start = texts[number].find(anchor, end)
    return None
