"""Which responses hold documents, by first bytes, media type and URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.documents.convert import document_format, needs_process, to_html
from focused.topic import DOCUMENT_FORMATS
from focused.web.page import Fetched
from tests.support.made_documents import docx, epub, odt, pdf, pptx, zipped

PDF, DOCX, ODT, PPTX, EPUB = pdf(["x"]), docx(""), odt(""), pptx(), epub({"a": ""})
JATS = b'<?xml version="1.0"?>\n<article xmlns:xlink="x"><front><article-meta/></front></article>'


def fetched(body: bytes, kind: str = "", url: str = "http://a.test/x") -> Fetched:
    return Fetched(url, 200, {"content-type": kind} if kind else {}, body)


@pytest.mark.parametrize("kind", ["", "application/octet-stream", "text/html", "text/plain"])
@pytest.mark.parametrize(
    ("body", "name"),
    [(PDF, "pdf"), (DOCX, "docx"), (ODT, "odt"), (PPTX, "pptx"), (EPUB, "epub")],
    ids=["pdf", "docx", "odt", "pptx", "epub"],
)
def test_the_first_bytes_tell_the_format_whatever_the_server_says(body, name, kind):
    assert document_format(fetched(body, kind)) == name


@pytest.mark.parametrize(
    ("body", "kind", "url", "name"),
    [
        (b"junk before\n" + PDF, "application/pdf", "", "pdf"),
        (b"junk before\n" + PDF, "text/html", "", None),
        (b"<html>no PDF", "application/pdf", "", None),
        (JATS, "application/xml", "", "jats"),
        (JATS, "application/jats+xml; charset=utf-8", "", "jats"),
        (JATS, "text/html", "", None),
        (b"<article><title>DocBook</title></article>", "text/xml", "", None),
        (b"<rss/>", "application/rss+xml", "", None),
        (b"words", "text/plain", "http://a.test/x.txt", "text"),
        (b"words", "text/plain", "http://a.test/README.md?raw=1", "markdown"),
        (b"words", "text/plain", "http://a.test/paper.tex", None),
        (b"words", "text/markdown; charset=utf-8", "http://a.test/", "markdown"),
        (b"words", "text/html", "http://a.test/x.md", None),
        (b"words", "", "http://a.test/x.md", None),
        (zipped({"a.txt": "x"}), "application/zip", "", None),
        (zipped({"xl/workbook.xml": "x"}), "", "", None),
        (b"", "application/pdf", "", None),
    ],
)
def test_the_format_of_other_responses(body, kind, url, name):
    assert document_format(fetched(body, kind, url or "http://a.test/x")) == name


def test_a_template_is_no_text_document():
    body = ODT.replace(b"opendocument.text", b"opendocument.text-template")
    assert document_format(fetched(body)) is None


def test_a_response_that_is_no_document_stays_as_it_is():
    page = fetched(b"<p>words", "text/html")
    assert to_html(page) is page


def test_a_document_of_another_format_than_those_accepted_stays_as_it_is():
    paper = fetched(PDF)
    assert to_html(paper, ("docx",)) is paper


def test_plain_text_needs_no_process():
    assert [name for name in DOCUMENT_FORMATS if not needs_process(name)] == ["text"]


@given(st.binary(max_size=200), st.sampled_from(["application/pdf", "text/x-tex", "text/xml", ""]))
def test_any_bytes_have_a_format_or_none(body, kind):
    assert document_format(fetched(body, kind)) in (*DOCUMENT_FORMATS, None)
