"""Each path is read in the format of its name or content."""

import gzip
import os
from pathlib import Path

import pytest

from focused.directory import SkippedRecords, content_digest
from focused.directory.directory_reader import (
    iter_entries,
    load_directory,
)
from focused.errors import ConfigurationError, TrainingError

TSV = b"Top/Food\thttp://tsv.example/\n"
JSON = b'{"category": "Top/Food", "url": "http://json.example/"}\n'


def hosts(*paths: Path) -> list[str]:
    return [entry.url.split("/")[2] for entry in load_directory(paths)]


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "host"),
    [
        ("a.tsv", TSV, "tsv.example"),
        ("a.tsv.gz", gzip.compress(TSV, mtime=0), "tsv.example"),
        ("a.jsonl", JSON, "json.example"),
        ("a.ndjson", JSON, "json.example"),
        ("samples.txt", TSV, "tsv.example"),
        ("samples.txt", b"\xef\xbb\xbf" + JSON, "json.example"),
    ],
)
def test_a_file_is_known_by_its_name_or_its_beginning(tmp_path, name, content, host):
    assert hosts(written(tmp_path / name, content)) == [host]


def test_paths_of_all_kinds_are_read_in_order(tmp_path):
    pages = written(tmp_path / "pages" / "Food" / "brie.txt", b"Brie").parents[1]
    paths = [written(tmp_path / "a.jsonl", JSON), pages, written(tmp_path / "a.tsv", TSV)]
    first, _, last = hosts(*paths)
    assert (first, last) == ("json.example", "tsv.example")


def test_an_unknown_format_raises_an_error_that_lists_the_formats(tmp_path):
    path = written(tmp_path / "notes", b"cheese is a dairy product")
    with pytest.raises(ConfigurationError) as error:
        hosts(path)
    for tried in ("notes", "TSV", "JSON Lines"):
        assert tried in str(error.value)


def test_a_directory_without_samples_raises_an_error_with_the_skipped_records(tmp_path):
    path = written(tmp_path / "pages" / "Food" / "brie.png", b"")
    with pytest.raises(TrainingError, match="1 files that are not pages"):
        hosts(path.parents[1])


def test_entries_come_one_by_one(tmp_path):
    path = written(tmp_path / "a.tsv", TSV + b"a bad line\n")
    entries = iter_entries([path], SkippedRecords())
    assert next(entries).url == "http://tsv.example/"
    with pytest.raises(ConfigurationError, match=r"a\.tsv:2: "):
        next(entries)


def test_the_same_content_has_the_same_digest_wherever_it_lies(tmp_path):
    one = written(tmp_path / "one" / "Food" / "brie.txt", b"Brie").parents[1]
    two = written(tmp_path / "two" / "Food" / "brie.txt", b"Brie").parents[1]
    assert content_digest(one) == content_digest(two)


@pytest.mark.parametrize("change", ["Food/brie.txt", "Food/gouda.txt"])
def test_a_changed_or_a_new_page_changes_the_digest(tmp_path, change):
    folder = written(tmp_path / "pages" / "Food" / "brie.txt", b"Brie").parents[1]
    before = content_digest(folder)
    written(folder / change, b"Another")
    assert content_digest(folder) != before


def test_a_pipe_is_an_error_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "samples.tsv")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        hosts(tmp_path / "samples.tsv")
