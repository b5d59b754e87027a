"""Each path is read in the format of its name or content."""

import gzip
import os
from pathlib import Path

import pytest

from focused.directory import SkippedRecords, content_digest
from focused.directory.directory_reader import (
    find_structure_dumps,
    iter_entries,
    load_directory,
    load_training_samples,
)
from focused.errors import ConfigurationError, TrainingError
from focused.topic import Training

TSV = b"Top/Food\thttp://tsv.example/\n"
JSON = b'{"category": "Top/Food", "url": "http://json.example/"}\n'
DMOZ = (
    b'<?xml version="1.0"?>\n<RDF><ExternalPage about="http://dmoz.example/">'
    b"<topic>Top/Food</topic></ExternalPage></RDF>"
)
STRUCTURE = (
    b'<RDF><Topic r:id="Top/Food"><symbolic r:resource="Dairies:Top/Business/Dairies"/></Topic>'
    b"</RDF>"
)


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
        ("content.rdf.u8", DMOZ, "dmoz.example"),
        ("content.rdf.u8.gz", gzip.compress(DMOZ, mtime=0), "dmoz.example"),
        ("samples.txt", TSV, "tsv.example"),
        ("samples.txt", b"\xef\xbb\xbf" + JSON, "json.example"),
        ("dump.xml", DMOZ, "dmoz.example"),
    ],
)
def test_a_file_is_known_by_its_name_or_its_beginning(tmp_path, name, content, host):
    assert hosts(written(tmp_path / name, content)) == [host]


def test_paths_of_all_kinds_are_read_in_order(tmp_path):
    pages = written(tmp_path / "pages" / "Food" / "brie.txt", b"Brie").parents[1]
    dump = written(tmp_path / "dumps" / "content.rdf.u8", DMOZ).parent
    written(dump / "structure.rdf.u8", STRUCTURE)
    paths = [dump, written(tmp_path / "a.jsonl", JSON), pages, written(tmp_path / "a.tsv", TSV)]
    first, second, _, last = hosts(*paths)
    assert (first, second, last) == ("dmoz.example", "json.example", "tsv.example")


def test_an_unknown_format_raises_an_error_that_lists_the_formats(tmp_path):
    path = written(tmp_path / "notes", b"cheese is a dairy product")
    with pytest.raises(ConfigurationError) as error:
        hosts(path)
    for tried in ("notes", "TSV", "JSON Lines", "DMOZ dump"):
        assert tried in str(error.value)


def test_a_directory_without_samples_raises_an_error_with_the_skipped_records(tmp_path):
    path = written(tmp_path / "content.rdf.u8", DMOZ.replace(b"http://dmoz", b"ftp://dmoz"))
    with pytest.raises(TrainingError, match="1 entries whose address is not http or https"):
        hosts(path)


def test_entries_come_one_by_one(tmp_path):
    path = written(tmp_path / "a.tsv", TSV + b"a bad line\n")
    entries = iter_entries([path], SkippedRecords())
    assert next(entries).url == "http://tsv.example/"
    with pytest.raises(ConfigurationError, match=r"a\.tsv:2: "):
        next(entries)


def test_structure_dumps_are_found_in_folders_and_by_name(tmp_path):
    beside = written(tmp_path / "dumps" / "kt-structure.rdf.u8.gz", b"")
    written(tmp_path / "dumps" / "content.rdf.u8", DMOZ)
    alone = written(tmp_path / "structure.rdf.u8", STRUCTURE)
    assert find_structure_dumps([tmp_path / "dumps", alone]) == [beside, alone]


def test_what_good_categories_link_to_is_on_neither_side(tmp_path):
    lines = b"Top/Business/Dairies/Swiss\thttp://d.example/\nTop/Other\thttp://o.example/\n"
    paths = (
        written(tmp_path / "a.tsv", TSV + lines),
        written(tmp_path / "structure.rdf.u8", STRUCTURE),
    )
    listed = load_training_samples(Training(paths, ("Top/Food",), tmp_path / "m.joblib"))
    assert [entry.url for entry in listed.entries] == ["http://tsv.example/", "http://o.example/"]
    assert (listed.good, listed.between) == ((True, False), 1)
    assert listed.messages == ("1 samples on neither side: good categories link to them",)


def test_the_same_content_has_the_same_digest_wherever_it_lies(tmp_path):
    one = written(tmp_path / "one" / "Food" / "brie.txt", b"Brie").parents[1]
    two = written(tmp_path / "two" / "Food" / "brie.txt", b"Brie").parents[1]
    assert content_digest(one) == content_digest(two)


def test_a_fifo_in_a_folder_of_pages_is_not_waited_for(tmp_path):
    folder = written(tmp_path / "pages" / "Food" / "brie.txt", b"Brie").parents[1]
    os.mkfifo(folder / "Food" / "pipe.txt")
    assert content_digest(folder)


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
