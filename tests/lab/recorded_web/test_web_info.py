"""``focused web info``."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from focused.cli import main
from tests.support.recorded_web import answer, page, record_web, redirect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    labels = {"Top/A": ["http://a.example/", "http://b.example/"], "Top/B": ["http://b.example/"]}
    return record_web(
        tmp_path / "web",
        page("http://a.example/", "home"),
        page("http://a.example/one.html", "one"),
        page("http://b.example/", "words"),
        redirect("http://b.example/old", "http://b.example/"),
        answer("http://a.example/gone", 404, "gone"),
        answer("http://a.example/robots.txt", 200, "User-agent: *\n"),
        labels=[(url, name) for name, urls in labels.items() for url in urls],
    )


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
