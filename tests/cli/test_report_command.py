"""Which crawl ``focused report`` and ``focused why`` use."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from focused.cli import main
from tests.support.command import focused
from tests.support.crawl_folders import good_page, page, write_crawl
from tests.support.crawling import write_topic

SEED, PAGE = "http://a.test/", "http://a.test/whales"
ROWS = [good_page(SEED, parent=None, score=1.0), page(PAGE, parent=SEED)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def crawl(name: str, **settings: object) -> Path:
    return write_crawl(Path("crawls") / name, ROWS, settings={"policy": "focused", **settings})


@pytest.mark.parametrize("command", [("report",), ("why", PAGE)], ids=["report", "why"])
def test_the_only_crawl_answers_and_is_named(command):
    crawl("whales")
    done = focused(*command)
    assert "focused: reporting the crawl in crawls/whales\n" in done.stderr


@pytest.mark.parametrize("command", [("report",), ("why", PAGE)], ids=["report", "why"])
def test_a_title_with_characters_that_the_locale_lacks_is_escaped(command):
    write_crawl(Path("crawls/whales"), [good_page(PAGE, title="鯨")], settings={"policy": "bfs"})
    done = CliRunner(charset="ascii").invoke(main, command)
    assert "\\u9be8" in done.stdout


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("report",), "focused report crawls/ships"),
        (("why", PAGE), f"focused why {PAGE} --folder crawls/ships"),
    ],
    ids=["report", "why"],
)
def test_of_several_crawls_none_is_picked_and_all_are_listed(command, instead):
    crawl("whales")
    crawl("ships")
    done = focused(*command, status=2)
    assert done.stdout == ""
    assert instead in done.stderr
    assert "\n  crawls/ships\n  crawls/whales\n" in done.stderr


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("report",), "focused report FOLDER"),
        (("why", PAGE), f"focused why {PAGE} --folder FOLDER"),
    ],
    ids=["report", "why"],
)
def test_without_any_crawl_it_is_reported_what_to_type(command, instead):
    done = focused(*command, status=2)
    assert "no crawl under crawls/" in done.stderr
    assert instead in done.stderr


def test_a_topic_file_represents_its_crawls_and_the_picture_lies_beside_them(here):
    topic = write_topic(here, SEED)
    topic.write_text(topic.read_text().replace('[output]\nfolder = "out"', ""))
    crawl("whales")
    crawl("whales-bfs", policy="bfs")
    done = focused("report", "whales.toml", "--policies", "focused,bfs")
    assert "breadth-first" in done.stdout
    assert (here / "crawls/whales-comparison.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("crawls/whales", "--policies", "bfs"), "--policies"),
        (("crawls/whales", "--plot", "a.png"), "--out"),
        (("crawls/whales", "crawls/whales", "--out", "a"), "--plot"),
        (("crawls/whales", "crawls/whales", "--plot", "no/such/a.png"), "no/such/a.png"),
    ],
    ids=["policies", "plot", "out", "unwritable"],
)
def test_an_option_that_does_not_fit_says_which_does(arguments, word):
    crawl("whales")
    done = focused("report", *arguments, status=2)
    assert word in done.stderr.splitlines()[-1]
