"""Hostile documents: each ends within its limits, with a name, and reads nothing else."""

import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from focused.documents.convert import BoundedConverter
from focused.documents.pdf import MAX_PAGES
from focused.parser_process import ParsingLimits
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched, Page
from tests.support.made_documents import (
    PdfMaker,
    W,
    docx,
    epub,
    odt,
    paragraph,
    pdf,
    pptx,
    run,
    shape,
    text_page,
    zipped,
)

SECRET = "the-secret-of-this-file"
LIMITS = ParsingLimits(cpu_s=2.0, elapsed_s=20.0, memory_mb=200.0)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LAUGHS = "".join(
    f"<!ENTITY {entity} '{f'&{inner};' * 20}'>" for inner, entity in pairwise("abcdefghijkl")
)
LAUGHS = f"<!DOCTYPE x [<!ENTITY a 'ha'>{LAUGHS}]>"


@pytest.fixture(scope="module")
def converter() -> Iterator[BoundedConverter]:
    with BoundedConverter(LIMITS) as bounded:
        yield bounded


def result(converter: BoundedConverter, body: bytes, kind: str = "") -> Page | Failed:
    html = converter.to_html(Fetched("http://a.test/file", 200, {"content-type": kind}, body))
    return html if isinstance(html, Failed) else parse_page(html)


def bomb(name: str = "word/document.xml", megabytes: int = 51) -> bytes:
    content = f'<w:document xmlns:w="{W}">'.encode() + b" " * (megabytes * 1_000_000)
    return zipped({"[Content_Types].xml": "", name: content})


def lying_bomb() -> bytes:
    """The directory says that the part has ten bytes."""
    honest = bomb()
    place = honest.rfind(b"PK\x01\x02")
    return honest[: place + 24] + (10).to_bytes(4, "little") + honest[place + 28 :]


def overlapping() -> bytes:
    """All entries of the directory lead to one part (as in Fifield's bomb)."""
    parts = {f"word/{name}.xml": b" " * 18_000_000 for name in ("document", "footnotes")}
    parts["word/endnotes.xml"] = parts["word/styles.xml"] = parts["word/document.xml"]
    return zipped(parts)


def many_entries() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for number in range(21_000):
            file.writestr(f"word/document.xml{number}", b"")
    return out.getvalue()


def packed_by(method: int) -> bytes:
    """Some 400 bytes that unpack to hundreds of megabytes in one block."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr("word/document.xml", bytes(60_000_000))
    return out.getvalue()


def with_zip64_directory(body: bytes, entries: int, directory_bytes: int) -> bytes:
    """Add the record for large files, which readers prefer to the plain one."""
    end = body.rfind(b"PK\x05\x06")
    start, size = body[end + 16 : end + 20], body[end + 12 : end + 16]
    record = b"PK\x06\x06" + struct.pack("<QHHLL", 44, 45, 45, 0, 0)
    record += struct.pack(
        "<QQQ", entries, entries, directory_bytes or int.from_bytes(size, "little")
    )
    record += struct.pack("<Q", int.from_bytes(start, "little"))
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, end, 1)
    return body[:end] + record + locator + body[end : end + 8] + bytes(4) + body[end + 12 :]


def understated_entries() -> bytes:
    """The directory holds 21,000 entries and says that it holds one."""
    body = many_entries()
    end = body.rfind(b"PK\x05\x06")
    return body[: end + 8] + b"\x01\x00\x01\x00" + body[end + 12 :]


def with_flag(body: bytes) -> bytes:
    """Set the flag of a password in all entries of the directory."""
    parts = body.split(b"PK\x01\x02")
    return parts[0] + b"".join(b"PK\x01\x02" + p[:4] + b"\x01" + p[5:] for p in parts[1:])


def encrypted_pdf() -> bytes:
    maker = PdfMaker()
    maker.page(maker.stream(text_page("secret")))
    key = b"<%s>" % (b"41" * 32)
    maker.trailer = (
        b"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O %s/U %s>>/ID[<00><00>]" % (key, key)
    )
    return maker.written()


def scanned_pdf() -> bytes:
    maker = PdfMaker()
    image = maker.stream(
        b"\x00" * 100,
        b"/Type/XObject/Subtype/Image/Width 10/Height 10/ColorSpace/DeviceGray/BitsPerComponent 8",
    )
    for _ in range(3):
        maker.page(
            maker.stream(b"q 600 0 0 800 0 0 cm /I Do Q"), resources=f"/XObject<</I {image} 0 R>>"
        )
    return maker.written()


def stream_bomb(content: bytes) -> bytes:
    maker = PdfMaker()
    maker.page(maker.stream(content, packed=True))
    return maker.written()


def object_stream_bomb() -> bytes:
    maker = PdfMaker()
    maker.page(maker.stream(text_page("plain")))
    number = maker.stream(
        b"20 0 " + b" " * 40_000_000 + b"<</A 1>>", b"/Type/ObjStm/N 1/First 5", packed=True
    )
    maker.catalog = b"/Names %d 0 R/Extra 20 0 R" % number
    return maker.written()


def many_pages(count: int) -> bytes:
    """One page that stands in the tree many times."""
    maker = PdfMaker()
    maker.page(maker.stream(text_page("again and again")))
    maker.pages *= count
    return maker.written()


def loop_in_pages() -> bytes:
    return pdf(["text of a page"]).replace(b"/Kids[11 0 R]", b"/Kids[2 0 R] ")


def outline_loop() -> bytes:
    maker = PdfMaker()
    maker.page(maker.stream(text_page("a text of the page")))
    item = maker.add(b"<</Title(one)/Next 12 0 R/First 12 0 R/Parent 12 0 R>>")
    maker.catalog = b"/Outlines<</First %d 0 R/Last %d 0 R>>" % (item, item)
    return maker.written()


def active_pdf() -> bytes:
    maker = PdfMaker()
    maker.catalog = b"/OpenAction<</S/JavaScript/JS(app.launchURL\\('http://evil.test/'\\))>>"
    notes = (
        "<</Type/Annot/Subtype/Link/Rect[0 0 600 800]/A<</S/Launch/F(/bin/sh)>>>>"
        "<</Type/Annot/Subtype/Link/Rect[0 0 600 800]/A<</S/URI/URI(file:///etc/passwd)>>>>"
        "<</Type/Annot/Subtype/Link/Rect[0 0 600 800]/A<</S/URI/URI(javascript:alert\\(1\\))>>>>"
        "<</Type/Annot/Subtype/Link/Rect[0 0 600 800]/A<</S/GoToR/F(http://evil.test/x.pdf)>>>>"
    )
    maker.page(maker.stream(text_page("a text with actions")), annotations=notes)
    return maker.written()


def many_links() -> bytes:
    maker = PdfMaker()
    note = "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(http://a.test/{})>>>>"
    maker.page(
        maker.stream(text_page("many links")),
        annotations="".join(note.format(number) for number in range(8_000)),
    )
    return maker.written()


PLAIN = pdf(["a plain text"])
WORDS = paragraph(run("plain words"))
FAILING: dict[str, tuple[Callable[[], bytes], str, set[FailureKind]]] = {
    "docx-zip-bomb": (bomb, "", {FailureKind.TOO_LARGE}),
    "docx-zip-bomb-that-lies": (lying_bomb, "", {FailureKind.TOO_LARGE, FailureKind.DAMAGED}),
    "docx-bomb-of-many-parts": (overlapping, "", {FailureKind.DAMAGED, FailureKind.TOO_LARGE}),
    "pptx-zip-bomb": (lambda: bomb("ppt/presentation.xml"), "", {FailureKind.TOO_LARGE}),
    "zip-of-many-entries": (many_entries, "", {FailureKind.TOO_LARGE}),
    "zip-of-many-entries-that-says-one": (understated_entries, "", {FailureKind.TOO_LARGE}),
    "zip64-of-many-entries": (
        lambda: with_zip64_directory(many_entries(), 21_000, 0),
        "",
        {FailureKind.TOO_LARGE},
    ),
    "zip64-of-a-large-directory": (
        lambda: with_zip64_directory(docx(WORDS), 2, 4_000_001),
        "",
        {FailureKind.TOO_LARGE},
    ),
    "docx-packed-by-bzip2": (lambda: packed_by(zipfile.ZIP_BZIP2), "", {FailureKind.DAMAGED}),
    "docx-packed-by-lzma": (lambda: packed_by(zipfile.ZIP_LZMA), "", {FailureKind.DAMAGED}),
    "docx-deeply-nested": (lambda: docx("<w:p>" * 100_000), "", {FailureKind.DAMAGED}),
    "docx-billion-laughs": (
        lambda: zipped(
            {"word/document.xml": f"{LAUGHS}<w:document xmlns:w='{W}'>{WORDS}&l;</w:document>"}
        ),
        "",
        {FailureKind.DAMAGED},
    ),
    "jats-billion-laughs": (
        lambda: f"{LAUGHS}<article><front/><body><p>&l;</p></body></article>".encode(),
        "application/xml",
        {FailureKind.DAMAGED},
    ),
    "docx-encrypted": (
        lambda: OLE + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
        DOCX,
        {FailureKind.ENCRYPTED},
    ),
    "doc-named-docx": (lambda: OLE + bytes(600), DOCX, {FailureKind.WRONG_TYPE}),
    "docx-with-zip-password": (lambda: with_flag(docx(WORDS)), "", {FailureKind.ENCRYPTED}),
    "docx-truncated": (lambda: docx(WORDS)[:-400], DOCX, {FailureKind.DAMAGED}),
    "docx-with-broken-part": (
        lambda: docx(WORDS, **{"docProps__core.xml": "<a>"}),
        "",
        {FailureKind.DAMAGED},
    ),
    "docx-without-text-part": (
        lambda: zipped({"word/document.xml.bak": "x"}),
        "",
        {FailureKind.DAMAGED},
    ),
    "odt-encrypted": (
        lambda: odt(
            "",
            **{
                "META-INF__manifest.xml": '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:'
                'xmlns:manifest:1.0"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
            },
        ),
        "",
        {FailureKind.ENCRYPTED},
    ),
    "epub-with-drm": (
        lambda: epub(
            {"a.xhtml": "<p>x</p>"},
            **{
                "META-INF__encryption.xml": '<e><EncryptionMethod xmlns="http://www.w3.org/2001/04/'
                'xmlenc#" Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e>'
            },
        ),
        "",
        {FailureKind.ENCRYPTED},
    ),
    "epub-without-package-document": (
        lambda: zipped(
            {"mimetype": "application/epub+zip", "META-INF/container.xml": "<c/>"},
            stored="mimetype",
        ),
        "",
        {FailureKind.DAMAGED},
    ),
    "pdf-truncated": (lambda: PLAIN[: len(PLAIN) // 2], "", {FailureKind.DAMAGED}),
    "pdf-of-noise": (lambda: b"%PDF-1.7\n" + bytes(range(256)) * 50, "", {FailureKind.DAMAGED}),
    "pdf-of-noise-with-an-end": (
        lambda: b"%PDF-1.7\n" + bytes(range(256)) * 50 + b"%%EOF",
        "",
        {FailureKind.DAMAGED},
    ),
    "pdf-encrypted": (encrypted_pdf, "", {FailureKind.ENCRYPTED}),
    "pdf-scanned": (scanned_pdf, "", {FailureKind.SCANNED}),
    "pdf-without-anything": (lambda: stream_bomb(b""), "", {FailureKind.EMPTY}),
    "pdf-page-tree-loop": (loop_in_pages, "", {FailureKind.DAMAGED, FailureKind.EMPTY}),
    "pdf-content-bomb": (
        lambda: stream_bomb(b" " * 150_000_000),
        "",
        {FailureKind.PARSE_MEMORY, FailureKind.PARSE_TIMEOUT},
    ),
    "pdf-of-endless-paths": (
        lambda: stream_bomb(b"0 0 m 9 9 l " * 4_000_000),
        "",
        {FailureKind.PARSE_MEMORY, FailureKind.PARSE_TIMEOUT},
    ),
    "jats-truncated": (
        lambda: b"<?xml version='1.0'?><article><front><article-meta>",
        "application/xml",
        {FailureKind.DAMAGED},
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_hostile_document_is_a_named_failure(name, converter):
    body, kind, expected = FAILING[name]
    found = result(converter, body(), kind)
    assert isinstance(found, Failed), found
    assert found.kind in expected, found
    assert found.detail


READABLE: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "odt-with-endless-spaces": (
        lambda: odt('<text:p>plain<text:s text:c="1000000000"/>words</text:p>'),
        "",
        "plain words",
    ),
    "odt-with-a-number-of-many-digits": (
        lambda: odt(f'<text:p>plain<text:s text:c="{"9" * 9_999}"/>words</text:p>'),
        "",
        "plain words",
    ),
    "epub-that-repeats-a-chapter": (
        lambda: epub({"a": "<p>plain words</p>"}, spine=["a"] * 50_000),
        "",
        "plain words",
    ),
    "epub-with-active-content": (
        lambda: epub(
            {"a": "<script>alert(1)</script><iframe src='http://evil.test/'/><p>plain words</p>"}
        ),
        "",
        "plain words",
    ),
    "pptx-of-many-slides": (lambda: pptx(*[shape("plain words")] * 2_100), "", "plain words"),
    "pdf-of-a-repeated-page": (lambda: many_pages(3 * MAX_PAGES), "", "again and again"),
    "pdf-object-stream-bomb": (object_stream_bomb, "", "plain"),
    "pdf-outline-loop": (outline_loop, "", "a text of the page"),
    "pdf-of-many-links": (many_links, "", "many links"),
    "markdown-of-brackets": (
        lambda: b"plain words " + b"[" * 20_000 + b"](" * 5_000,
        "text/markdown",
        "plain words",
    ),
    "markdown-of-quotes": (
        lambda: b"plain words\n\n" + b">" * 20_000,
        "text/markdown",
        "plain words",
    ),
    "markdown-with-html": (
        lambda: b"plain words <script>alert(1)</script> [x](javascript:alert(1))",
        "text/markdown",
        "plain words",
    ),
    "text-of-urls": (lambda: b"plain words " + b"http://(((" * 50_000, "text/plain", "plain words"),
}


@pytest.mark.parametrize("name", READABLE)
def test_a_hostile_document_whose_text_can_be_read(name, converter):
    body, kind, text = READABLE[name]
    found = result(converter, body(), kind)
    if isinstance(found, Failed):  # a slow machine
        assert found.kind is FailureKind.PARSE_TIMEOUT, found
        return
    assert text in found.text[:200]
    assert len(found.text) < 1_500_000
    assert not any("javascript:" in link.url or "evil.test" in link.url for link in found.links)


def test_nothing_of_a_pdf_is_executed_or_followed(converter):
    found = result(converter, active_pdf())
    assert isinstance(found, Page)
    assert found.text.strip() == "a text with actions"
    assert found.links == ()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret.txt").write_text(SECRET)
    return (tmp_path / "secret.txt").as_uri()


FILE_READERS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "docx-entity": (
        lambda uri: zipped(
            {
                "word/document.xml": f"<!DOCTYPE x [<!ENTITY e SYSTEM '{uri}'>]>"
                f"<w:document xmlns:w='{W}'>{WORDS}<w:p><w:t>&e;</w:t></w:p></w:document>"
            }
        ),
        "",
    ),
    "docx-parameter-entity": (
        lambda uri: zipped(
            {
                "word/document.xml": f"<!DOCTYPE x [<!ENTITY % e SYSTEM '{uri}'> %e;]>"
                f"<w:document xmlns:w='{W}'>{WORDS}</w:document>"
            }
        ),
        "",
    ),
    "jats-dtd": (
        lambda uri: (
            f"<!DOCTYPE article PUBLIC '-//NLM//DTD JATS' '{uri}'><article><front/>"
            "<body><p>plain words &chapter;</p></body></article>"
        ).encode(),
        "application/xml",
    ),
    "jats-xinclude": (
        lambda uri: (
            "<article xmlns:xi='http://www.w3.org/2001/XInclude'><front/><body><p>plain words "
            f"<xi:include href='{uri}' parse='text'/></p></body></article>"
        ).encode(),
        "application/xml",
    ),
    "epub-path": (
        lambda uri: epub(
            {"a": "<p>plain words</p>", f"../../../../../../..{uri.removeprefix('file://')}": ""}
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", FILE_READERS)
def test_no_file_is_read(name, secret, converter):
    body, kind = FILE_READERS[name]
    found = result(converter, body(secret), kind)
    if isinstance(found, Failed):
        assert found.kind is FailureKind.DAMAGED, found
        return
    assert "plain words" in found.text
    assert SECRET not in found.text


def test_no_process_is_left_over():
    before = _children()
    with BoundedConverter(LIMITS) as bounded:
        result(bounded, PLAIN)
        started = _children() - before
        assert len(started) == 1
    assert not started & _children()


def _children() -> set[str]:
    return set(Path("/proc/thread-self/children").read_text().split())
