"""Importing folders of HTML and WARC files."""

import gzip
from pathlib import Path

import pytest

from focused.errors import RecordedWebError
from focused.web.warc_reader import MAX_BODY_BYTES
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.web_import import import_html, import_warc
from tests.support.recorded_web import body, response_of


def http_record(
    url: str,
    body: bytes,
    head: str = "HTTP/1.1 200 OK",
    kind: str = "response",
    date: str = "WARC-Date: 2020-01-02T03:04:05Z",
) -> bytes:
    """A WARC record as some other tool may write it, not compressed."""
    block = head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body
    return (
        (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n"
            f"{date}\r\n"
            "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n"
            f"Content-Type: application/http; msgtype={kind}\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        ).encode()
        + block
        + b"\r\n\r\n"
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "guide").mkdir(parents=True)
    (root / "index.html").write_text("home")
    (root / "guide/index.html").write_text("guide")
    (root / "guide/Größe.html").write_text("size")
    (root / "zipped.html.gz").write_bytes(gzip.compress(b"zipped"))
    (root / "style.css").write_text("body {}")
    return root


def test_a_folder_of_html_becomes_a_web_under_its_address(site, tmp_path):
    imported = import_html(site, "https://a.example/docs", tmp_path / "web", "mine")
    with RecordedWeb.open(imported.folder) as web:
        assert set(web.urls) == {
            "https://a.example/docs/",
            "https://a.example/docs/guide/",
            "https://a.example/docs/guide/Gr%C3%B6%C3%9Fe.html",
            "https://a.example/docs/zipped.html",
        }
        assert web.details["name"] == "mine"
        assert body(web, "https://a.example/docs/zipped.html") == "zipped"


def test_no_page_is_excluded_by_its_name(site, tmp_path):
    (site / "genindex.html").write_text("index")
    import_html(site, "https://a.example/", tmp_path / "web", "mine")
    with RecordedWeb.open(tmp_path / "web") as web:
        assert "https://a.example/genindex.html" in web


def test_robots_txt_is_taken_to_the_root_of_the_host(site, tmp_path):
    (site / "robots.txt").write_text("User-agent: *\nDisallow: /docs/guide/\n")
    import_html(site, "https://a.example/docs/", tmp_path / "web", "mine")
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.status("https://a.example/robots.txt") == 200


def test_an_unreadable_file_is_skipped_and_counted(site, tmp_path):
    (site / "broken.html.gz").write_bytes(gzip.compress(b"x" * 999)[:-12])
    imported = import_html(site, "https://a.example/", tmp_path / "web", "mine")
    assert (imported.responses, imported.skipped) == (4, 1)


def test_a_file_that_grows_beyond_the_limit_is_skipped_and_counted(site, tmp_path):
    (site / "bomb.html.gz").write_bytes(gzip.compress(bytes(MAX_BODY_BYTES + 1), 1))
    imported = import_html(site, "https://a.example/", tmp_path / "web", "mine")
    assert (imported.responses, imported.skipped) == (4, 1)


def test_labels_are_kept_for_pages_of_the_web_and_counted_otherwise(site, tmp_path):
    labels = [("http://a.example/guide/index.html", "Top/A"), ("https://b.example/", "Top/B")]
    imported = import_html(site, "https://a.example/", tmp_path / "web", "mine", labels)
    assert imported.unknown_labels == 1
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.labels == {"https://a.example/guide/": {"Top/A"}}


@pytest.mark.parametrize("base", ["docs/", "ftp://a.example/", "https://a.example/?page=1"])
def test_a_base_url_that_is_not_a_folder_on_the_web_is_an_error(site, tmp_path, base):
    with pytest.raises(RecordedWebError, match="base URL"):
        import_html(site, base, tmp_path / "web", "mine")


def test_a_folder_without_html_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordedWebError, match=r"holds no readable \.html"):
        import_html(tmp_path / "empty", "https://a.example/", tmp_path / "web", "mine")
    assert not (tmp_path / "web").exists()


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(RecordedWebError, match="is not a folder"):
        import_html(tmp_path / "nowhere", "https://a.example/", tmp_path / "web", "mine")


@pytest.mark.parametrize("compress", [lambda content: content, gzip.compress])
def test_responses_of_a_warc_file_become_a_web(tmp_path, compress):
    assert callable(compress)
    records = (
        http_record("http://a.example/", b"", "GET / HTTP/1.1", kind="request")
        + http_record("http://a.example/", b"home", "HTTP/1.1 200 OK\nX-Mine: yes")
        + http_record("https://b.example/x?y=1", b"gone", "HTTP/1.1 404 Not Found")
        + http_record("dns:a.example", b"127.0.0.1")
    )
    (tmp_path / "crawl.warc").write_bytes(compress(records))
    imported = import_warc([tmp_path / "crawl.warc"], tmp_path / "web", "theirs")
    assert imported.responses == 2
    with RecordedWeb.open(tmp_path / "web") as web:
        headers = response_of(web, "http://a.example/").headers
        assert headers == {"x-mine": "yes", "content-length": "4"}
        assert web.status("https://b.example/x?y=1") == 404


def test_compressed_and_chunked_bodies_are_decoded(tmp_path):
    zipped = gzip.compress(b"words " * 50)
    chunked = f"{len(zipped):x}\r\n".encode() + zipped + b"\r\n0\r\n\r\n"
    head = "HTTP/1.1 200 OK\nContent-Encoding: gzip\nTransfer-Encoding: chunked"
    warc = tmp_path / "crawl.warc"
    warc.write_bytes(http_record("http://a.example/", chunked, head))
    import_warc([warc], tmp_path / "web", "theirs")
    with RecordedWeb.open(tmp_path / "web") as web:
        response = response_of(web, "http://a.example/")
        assert response.body == b"words " * 50
        assert response.headers == {"content-length": "300"}


def test_of_several_responses_the_first_good_one_is_taken(tmp_path):
    url = "http://a.example/"
    one, two = tmp_path / "one.warc", tmp_path / "two.warc"
    one.write_bytes(http_record(url, b"busy", "HTTP/1.1 503 Busy") + http_record(url, b"first"))
    two.write_bytes(http_record(url, b"second"))
    imported = import_warc([one, two], tmp_path / "web", "theirs")
    assert (imported.responses, imported.duplicates) == (1, 2)
    with RecordedWeb.open(tmp_path / "web") as web:
        assert body(web, url) == "first"


def test_a_cut_file_gives_what_is_whole_and_counts_the_rest(tmp_path):
    members = [gzip.compress(http_record(f"http://a.example/{n}", b"x" * 900)) for n in range(3)]
    warc = tmp_path / "crawl.warc.gz"
    warc.write_bytes(members[0] + members[1][:60] + members[2] + members[0][:50])
    imported = import_warc([warc], tmp_path / "web", "theirs")
    assert (imported.responses, imported.damaged) == (2, 2)
    with RecordedWeb.open(tmp_path / "web") as web:
        assert set(web.urls) == {"http://a.example/0", "http://a.example/2"}


def test_responses_that_cannot_be_crawled_are_skipped_and_counted(tmp_path):
    warc = tmp_path / "crawl.warc"
    warc.write_bytes(
        http_record("http://a b.example/", b"x") + http_record("http://a.example/", b"x")
    )
    imported = import_warc([warc], tmp_path / "web", "theirs")
    assert (imported.responses, imported.skipped) == (1, 1)


@pytest.mark.parametrize("date", ["X-Other: 1", "WARC-Date: 2020-01-02T03:04:05"])
def test_a_response_without_a_readable_date_is_imported(tmp_path, date):
    warc = tmp_path / "crawl.warc"
    warc.write_bytes(http_record("http://a.example/", b"home", date=date))
    assert import_warc([warc], tmp_path / "web", "theirs").responses == 1


def test_a_response_of_the_year_10000_is_skipped_and_counted(tmp_path):
    late = "WARC-Date: 9999-12-31T23:59:59-14:00"
    warc = tmp_path / "crawl.warc"
    warc.write_bytes(
        http_record("http://a.example/late", b"x", date=late)
        + http_record("http://a.example/", b"x")
    )
    imported = import_warc([warc], tmp_path / "web", "theirs")
    assert (imported.responses, imported.skipped) == (1, 1)


def test_a_file_that_is_not_a_warc_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(RecordedWebError, match="are these WARC files"):
        import_warc([tmp_path / "notes.txt"], tmp_path / "web", "theirs")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(RecordedWebError, match="is not a file"):
        import_warc([tmp_path / "nowhere.warc"], tmp_path / "web", "theirs")
