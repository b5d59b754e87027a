"""Hostile documents: each ends within its limits, with a name, and reads nothing else."""

import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

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
NOISE = b"%PDF-1.7\n" + bytes(range(256)) * 50
XML, MARKDOWN = "application/xml", "text/markdown"
DAMAGED, ENCRYPTED, TOO_LARGE = (FailureKind.DAMAGED, FailureKind.ENCRYPTED, FailureKind.TOO_LARGE)
OVER_LIMIT = (FailureKind.PARSE_MEMORY, FailureKind.PARSE_TIMEOUT)


def document_xml(text: str, doctype: str = "") -> bytes:
    """A docx file with nothing but the part of the text."""
    return zipped({"word/document.xml": f"{doctype}<w:document xmlns:w='{W}'>{text}</w:document>"})


def jats(text: str, before: str = "") -> bytes:
    return f"{before}<article><front/><body><p>plain words {text}</p></body></article>".encode()


ODT_WITH_PASSWORD = {
    "META-INF__manifest.xml": '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:'
    'manifest:1.0"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
}
EPUB_WITH_DRM = {
    "META-INF__encryption.xml": '<e><EncryptionMethod xmlns="http://www.w3.org/2001/04/xmlenc#" '
    'Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e>'
}
EPUB_OF_NOTHING = {"mimetype": "application/epub+zip", "META-INF/container.xml": "<c/>"}


def fails(make: Callable[[], bytes], *expected: FailureKind, kind: str = "") -> tuple[Any, ...]:
    """A document, the type that it is sent as, and what it may fail by."""
    return make, kind, expected


FAILING = {
    "docx-zip-bomb": fails(bomb, TOO_LARGE),
    "docx-zip-bomb-that-lies": fails(lying_bomb, TOO_LARGE, DAMAGED),
    "docx-bomb-of-many-parts": fails(overlapping, DAMAGED, TOO_LARGE),
    "pptx-zip-bomb": fails(lambda: bomb("ppt/presentation.xml"), TOO_LARGE),
    "zip-of-many-entries": fails(many_entries, TOO_LARGE),
    "zip-of-many-entries-that-says-one": fails(understated_entries, TOO_LARGE),
    "zip64-of-many-entries": fails(
        lambda: with_zip64_directory(many_entries(), 21_000, 0), TOO_LARGE
    ),
    "zip64-of-a-large-directory": fails(
        lambda: with_zip64_directory(docx(WORDS), 2, 4_000_001), TOO_LARGE
    ),
    "docx-packed-by-bzip2": fails(lambda: packed_by(zipfile.ZIP_BZIP2), DAMAGED),
    "docx-packed-by-lzma": fails(lambda: packed_by(zipfile.ZIP_LZMA), DAMAGED),
    "docx-deeply-nested": fails(lambda: docx("<w:p>" * 100_000), DAMAGED),
    "docx-billion-laughs": fails(lambda: document_xml(f"{WORDS}&l;", LAUGHS), DAMAGED),
    "jats-billion-laughs": fails(lambda: jats("&l;", LAUGHS), DAMAGED, kind=XML),
    "docx-encrypted": fails(
        lambda: OLE + bytes(600) + "EncryptedPackage".encode("utf-16-le"), ENCRYPTED, kind=DOCX
    ),
    "doc-named-docx": fails(lambda: OLE + bytes(600), FailureKind.WRONG_TYPE, kind=DOCX),
    "docx-with-zip-password": fails(lambda: with_flag(docx(WORDS)), ENCRYPTED),
    "docx-truncated": fails(lambda: docx(WORDS)[:-400], DAMAGED, kind=DOCX),
    "docx-with-broken-part": fails(lambda: docx(WORDS, **{"docProps__core.xml": "<a>"}), DAMAGED),
    "docx-without-text-part": fails(lambda: zipped({"word/document.xml.bak": "x"}), DAMAGED),
    "odt-encrypted": fails(lambda: odt("", **ODT_WITH_PASSWORD), ENCRYPTED),
    "epub-with-drm": fails(lambda: epub({"a.xhtml": "<p>x</p>"}, **EPUB_WITH_DRM), ENCRYPTED),
    "epub-without-package-document": fails(
        lambda: zipped(EPUB_OF_NOTHING, stored="mimetype"), DAMAGED
    ),
    "pdf-truncated": fails(lambda: PLAIN[: len(PLAIN) // 2], DAMAGED),
    "pdf-of-noise": fails(lambda: NOISE, DAMAGED),
    "pdf-of-noise-with-an-end": fails(lambda: NOISE + b"%%EOF", DAMAGED),
    "pdf-encrypted": fails(encrypted_pdf, ENCRYPTED),
    "pdf-scanned": fails(scanned_pdf, FailureKind.SCANNED),
    "pdf-without-anything": fails(lambda: stream_bomb(b""), FailureKind.EMPTY),
    "pdf-page-tree-loop": fails(loop_in_pages, DAMAGED, FailureKind.EMPTY),
    "pdf-content-bomb": fails(lambda: stream_bomb(b" " * 150_000_000), *OVER_LIMIT),
    "pdf-of-endless-paths": fails(lambda: stream_bomb(b"0 0 m 9 9 l " * 4_000_000), *OVER_LIMIT),
    "jats-truncated": fails(
        lambda: b"<?xml version='1.0'?><article><front><article-meta>", DAMAGED, kind=XML
    ),
}


@pytest.mark.parametrize(("make", "kind", "expected"), FAILING.values(), ids=FAILING)
def test_a_hostile_document_is_a_named_failure(make, kind, expected, converter):
    found = result(converter, make(), kind)
    assert isinstance(found, Failed), found
    assert found.kind in expected, found
    assert found.detail


def reads(make: Callable[[], bytes], text: str = "plain words", kind: str = "") -> tuple[Any, ...]:
    """A document, the type that it is sent as, and what it is found to say."""
    return make, kind, text


SCRIPTS = "<script>alert(1)</script><iframe src='http://evil.test/'/>"
READABLE = {
    "odt-with-endless-spaces": reads(
        lambda: odt('<text:p>plain<text:s text:c="1000000000"/>words</text:p>')
    ),
    "odt-with-a-number-of-many-digits": reads(
        lambda: odt(f'<text:p>plain<text:s text:c="{"9" * 9_999}"/>words</text:p>')
    ),
    "epub-that-repeats-a-chapter": reads(
        lambda: epub({"a": "<p>plain words</p>"}, spine=["a"] * 50_000)
    ),
    "epub-with-active-content": reads(lambda: epub({"a": f"{SCRIPTS}<p>plain words</p>"})),
    "pptx-of-many-slides": reads(lambda: pptx(*[shape("plain words")] * 2_100)),
    "pdf-of-a-repeated-page": reads(lambda: many_pages(3 * MAX_PAGES), "again and again"),
    "pdf-object-stream-bomb": reads(object_stream_bomb, "plain"),
    "pdf-outline-loop": reads(outline_loop, "a text of the page"),
    "pdf-of-many-links": reads(many_links, "many links"),
    "markdown-of-brackets": reads(
        lambda: b"plain words " + b"[" * 20_000 + b"](" * 5_000, kind=MARKDOWN
    ),
    "markdown-of-quotes": reads(lambda: b"plain words\n\n" + b">" * 20_000, kind=MARKDOWN),
    "markdown-with-html": reads(
        lambda: b"plain words <script>alert(1)</script> [x](javascript:alert(1))", kind=MARKDOWN
    ),
    "text-of-urls": reads(lambda: b"plain words " + b"http://(((" * 50_000, kind="text/plain"),
}


@pytest.mark.parametrize(("make", "kind", "text"), READABLE.values(), ids=READABLE)
def test_a_hostile_document_whose_text_can_be_read(make, kind, text, converter):
    found = result(converter, make(), kind)
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


XINCLUDE = "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{}' parse='text'/>"
FILE_READERS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "docx-entity": (
        lambda uri: document_xml(
            f"{WORDS}<w:p><w:t>&e;</w:t></w:p>", f"<!DOCTYPE x [<!ENTITY e SYSTEM '{uri}'>]>"
        ),
        "",
    ),
    "docx-parameter-entity": (
        lambda uri: document_xml(WORDS, f"<!DOCTYPE x [<!ENTITY % e SYSTEM '{uri}'> %e;]>"),
        "",
    ),
    "jats-dtd": (
        lambda uri: jats("&chapter;", f"<!DOCTYPE article PUBLIC '-//NLM//DTD JATS' '{uri}'>"),
        XML,
    ),
    "jats-xinclude": (lambda uri: jats(XINCLUDE.format(uri)), XML),
    "epub-path": (
        lambda uri: epub(
            {"a": "<p>plain words</p>", f"../../../../../../..{uri.removeprefix('file://')}": ""}
        ),
        "",
    ),
}


@pytest.mark.parametrize(("make", "kind"), FILE_READERS.values(), ids=FILE_READERS)
def test_no_file_is_read(make, kind, secret, converter):
    found = result(converter, make(secret), kind)
    if isinstance(found, Failed):
        assert found.kind is DAMAGED, found
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
