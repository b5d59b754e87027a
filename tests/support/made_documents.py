"""Small documents of each format, made part by part."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from html import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
    'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>Whales at sea</dc:title>'
    "<dc:creator>Ann Author;Bob Writer</dc:creator>"
    "<dcterms:created>2020-02-03T10:00:00Z</dcterms:created><dc:language>en-GB</dc:language>"
    "</cp:coreProperties>"
)


def zipped(parts: Mapping[str, str | bytes], *, stored: str = "") -> bytes:
    """A ZIP file; the part ``stored`` comes first and is not compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(parts, key=lambda name: name != stored):
            kind = zipfile.ZIP_STORED if name == stored else zipfile.ZIP_DEFLATED
            file.writestr(name, parts[name], kind)
    return out.getvalue()


def relationships(targets: Mapping[str, str], *, external: bool = True) -> str:
    mode = ' TargetMode="External"' if external else ""
    rows = "".join(
        f'<Relationship Id="{key}" Type="x" Target="{escape(target)}"{mode}/>'
        for key, target in targets.items()
    )
    return f'<Relationships xmlns="{RELATIONSHIPS}">{rows}</Relationships>'


def docx(body: str, links: Mapping[str, str] | None = None, **parts: str | bytes) -> bytes:
    """A docx file with these paragraphs (WordprocessingML), links by id, and further parts."""
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<w:document xmlns:w="{W}" xmlns:r="{R}"><w:body>{body}</w:body>'
            "</w:document>",
            "word/_rels/document.xml.rels": relationships(links or {}),
            "docProps/core.xml": CORE,
            **{name.replace("__", "/"): part for name, part in parts.items()},
        }
    )


def paragraph(*runs: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{''.join(runs)}</w:p>"


def run(text: str) -> str:
    return f"<w:r><w:t>{escape(text)}</w:t></w:r>"


def odt(body: str, **parts: str) -> bytes:
    spaces = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"'
    )
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {spaces}><office:body><office:text>{body}"
            "</office:text></office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {spaces}><office:meta><dc:title>Whales at sea"
            "</dc:title><meta:initial-creator>Ann Author</meta:initial-creator>"
            "<meta:creation-date>2020-02-03T10:00:00</meta:creation-date></office:meta>"
            "</office:document-meta>",
            **{name.replace("__", "/"): part for name, part in parts.items()},
        },
        stored="mimetype",
    )


def pptx(*slides: str, links: Mapping[str, str] | None = None) -> bytes:
    """A pptx file; each slide is DrawingML shapes."""
    spaces = (
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        f'xmlns:r="{R}"'
    )
    ids = "".join(f'<p:sldId id="{256 + i}" r:id="s{i}"/>' for i in range(len(slides)))
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst>"
        "</p:presentation>",
        # The order of the presentation is not that of the names.
        "ppt/_rels/presentation.xml.rels": relationships(
            {f"s{i}": f"slides/slide{len(slides) - i}.xml" for i in range(len(slides))},
            external=False,
        ),
        "docProps/core.xml": CORE,
    }
    for i, slide in enumerate(slides):
        name = f"slide{len(slides) - i}.xml"
        parts[f"ppt/slides/{name}"] = f"<p:sld {spaces}>{slide}</p:sld>"
        parts[f"ppt/slides/_rels/{name}.rels"] = relationships(links or {})
    return zipped(parts)


def shape(text: str, *, role: str = "", link: str = "") -> str:
    holder = f'<p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>' if role else ""
    click = f'<a:rPr><a:hlinkClick r:id="{link}"/></a:rPr>' if link else ""
    return (
        f"<p:sp>{holder}<p:txBody><a:p><a:r>{click}<a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def epub(chapters: Mapping[str, str], *, spine: Sequence[str] | None = None, **parts: str) -> bytes:
    """An EPUB file with these chapters (XHTML bodies by file name)."""
    items = "".join(
        f'<item id="{escape(name)}" href="{escape(name)}" media-type="application/xhtml+xml"/>'
        for name in chapters
    )
    order = "".join(f'<itemref idref="{escape(name)}"/>' for name in spine or chapters)
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
            'container"><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Whales at sea'
            "</dc:title><dc:creator>Ann Author</dc:creator><dc:language>en</dc:language>"
            f"<dc:date>2020-02-03</dc:date></metadata><manifest>{items}</manifest>"
            f"<spine>{order}</spine></package>",
            **{
                f"OPS/{name}": f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
                f"<body>{body}</body></html>"
                for name, body in chapters.items()
                if not name.startswith("..")
            },
            **{name.replace("__", "/"): part for name, part in parts.items()},
        },
        stored="mimetype",
    )


class PdfMaker:
    """Numbers the objects of a PDF and writes it; object 1 is the catalog, 2 the page tree."""

    def __init__(self) -> None:
        self.objects: dict[int, bytes] = {}
        self.pages: list[int] = []
        self.info = b""
        self.catalog = b""
        self.trailer = b""

    def add(self, content: bytes) -> int:
        number = len(self.objects) + 10
        self.objects[number] = content
        return number

    def stream(self, content: bytes, entries: bytes = b"", *, packed: bool = False) -> int:
        if packed:
            content, entries = zlib.compress(content, 9), entries + b"/Filter/FlateDecode"
        head = b"<<%s/Length %d>>stream\n" % (entries, len(content))
        return self.add(head + content + b"\nendstream")

    def page(self, content: int, *, annotations: str = "", resources: str = "") -> None:
        page = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {content} 0 R"
            f"/Resources<</Font<</F1 3 0 R>>{resources}>>/Annots[{annotations}]>>"
        )
        self.pages.append(self.add(page.encode()))

    def written(self) -> bytes:
        kids = b" ".join(b"%d 0 R" % number for number in self.pages)
        objects = {
            1: b"<</Type/Catalog/Pages 2 0 R%s>>" % self.catalog,
            2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(self.pages)),
            3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            4: b"<<%s>>" % self.info,
            **self.objects,
        }
        out = bytearray(b"%PDF-1.7\n")
        places = {}
        for number, content in objects.items():
            places[number] = len(out)
            out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
        start = len(out)
        out += b"xref\n"
        for number, place in places.items():
            out += b"%d 1\n%010d 00000 n \n" % (number, place)
        out += b"trailer<</Size %d/Root 1 0 R/Info 4 0 R%s>>\n" % (max(places) + 1, self.trailer)
        return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def text_page(*lines: str, size: int = 12, top: int = 760) -> bytes:
    """The content stream of a page with lines of text."""
    shown = "".join(f"({line}) Tj T*\n" for line in lines)
    return f"BT /F1 {size} Tf {size + 3} TL 50 {top} Td\n{shown}ET\n".encode("latin-1")


def pdf(
    *pages: Sequence[str], links: Sequence[tuple[str, str]] = (), info: bytes = b"", title: str = ""
) -> bytes:
    """A PDF with lines of text on pages; each link covers the line of the first page that it names.

    ``title`` stands on the first page in a large font.
    """
    maker = PdfMaker()
    maker.info = info
    for number, lines in enumerate(pages):
        content = text_page(*lines)
        notes = ""
        if not number:
            content = (text_page(title, size=24, top=780) if title else b"") + content
            for line, url in links:
                place = 760 - 15 * list(lines).index(line)
                notes += (
                    f"<</Type/Annot/Subtype/Link/Rect[48 {place - 3} 550 {place + 11}]"
                    f"/A<</S/URI/URI({url})>>>>"
                )
        maker.page(maker.stream(content), annotations=notes)
    return maker.written()
