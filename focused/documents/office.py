"""Convert docx, odt and pptx: one walk over their XML, by tables of element names.

The formats are ZIP packages of XML. A small walk replaces three libraries (decision 0059), and
reads what two of them leave out: footnotes, text boxes and links of shapes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lxml import etree

from focused.documents.convert import DocumentError
from focused.documents.markup import DocumentMetadata, MarkupWriter, Run
from focused.documents.packages import Package, local_name, text_of
from focused.web.page import FailureKind

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_MANIFEST = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"

MAX_SLIDES = 2_000
_FEW_SPACES = re.compile(r"[0-9]{1,2}")
_HEADING_STYLE = re.compile(r"(?:heading|berschrift|titre|titulo|kop)\D{0,3}([1-6])\b", re.I)
_TITLE_STYLE = re.compile(r"title|titel|titre", re.I)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+(?:\\\S\s+)*"([^"]+)"', re.I)
_NOTES = re.compile(r"ppt/notesSlides/[^/]+\.xml")
_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")


class _Paragraph(NamedTuple):
    tag: str
    runs: list[Run]


def convert_docx(body: bytes) -> bytes:
    """Return a docx file as HTML; raises DocumentError if it cannot be read."""
    package = Package(body)
    writer = MarkupWriter()
    styles = _heading_styles(package)
    notes = [name for name in ("word/footnotes.xml", "word/endnotes.xml") if name in package.names]
    for name in ("word/document.xml", *notes):
        root = package.read_xml(name)
        for paragraph in _word_paragraphs(root, _targets(package, name), styles):
            writer.block(paragraph.tag, paragraph.runs)
    return writer.html(_core_metadata(package))


def convert_pptx(body: bytes) -> bytes:
    """Return a pptx file as HTML, slide after slide; raises DocumentError as convert_docx."""
    package = Package(body)
    writer = MarkupWriter()
    slides = _slides(package)
    if not slides and "ppt/presentation.xml" not in package.names:
        raise DocumentError(FailureKind.DAMAGED, "the part ppt/presentation.xml is missing")
    for name in slides:
        if writer.is_full:
            break
        targets = _targets(package, name)
        notes = [each for each in targets.values() if _NOTES.fullmatch(each)]
        for part in (name, *(each for each in notes if each in package.names)):
            for paragraph in _slide_paragraphs(package.read_xml(part), _targets(package, part)):
                writer.block(paragraph.tag, paragraph.runs)
    return writer.html(_core_metadata(package))


def convert_odt(body: bytes) -> bytes:
    """Return an odt file as HTML; raises DocumentError as convert_docx."""
    package = Package(body)
    if "META-INF/manifest.xml" in package.names:
        manifest = package.read_xml("META-INF/manifest.xml")
        if next(manifest.iter(f"{_MANIFEST}encryption-data"), None) is not None:
            raise DocumentError(FailureKind.ENCRYPTED, "the odt file has a password")
    writer = MarkupWriter()
    content = package.read_xml("content.xml").find(f"{_OFFICE}body")
    if content is not None:
        for paragraph in _odt_paragraphs(content):
            writer.block(paragraph.tag, paragraph.runs)
    return writer.html(_odt_metadata(package))


def _targets(package: Package, part: str) -> Mapping[str, str]:
    """Return the targets of a part's relationships by id; those to other parts have their path."""
    folder, name = posixpath.split(part)
    path = f"{folder}/_rels/{name}.rels"
    if path not in package.names:
        return {}
    found: dict[str, str] = {}
    for each in package.read_xml(path):
        target, key = each.get("Target"), each.get("Id")
        if target and key:
            is_part = each.get("TargetMode") != "External"
            found[key] = posixpath.normpath(posixpath.join(folder, target)) if is_part else target
    return found


def _heading_styles(package: Package) -> Mapping[str, str]:
    """Return the tag of each paragraph style of a docx file that is a heading or title."""
    if "word/styles.xml" not in package.names:
        return {}
    tags: dict[str, str] = {}
    for style in package.read_xml("word/styles.xml"):
        key = _attribute(style, "styleId")
        names = [each for each in style if local_name(each) == "name"]
        name = _attribute(names[0], "val") if names else ""
        if tag := _tag_of_style(name or key):
            tags[key] = tag
    return tags


def _tag_of_style(name: str) -> str:
    level = _HEADING_STYLE.search(name)
    if level:
        return f"h{level[1]}"
    return "h1" if _TITLE_STYLE.fullmatch(name) else ""


def _attribute(element: etree._Element, name: str) -> str:
    """Return the attribute of a local name in any namespace, ``""`` without one.

    OOXML has two sets of namespaces, transitional and strict.
    """
    suffix = f"}}{name}"
    return next((value for key, value in element.items() if key.endswith(suffix)), "")


def _word_paragraphs(
    root: etree._Element, targets: Mapping[str, str], styles: Mapping[str, str]
) -> Iterator[_Paragraph]:
    """Yield the paragraphs of WordprocessingML, those of text boxes before the one around them."""
    for element in _without_fallbacks(root):
        if local_name(element) != "p":
            continue
        tag = "p"
        properties = next((each for each in element if local_name(each) == "pPr"), None)
        for each in () if properties is None else properties:
            if local_name(each) == "pStyle":
                style = _attribute(each, "val")
                tag = styles.get(style) or _tag_of_style(style) or tag
            elif local_name(each) == "numPr" and tag == "p":
                tag = "li"
        runs: list[Run] = []
        field: list[str] = []
        _add_word_runs(element, targets, runs, None, field)
        yield _Paragraph(tag, _merged(runs))


def _without_fallbacks(root: etree._Element) -> Iterator[etree._Element]:
    """Yield all elements but the fallbacks, which repeat text boxes for old programs."""
    skipped: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element.tag == f"{_MC}Fallback":
            if event == "start" and skipped is None:
                skipped = element
            elif event == "end" and skipped is element:
                skipped = None
        elif event == "start" and skipped is None:
            yield element


def _add_word_runs(
    parent: etree._Element,
    targets: Mapping[str, str],
    runs: list[Run],
    link: str | None,
    field: list[str],
) -> None:
    """Add the runs of a paragraph; ``field`` holds the parts of an open field's instruction."""
    for element in parent:
        kind = local_name(element)
        if kind == "t":
            runs.append((element.text or "", link or _field_link(field)))
        elif kind in ("tab", "br", "cr"):
            runs.append((" ", None))
        elif kind == "noBreakHyphen":
            runs.append(("-", link))
        elif kind == "hyperlink":
            key = _attribute(element, "id")
            _add_word_runs(element, targets, runs, targets.get(key), field)
        elif kind == "fldSimple":
            target = _FIELD_LINK.match(_attribute(element, "instr"))
            _add_word_runs(element, targets, runs, target[1] if target else link, field)
        elif kind == "fldChar":
            what = _attribute(element, "fldCharType")
            if what == "begin":
                field[:] = [""]
            elif what == "end":
                field.clear()
        elif kind == "instrText":
            if field:
                field[0] += element.text or ""
        elif kind not in ("p", "pPr", "rPr", "del", "moveFrom", "Fallback", "txbxContent"):
            _add_word_runs(element, targets, runs, link, field)


def _field_link(field: list[str]) -> str | None:
    found = _FIELD_LINK.match(field[0]) if field else None
    return found[1] if found else None


def _merged(runs: list[Run]) -> list[Run]:
    """Join neighbouring runs to one target: editors split words and URLs at any place."""
    joined: list[tuple[list[str], str | None]] = []
    for text, target in runs:
        if joined and joined[-1][1] == target:
            joined[-1][0].append(text)
        else:
            joined.append(([text], target))
    return [("".join(pieces), target) for pieces, target in joined]


def _slides(package: Package) -> list[str]:
    """Return the names of the slides in the order of the presentation."""
    main = "ppt/presentation.xml"
    if main in package.names:
        targets = _targets(package, main)
        root = package.read_xml(main)
        keys = [_attribute(each, "id") for each in root.iter("{*}sldId")]
        listed = [targets[key] for key in dict.fromkeys(keys) if targets.get(key) in package.names]
        if listed:
            return listed[:MAX_SLIDES]
    numbers = sorted(int(found[1]) for name in package.names if (found := _SLIDE.fullmatch(name)))
    return [f"ppt/slides/slide{number}.xml" for number in numbers[:MAX_SLIDES]]


def _slide_paragraphs(root: etree._Element, targets: Mapping[str, str]) -> Iterator[_Paragraph]:
    for shape in root.iter():
        kind = local_name(shape)
        if kind not in ("sp", "tc"):
            continue
        tag = "p"
        holder = next((each for each in shape.iter() if local_name(each) == "ph"), None)
        if kind == "sp" and holder is not None:
            role = holder.get("type", "")
            if role in ("sldNum", "dt", "ftr", "hdr"):
                continue
            tag = "h2" if role in ("title", "ctrTitle") else "p"
        for paragraph in shape.iter("{*}p"):
            runs: list[Run] = []
            for run in paragraph:
                if local_name(run) == "br":
                    runs.append((" ", None))
                text = "".join(each.text or "" for each in run if local_name(each) == "t")
                link = next((each for each in run.iter() if local_name(each) == "hlinkClick"), None)
                key = "" if link is None else _attribute(link, "id")
                runs.append((text, targets.get(key)))
            yield _Paragraph(tag, _merged(runs))


def _core_metadata(package: Package) -> DocumentMetadata:
    """Return the metadata of an OOXML file; empty without them."""
    return _metadata(package, "docProps/core.xml", ("creator",), "created", "modified")


def _odt_metadata(package: Package) -> DocumentMetadata:
    return _metadata(package, "meta.xml", ("initial-creator", "creator"), "creation-date", "date")


def _metadata(
    package: Package, part: str, authors: Sequence[str], published: str, modified: str
) -> DocumentMetadata:
    if part not in package.names:
        return DocumentMetadata()
    root = package.read_xml(part)
    return DocumentMetadata(
        title=text_of(root, "title"),
        authors=[name for name in text_of(root, *authors).split(";") if name.strip()],
        published=text_of(root, published),
        modified=text_of(root, modified),
        language=text_of(root, "language"),
        description=text_of(root, "description", "subject"),
    )


def _odt_paragraphs(body: etree._Element) -> Iterator[_Paragraph]:
    """Yield the paragraphs and headings of an odt file; deleted text is left out."""
    for element in body.iter(f"{_TEXT}p", f"{_TEXT}h"):
        above = [local_name(each) for each in element.iterancestors()]
        if "tracked-changes" in above:
            continue
        tag = "li" if "list-item" in above else "p"
        if element.tag == f"{_TEXT}h":
            level = element.get(f"{_TEXT}outline-level", "1")
            tag = f"h{level if level in '123456' and len(level) == 1 else 6}"
        elif element.get(f"{_TEXT}style-name") == "Title":
            tag = "h1"
        runs: list[Run] = []
        _add_odt_runs(element, runs, None)
        yield _Paragraph(tag, _merged(runs))


def _add_odt_runs(parent: etree._Element, runs: list[Run], link: str | None) -> None:
    runs.append((parent.text or "", link))
    for element in parent:
        kind = local_name(element)
        if kind == "a":
            _add_odt_runs(element, runs, element.get(_XLINK_HREF) or link)
        elif kind == "s":
            count = element.get(f"{_TEXT}c", "1")
            spaces = int(count) if _FEW_SPACES.fullmatch(count) else 1
            runs.append((" " * spaces, link))
        elif kind in ("tab", "line-break"):
            runs.append((" ", link))
        elif kind not in ("note", "annotation", "frame", "p", "h", "list", "table", "ruby-text"):
            _add_odt_runs(element, runs, link)
        runs.append((element.tail or "", link))
