"""What all formats of a corpus have in common, and what each does."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from focused.corpus.records import COLUMNS, CorpusRecord, InLink
from focused.corpus.writers import (
    FORMATS,
    INDEX_FILE,
    RECORD_SCHEMA,
    open_writer,
    unescape_formulas,
)

HOSTILE = '=cmd|\'/C calc\'!A0\n@x,"y"\t<script>alert(1)</script> --- \u2028 {"a": 1}'


def record(number: int, **columns: Any) -> CorpusRecord:
    values: dict[str, Any] = {
        "id": f"{number:032x}",
        "url": f"http://a.test/{number}",
        "host": "a.test",
        "domain": "a.test",
        "title": f"Whale {number}",
        "text": f"Text {number}",
        "markdown": f"# Text {number}",
        "chunk": 0,
        "chunks": 1,
        "headings": (),
        "authors": ("Ada",),
        "published": None,
        "modified": "2024-01-01",
        "fetched_at": "2024-05-01T00:00:00Z",
        "language": "en",
        "relevance": 0.75,
        "on_topic": True,
        "score": 0.5,
        "depth": 1,
        "parent": None,
        "anchor": "",
        "in_links": (InLink("http://b.test/", "whale"),),
        "authority": 0.5,
        "hub": None,
        "licences": (),
        "robots": (),
        "words": 2,
        "quality": (),
        "text_sha256": "00",
        "cluster": "1",
        "cluster_size": 1,
        "duplicate_of": None,
        "training": False,
        "gone": False,
        "split": "train",
        "model": "m",
        "warc_file": "pages.warc.gz",
        "warc_offset": 7,
    }
    return CorpusRecord(**{**values, **columns})


RECORDS = [
    record(1),
    record(2, split="validation", title=HOSTILE, text=HOSTILE, authors=("=1+1", "b")),
    record(3, text="-1", anchor="+1", markdown="---\nb: 1\n---"),
]


def write(
    form: str, folder: Path, records: Sequence[CorpusRecord] = RECORDS, compression: str = "none"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with open_writer(form, folder, ("train", "validation"), compression) as writer:
        for each in records:
            writer.write(each)
    return folder


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split(b"\n") if line]


def read_jsonl(folder: Path, split: str) -> list[dict[str, Any]]:
    return _lines((folder / f"{split}.jsonl").read_bytes())


def read_parquet(folder: Path, split: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / f"{split}.parquet").to_pylist()


def read_csv(folder: Path, split: str) -> list[dict[str, Any]]:
    with (folder / f"{split}.csv").open(newline="", encoding="utf-8") as file:
        return [
            {name: unescape_formulas(cell) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]


def read_files(folder: Path, split: str) -> list[dict[str, Any]]:
    rows = [row for row in _lines((folder / INDEX_FILE).read_bytes()) if row["split"] == split]
    return [{**row, "content": (folder / row["file"]).read_text("utf-8")} for row in rows]


READERS: dict[str, Callable[[Path, str], list[dict[str, Any]]]] = {
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "csv": read_csv,
    "markdown": read_files,
    "text": read_files,
}


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_record_is_in_its_split_in_order(form, tmp_path):
    folder = write(form, tmp_path)
    ids = [[row["id"] for row in READERS[form](folder, split)] for split in ("train", "validation")]
    assert ids == [[RECORDS[0].id, RECORDS[2].id], [RECORDS[1].id]]


def test_titles_come_back_as_they_were(form, tmp_path):
    folder = write(form, tmp_path)
    (row,) = READERS[form](folder, "validation")
    assert row["title"] == HOSTILE


def test_texts_come_back_as_they_were(form, tmp_path):
    folder = write(form, tmp_path)
    rows = READERS[form](folder, "train")
    if form == "markdown":
        assert rows[0]["content"].rpartition("\n---\n\n")[2] == "# Text 1\n"
    elif form == "text":
        assert [row["content"] for row in rows] == ["Text 1\n", "-1\n"]
    else:
        assert [row["text"] for row in rows] == ["Text 1", "-1"]


def test_a_corpus_without_records_has_its_files(form, tmp_path):
    folder = write(form, tmp_path, [])
    assert [READERS[form](folder, split) for split in ("train", "validation")] == [[], []]


def test_the_same_records_give_the_same_bytes(form, tmp_path):
    first, second = write(form, tmp_path / "first"), write(form, tmp_path / "second")
    files = [path.relative_to(first) for path in sorted(first.rglob("*")) if path.is_file()]
    assert files
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in files)


def test_parquet_has_all_columns_with_their_types(tmp_path):
    write("parquet", tmp_path)
    table = pq.read_table(tmp_path / "train.parquet")
    assert tuple(RECORD_SCHEMA.names) == COLUMNS
    assert table.schema.equals(RECORD_SCHEMA)
    assert table.to_pylist()[0] == msgspec.json.decode(msgspec.json.encode(RECORDS[0]))


def test_parquet_is_written_in_row_groups(tmp_path):
    write("parquet", tmp_path, [record(n) for n in range(1_001)])
    assert pq.read_metadata(tmp_path / "train.parquet").num_row_groups == 3


def test_no_csv_cell_begins_a_formula(tmp_path):
    write("csv", tmp_path)
    for split in ("train", "validation"):
        with (tmp_path / f"{split}.csv").open(newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_the_front_matter_of_markdown_is_yaml_without_surprises(tmp_path):
    write("markdown", tmp_path)
    (row,) = read_files(tmp_path, "validation")
    front = yaml.safe_load(row["content"].split("\n---\n")[0].removeprefix("---\n"))
    assert front["title"] == HOSTILE
    assert front["in_links"] == [{"source": "http://b.test/", "anchor": "whale"}]


@pytest.mark.parametrize("compressed", ["jsonl", "csv"])
def test_files_can_be_compressed(compressed, tmp_path):
    plain = write(compressed, tmp_path / "plain")
    for compression, suffix, unpack in (
        ("gzip", ".gz", gzip.decompress),
        ("zstd", ".zst", lambda raw: pa.CompressedInputStream(io.BytesIO(raw), "zstd").read()),
    ):
        folder = write(compressed, tmp_path / compression, compression=compression)
        raw = (folder / f"train.{compressed}{suffix}").read_bytes()
        assert unpack(raw) == (plain / f"train.{compressed}").read_bytes()


def test_pandas_reads_tables(tmp_path):
    for form in ("jsonl", "csv", "parquet"):
        write(form, tmp_path)
    frames = [
        pd.read_json(tmp_path / "train.jsonl", lines=True, dtype=False),
        pd.read_csv(tmp_path / "train.csv"),
        pd.read_parquet(tmp_path / "train.parquet"),
    ]
    for frame in frames:
        assert tuple(frame.columns) == COLUMNS
        assert list(frame["relevance"]) == [0.75, 0.75]
