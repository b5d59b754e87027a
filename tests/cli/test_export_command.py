"""The command ``focused export``."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.command import focused
from tests.support.corpus_crawl import ARTICLE, crawl_corpus_web


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl_corpus_web(tmp_path_factory.mktemp("crawls"))


run = partial(focused, "export")


def test_a_crawl_becomes_a_corpus_beside_it(crawl):
    result = run(crawl, "--processes", 1)
    folder = crawl.with_name(f"{crawl.name}-corpus")
    lines = (folder / "train.jsonl").read_text("utf-8").splitlines()
    urls = [json.loads(line)["url"] for line in lines]
    assert ARTICLE in urls and len(urls) == 5
    lines = result.output.splitlines()
    assert "focused: extracting: 5 of 5 pages" in lines
    assert lines[-2].startswith("focused: wrote 5 records of 5 pages with ")
    assert lines[-1] == f"focused: the data card is {folder / 'README.md'}"
    again = run(crawl, "--processes", 1)
    assert again.output.splitlines()[-1].endswith(
        "holds this export already; --fresh makes it anew"
    )


def test_options_reach_the_filter(crawl, tmp_path):
    result = run(
        crawl,
        *("--out", tmp_path / "out", "--language", "de", "--not-robots", "NOAI"),
        *("--fetched-since", "1970-01-01", "--published-until", "2030-01-01", "--min-words", 2),
    )
    assert "left out 1 pages by conditions on their text" in result.output
    arguments = json.loads((tmp_path / "out/.export/arguments.json").read_text())
    assert arguments["pages"]["languages"] == ["de"]
    assert arguments["pages"]["robots"] == ["noai"]
    assert arguments["pages"]["fetched_since"] == 0.0


def test_chunks_and_splits(crawl, tmp_path):
    options = ("--chunk-chars", 200, "--validation", 0.5, "--compression", "gzip")
    run(crawl, "--out", tmp_path / "out", *options)
    assert {"train.jsonl.gz", "validation.jsonl.gz"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fetched-since", "yesterday"], "'--fetched-since': yesterday is no date"),
        (["--published-until", "2024"], "'--published-until': 2024 is no date"),
        (["--language", "german"], "'--language': german is no code of ISO 639-1"),
        (["--format", "parquet", "--compression", "gzip"], "--compression: parquet has none"),
    ],
)
def test_a_wrong_value_is_refused(crawl, tmp_path, arguments, message):
    result = run(crawl, "--out", tmp_path / "out", *arguments, status=2)
    assert message in result.output.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_names_on_the_terminal_are_escaped(crawl, tmp_path):
    result = run(crawl, "--out", tmp_path / "red\x1b[31m", "--language", "de")
    assert "\x1b" not in result.output and "red\\x1b[31m" in result.output
