"""Which files of a documentation package are pages, and their URLs."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from focused_lab.builders.package_pages import find_page_files, read_page
from focused_lab.recorded_web.web_import import page_headers

PAGE = b"<html><body>words</body></html>"


def make_files(root: Path, *names: str) -> Path:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(PAGE)
    return root


def paths(root: Path, api: bool | None = None) -> list[str]:
    return [page.path for page in find_page_files(root) if api is None or page.is_api == api]


def test_html_files_are_pages_and_others_are_not(tmp_path):
    make_files(tmp_path, "a.html", "b.htm", "c.xhtml", "d.html.gz", "e.txt", "f.png", "htmlx")
    assert paths(tmp_path) == ["a.html", "b.htm", "c.xhtml", "d.html"]


def test_an_index_file_is_at_its_folders_address(tmp_path):
    make_files(tmp_path, "index.html", "guide/index.html.gz")
    assert sorted(paths(tmp_path)) == ["", "guide/"]


def test_paths_are_percent_encoded(tmp_path):
    make_files(tmp_path, "a page.html", "ö.html", "what?.html")
    assert paths(tmp_path) == ["a%20page.html", "what%3F.html", "%C3%B6.html"]


@pytest.mark.parametrize(
    "name",
    [
        "search.html",
        "genindex.html",
        "genindex-A.html",
        "py-modindex.html",
        "bookindex.html",
        "annotated.html",
        "functions_0x61.html",
        "classFoo-members.html",
        "foo_8h_source.html",
        "main.c.html",
        "_modules/foo/bar.html",
        "_sources/index.html",
        "fr/guide.html",
        "pt-br/index.html",
        "guide.fr.html",
        "guide.zh-cn.html",
    ],
)
def test_indexes_sources_and_translations_are_excluded(tmp_path, name):
    make_files(tmp_path, name, "guide.html")
    assert paths(tmp_path) == ["guide.html"]


@pytest.mark.parametrize(
    "name", ["reindexing.html", "research.html", "en/guide.html", "library/xml.dom.html"]
)
def test_names_that_only_look_alike_are_prose(tmp_path, name):
    make_files(tmp_path, name)
    assert paths(tmp_path, api=False) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "generated/numpy.mean.html",
        "reference/api/pandas.DataFrame.html",
        "api/twisted.web.server.Site.html",
        "classQImage.html",
        "png_8h.html",
    ],
)
def test_pages_of_single_symbols_are_api_pages(tmp_path, name):
    make_files(tmp_path, name)
    assert paths(tmp_path, api=True) == [name]


def test_a_link_that_leads_out_of_the_package_is_not_a_page(tmp_path):
    make_files(tmp_path / "outside", "secret.html")
    root = make_files(tmp_path / "root", "a.html")
    (root / "b.html").symlink_to(tmp_path / "outside" / "secret.html")
    (root / "c.html").symlink_to("nowhere.html")
    (root / "d.html").symlink_to("a.html")
    assert paths(root) == ["a.html", "d.html"]


def test_zipped_pages_are_unzipped(tmp_path):
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(PAGE))
    assert read_page(tmp_path / "a.html.gz") == PAGE


def test_a_damaged_zipped_page_is_not_a_page(tmp_path):
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(PAGE * 99)[:-20])
    assert read_page(tmp_path / "a.html.gz") is None


@pytest.mark.parametrize("body", [b"", b" \n", b"<html lang='de'>Worte</html>"])
def test_empty_and_foreign_pages_are_excluded(tmp_path, body):
    (tmp_path / "a.html").write_bytes(body)
    assert read_page(tmp_path / "a.html") is None


@pytest.mark.parametrize("tag", [b"<html lang='en-GB'>", b'<html lang="en">', b"<html>"])
def test_english_pages_and_those_that_do_not_say_are_in(tmp_path, tag):
    (tmp_path / "a.html").write_bytes(tag + b"words")
    assert read_page(tmp_path / "a.html") == tag + b"words"


def test_utf8_is_announced_only_when_it_holds():
    when = datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert page_headers("é".encode(), when) == {
        "content-type": "text/html; charset=utf-8",
        "last-modified": "Mon, 02 Jan 2023 03:04:05 GMT",
    }
    assert page_headers("é".encode("latin-1"), when)["content-type"] == "text/html"
