"""``focused web info``."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from focused.cli import main
from focused_lab.recorded_web.recorded_web import RecordedWebWriter

HTML = {"content-type": "text/html"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with RecordedWebWriter(tmp_path / "web", "tiny", "test 1") as writer:
        writer.add("http://a.example/", 200, HTML, b"home")
        writer.add("http://a.example/one.html", 200, HTML, b"one")
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


def info(folder: Path) -> list[list[str]]:
    done = CliRunner().invoke(main, ["web", "info", str(folder)])
    assert done.exit_code == 0, done.output
    return [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in done.output.splitlines()
        if "│" in line
    ]


def test_pages_redirects_and_the_rest_are_distinguished(folder):
    rows = dict(info(folder)[:7])
    assert (rows["pages"], rows["redirects"], rows["other responses"]) == ("3", "1", "2")
    assert (rows["labelled pages"], rows["damaged records"]) == ("2", "0")


def test_hosts_and_categories_come_with_their_pages_most_first(folder):
    assert info(folder)[7:] == [
        ["a.example", "2"],
        ["b.example", "1"],
        ["Top/A", "2"],
        ["Top/B", "1"],
    ]


def test_damage_is_counted(folder):
    warc = folder / "pages.warc.gz"
    warc.write_bytes(warc.read_bytes()[:-20])
    assert ["damaged records", "1"] in info(folder)
