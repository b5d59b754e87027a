"""Convert XML articles (JATS and its predecessor, the NLM DTD)."""

from __future__ import annotations

import html
from collections.abc import Iterator

from lxml import etree

from focused.documents.markup import DocumentMetadata, MarkupWriter, Run
from focused.documents.packages import local_name, parse_xml

_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_BLOCKS = frozenset({"p", "title", "caption", "disp-formula", "verse-line", "preformat", "term"})
_REFERENCES = frozenset({"mixed-citation", "element-citation", "citation", "nlm-citation"})
_RECORDS = frozenset({"element-citation", "nlm-citation", "person-group", "name"})
"""Elements without a text of their own, whose parts are words apart."""
_SKIPPED = frozenset({"tex-math", "object-id", "issn", "graphic", "label"})
_DISPLAYED = frozenset(
    {
        "fig",
        "fig-group",
        "table-wrap",
        "table-wrap-group",
        "table",
        "list",
        "def-list",
        "boxed-text",
    }
    | {"disp-quote", "disp-formula", "supplementary-material", "media", "preformat"}
)
_CELLS = frozenset({"td", "th", "entry"})
_PARTS = ("body", "floats-group", "floats-wrap", "back")
_LINKS = frozenset({"ext-link", "uri", "self-uri"})
_LICENCE = "{http://www.niso.org/schemas/ali/1.0/}license_ref"


def convert_jats(body: bytes) -> bytes:
    """Return an article as HTML; raises DocumentError for damaged XML."""
    root = parse_xml(body, "the article")
    article = root if local_name(root) == "article" else root.find(".//{*}article")
    article = root if article is None else article
    meta = article.find("{*}front/{*}article-meta")
    writer = MarkupWriter()
    metadata = DocumentMetadata() if meta is None else _metadata(article, meta)
    writer.text_block("h1", metadata.title)
    for abstract in () if meta is None else meta.iter("{*}abstract"):
        _write(abstract, writer, 1)
    for name in _PARTS:
        for part in article.findall(f"{{*}}{name}"):
            _write(part, writer, 1)
    return writer.html(metadata)


def _write(parent: etree._Element, writer: MarkupWriter, level: int) -> None:
    for element in parent:
        _write_element(element, writer, level, in_item=local_name(parent) == "list-item")


def _write_element(
    element: etree._Element, writer: MarkupWriter, level: int, *, in_item: bool = False
) -> None:
    kind = local_name(element)
    if kind == "alternatives":
        chosen = _chosen(element)
        if chosen is not None:
            _write_element(chosen, writer, level)
    elif kind == "title":
        writer.block(f"h{min(max(level, 2), 6)}", _runs(element))
    elif kind == "table":
        _write_table(element, writer)
    elif kind in _REFERENCES:
        writer.block("li", [*_runs(element), *_identifier_runs(element)])
    elif kind == "p":
        _write_paragraph(element, writer, level, "li" if in_item else "p")
    elif kind in _BLOCKS:
        writer.block("pre" if kind == "preformat" else "p", _runs(element))
    elif kind not in _SKIPPED:
        _write(element, writer, level + (kind == "sec"))


def _write_paragraph(element: etree._Element, writer: MarkupWriter, level: int, tag: str) -> None:
    """Write a paragraph; figures, tables and lists in it are blocks of their own."""
    runs: list[Run] = [(element.text or "", None)]
    for child in element:
        if local_name(child) in _DISPLAYED:
            writer.block(tag, runs)
            runs = []
            _write_element(child, writer, level)
            runs.append((child.tail or "", None))
        else:
            runs += _child_runs(child, None)
    writer.block(tag, runs)


def _write_table(table: etree._Element, writer: MarkupWriter) -> None:
    writer.raw("<table>\n")
    for row in _rows(table):
        writer.raw("<tr>")
        for cell in row:
            if local_name(cell) in _CELLS:
                tag, runs = ("th" if local_name(cell) == "th" else "td"), list(_runs(cell))
                if any(text.strip() for text, _ in runs):
                    writer.block(tag, runs)
                else:
                    writer.raw(f"<{tag}></{tag}>")
        writer.raw("</tr>\n")
    writer.raw("</table>\n")


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for child in table:
        if local_name(child) in ("tr", "row"):
            yield child
        elif local_name(child) in ("thead", "tbody", "tfoot", "tgroup"):
            yield from _rows(child)


def _chosen(alternatives: etree._Element) -> etree._Element | None:
    """Return the first of several forms of one thing that has a text."""
    return next(
        (
            each
            for each in alternatives
            if local_name(each) not in _SKIPPED and any(map(str.strip, each.itertext()))
        ),
        None,
    )


def _runs(element: etree._Element, link: str | None = None) -> Iterator[Run]:
    yield element.text or "", link
    for child in element:
        yield from _child_runs(child, link)
        if local_name(element) in _RECORDS:
            yield " ", None


def _child_runs(child: etree._Element, link: str | None) -> Iterator[Run]:
    kind = local_name(child)
    if not kind:  # an entity that is not expanded: HTML's have a known character
        text = html.unescape(child.text or "") if isinstance(child, etree._Entity) else ""
        yield "" if text.startswith("&") else text, link
    elif kind == "alternatives":
        chosen = _chosen(child)
        yield from () if chosen is None else _runs(chosen, link)
    elif kind not in _SKIPPED:
        target = child.get(_XLINK_HREF) or child.text if kind in _LINKS else None
        yield from _runs(child, target or link)
        if kind in _BLOCKS or kind in ("td", "th", "person-group", "name", "string-name"):
            yield " ", None
    yield child.tail or "", link


def _identifier_runs(reference: etree._Element) -> Iterator[Run]:
    """Yield the DOIs of a reference as links."""
    for each in reference.iter("{*}pub-id"):
        doi = (each.text or "").strip()
        if each.get("pub-id-type") == "doi" and doi.startswith("10."):
            yield " doi:", None
            yield doi, f"https://doi.org/{doi}"


def _metadata(article: etree._Element, meta: etree._Element) -> DocumentMetadata:
    licence = meta.find(".//{*}license")
    reference = meta.find(f".//{_LICENCE}")
    declared = "" if licence is None else licence.get(_XLINK_HREF) or ""
    abstract = meta.find("{*}abstract")
    return DocumentMetadata(
        title=_text(meta.find("{*}title-group/{*}article-title")),
        authors=list(_authors(meta)),
        published=_date(meta),
        language=article.get("{http://www.w3.org/XML/1998/namespace}lang", ""),
        description=_text(abstract),
        licence=declared or _text(reference),
    )


def _text(element: etree._Element | None) -> str:
    return "" if element is None else " ".join("".join(t for t, _ in _runs(element)).split())


def _authors(meta: etree._Element) -> Iterator[str]:
    for contributor in meta.iterfind("{*}contrib-group/{*}contrib"):
        if contributor.get("contrib-type", "author") != "author":
            continue
        name = contributor.find(".//{*}name")
        if name is not None:
            given, family = (
                _text(name.find(f"{{*}}{part}")) for part in ("given-names", "surname")
            )
            yield f"{given} {family}".strip()
        else:
            other = contributor.find(".//{*}collab")
            yield _text(contributor.find(".//{*}string-name") if other is None else other)


def _date(meta: etree._Element) -> str:
    """Return the earliest complete date of publication, or its year."""
    dates = []
    for each in meta.iterfind("{*}pub-date"):
        year, month, day = (_text(each.find(f"{{*}}{part}")) for part in ("year", "month", "day"))
        if year.isdecimal():
            month, day = (value if value.isdecimal() else "1" for value in (month, day))
            dates.append(f"{year}-{month:0>2}-{day:0>2}")
    return min(dates, default="")
