"""A crawl of a small site of HTML, PDF and office files, whose links lead on."""

import json

import pytest

from focused.corpus.export import export_corpus
from focused.corpus.page_selection import ExportOptions
from focused.web.warc_reader import read_response
from tests.support.crawling import Finished, crawl, write_topic
from tests.support.made_documents import docx, odt, paragraph, pdf, run
from tests.support.recorded_web import MemoryWeb, answer, html, page, served

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
WORK = [
    f"The whales of the {number}th ocean eat {number * 7} tons of krill in the {name} of each year."
    for number, name in enumerate(("spring", "summer", "autumn", "winter") * 6, 1)
]
PAPER = pdf(
    ["All whales are listed in the report of the institute."],
    WORK,
    links=[("All whales are listed in the report of the institute.", "http://a.test/report")],
    info=b"/Author(Ann Author)/CreationDate(D:20200203)",
    title="Whales at sea",
)
REPORT = docx(
    paragraph(
        run("The whale report, see "),
        '<w:hyperlink r:id="l"><w:r><w:t>the whale page</w:t></w:r></w:hyperlink>',
    ),
    {"l": "http://a.test/last"},
)


def site() -> MemoryWeb:
    return MemoryWeb(
        page(
            "http://a.test/",
            html("Whales", "/paper.pdf", "/broken.pdf", "/data.bin", "/work.html", "/file.odt"),
        ),
        page("http://a.test/paper.pdf", PAPER, content_type=PDF),
        page("http://a.test/report", REPORT, content_type=DOCX),
        page("http://a.test/last", html("Last whale")),
        page("http://a.test/broken.pdf", PAPER[:1_000], content_type=PDF),
        page("http://a.test/data.bin", b"\x00\x01" * 500, content_type="application/octet-stream"),
        page(
            "http://a.test/file.odt",
            odt("<text:p>An open whale file</text:p>"),
            content_type="application/octet-stream",
            x_robots_tag="noindex",
        ),
        page("http://a.test/work.html", html("Whales | A site", "/", text=" ".join(WORK))),
        answer("http://a.test/robots.txt", 404),
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    topic = write_topic(tmp_path_factory.mktemp("documents"), "http://a.test/")
    with served(site()) as served_site:
        finished = crawl(topic, served_site.address)
    assert finished.status == 0, finished.output
    return finished


def test_links_of_documents_lead_on(done):
    assert {"http://a.test/report", "http://a.test/last"} <= set(done.fetched())
    assert done.pages.loc["http://a.test/last", "parent"] == "http://a.test/report"
    assert done.pages.loc["http://a.test/last", "anchor"] == "the whale page"


def test_documents_have_rows_like_pages(done):
    row = done.pages.loc["http://a.test/paper.pdf"]
    assert (row["title"], row["language"], row["content_type"]) == ("Whales at sea", "en", PDF)
    assert row["on_topic"]
    assert done.pages.loc["http://a.test/file.odt", "outcome"] == "noindex"


def test_a_damaged_document_is_a_named_failure(done):
    assert done.pages.loc["http://a.test/broken.pdf", "failure"] == "damaged"
    assert done.pages.loc["http://a.test/data.bin", "failure"] == "wrong-type"
    failures = done.stats["failures"]
    assert failures["damaged"] == 1


def test_the_pdf_and_the_html_of_one_work_are_duplicates(done):
    pages = done.pages.loc[["http://a.test/paper.pdf", "http://a.test/work.html"]]
    assert sorted(pages["duplicate_kind"].dropna()) == ["near"]


def test_the_warc_holds_the_document_itself(done):
    row = done.pages.loc["http://a.test/paper.pdf"]
    record = read_response(done.folder / row["warc_file"], int(row["warc_offset"]))
    assert record is not None
    assert (record.body, record.headers["content-type"]) == (PAPER, PDF)


def test_documents_are_exported(done, tmp_path):
    export_corpus(done.folder, tmp_path / "corpus", ExportOptions("jsonl"), now=0.0)
    lines = [
        json.loads(line)
        for file in (tmp_path / "corpus").glob("*.jsonl*")
        for line in file.read_text().splitlines()
    ]
    report = next(line for line in lines if line["url"] == "http://a.test/report")
    assert report["text"] == "The whale report, see the whale page"
    assert report["authors"] == ["Ann Author", "Bob Writer"]
    assert report["published"] == "2020-02-03"
