"""Counts of a recorded web."""

import json
from pathlib import Path

import pytest

from focused.errors import RecordedWebError
from focused.recorded_web.recorded_web import RecordedWebWriter
from focused.recorded_web.web_info import web_info

HTML = {"content-type": "text/html"}


def link(*urls: str) -> bytes:
    return "".join(f'<p><a href="{url}">a link</a></p>' for url in urls).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with RecordedWebWriter(tmp_path / "web", "tiny", "test 1") as writer:
        home = link("one.html", "http://b.example/old", "#top", "http://nowhere.example/", "/gone")
        writer.add("http://a.example/", 200, HTML, home)
        writer.add("http://a.example/one.html", 200, HTML, link("/", "/index.html", "one.html"))
        writer.add("http://b.example/", 200, HTML, b"words")
        writer.add("http://b.example/old", 301, {"location": "http://b.example/"}, b"")
        writer.add("http://a.example/gone", 404, HTML, b"gone")
        writer.add("http://a.example/robots.txt", 200, {}, b"User-agent: *\n")
        writer.finish(
            [
                ("http://a.example/", "Top/A"),
                ("http://b.example/", "Top/A"),
                ("http://b.example/", "Top/B"),
            ]
        )
    return tmp_path / "web"


def test_pages_redirects_and_the_rest_are_distinguished(folder: Path) -> None:
    info = web_info(folder)
    assert (info.pages, info.redirects, info.other, info.damaged) == (3, 1, 2, 0)


def test_links_are_counted_between_different_pages_of_the_web(folder: Path) -> None:
    assert web_info(folder).links == 3


def test_hosts_and_categories_come_with_their_pages_most_first(folder: Path) -> None:
    info = web_info(folder)
    assert info.hosts == (("a.example", 2), ("b.example", 1))
    assert info.categories == (("Top/A", 2), ("Top/B", 1))
    assert info.labelled_pages == 2


def test_name_and_builder_are_those_of_the_writer(folder: Path) -> None:
    info = web_info(folder)
    assert (info.name, info.builder) == ("tiny", "test 1")


def test_the_count_of_links_is_kept(folder: Path) -> None:
    web_info(folder)
    details = json.loads((folder / "web.json").read_text())
    details["measured"]["links"] = 77
    (folder / "web.json").write_text(json.dumps(details))
    assert web_info(folder).links == 77


def test_a_kept_count_is_dropped_when_the_files_have_changed(folder: Path) -> None:
    web_info(folder)
    warc = folder / "pages.warc.gz"
    warc.write_bytes(warc.read_bytes()[:-20])
    info = web_info(folder)
    assert info.damaged == 1
    assert info.links == 3


def test_no_web_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordedWebError, match="no recorded web"):
        web_info(tmp_path / "nowhere")
