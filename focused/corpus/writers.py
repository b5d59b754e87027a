"""The file formats of a corpus, a writer each.

A writer creates its files below a folder. What pages say stays inert in them: JSON and Parquet
quote it, CSV neutralises formulas, Markdown escapes markup.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any, Protocol, Self, get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from focused.corpus.records import COLUMNS, TRAIN, CorpusRecord, InLink

FORMATS = ("jsonl", "parquet", "markdown", "text", "csv")
COMPRESSIONS = {"none": "", "gzip": ".gz", "zstd": ".zst"}
"""The suffixes of compressed files."""

INDEX_FILE = "index.jsonl"
"""Of formats with a file for each record: all columns but the texts, and the name of the file."""

_GROUP_ROWS = 500
_GROUP_CHARS = 8_000_000
_encode_json = msgspec.json.Encoder().encode


class CorpusWriter(AbstractContextManager["CorpusWriter"], Protocol):
    """Writes records; the files are complete when the context ends without an error."""

    def write(self, record: CorpusRecord) -> None:
        """Write one record."""


def open_writer(
    form: str, folder: Path, splits: Sequence[str] = (TRAIN,), compression: str = "none"
) -> CorpusWriter:
    """Return the writer of a format, with a file, or folder of files, for each split.

    ``form`` is one of :data:`FORMATS`, ``compression`` one of :data:`COMPRESSIONS`, which only
    jsonl and csv have. A split without records has a file all the same.
    """
    suffix = COMPRESSIONS[compression]
    if form == "parquet":
        return _ParquetWriter({split: folder / f"{split}.parquet" for split in splits})
    if form in _RENDERERS:
        return _FileWriter(folder, *_RENDERERS[form])
    paths = {split: folder / f"{split}.{form}{suffix}" for split in splits}
    opened = {split: _open_bytes(path, compression) for split, path in paths.items()}
    if form == "jsonl":
        return _JsonWriter(opened)
    assert form == "csv", f"no writer of {form}"
    return _CsvWriter(opened)


def has_compression(form: str) -> bool:
    """Whether a format's files may be compressed as a whole."""
    return form in ("jsonl", "csv")


def _open_bytes(path: Path, compression: str) -> Any:
    if compression == "none":
        return path.open("wb")
    return pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), compression)


class _Files:
    """Closes the files of all splits at the end."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self._files = files
        self._stack = ExitStack()
        for file in files.values():
            self._stack.callback(file.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


class _JsonWriter(_Files):
    def write(self, record: CorpusRecord) -> None:
        self._files[record.split].write(_encode_json(record) + b"\n")


class _CsvWriter(_Files):
    """Lists are JSON in a cell; each text is protected against formula injection."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        super().__init__(files)
        for file in files.values():
            file.write(_csv_line(COLUMNS))

    def write(self, record: CorpusRecord) -> None:
        cells = [_csv_cell(getattr(record, name)) for name in COLUMNS]
        self._files[record.split].write(_csv_line(cells))


def _csv_cell(value: object) -> object:
    if isinstance(value, tuple):
        value = json.dumps(msgspec.to_builtins(value), ensure_ascii=False) if value else ""
    if isinstance(value, str):
        return escape_formulas(value)
    return value


def _csv_line(cells: Sequence[object]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


class _ParquetWriter(_Files):
    """Row groups of at most 500 rows or 8 million characters of text."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        options = {"compression": "zstd", "write_page_checksum": True}
        super().__init__(
            {
                split: pq.ParquetWriter(path, RECORD_SCHEMA, **options)
                for split, path in paths.items()
            }
        )
        self._rows: dict[str, list[CorpusRecord]] = {split: [] for split in paths}
        self._chars = dict.fromkeys(paths, 0)

    def __exit__(self, *error: object) -> None:
        with self._stack:
            for split in self._rows if error[0] is None else ():
                self._write_group(split)

    def write(self, record: CorpusRecord) -> None:
        split = record.split
        self._rows[split].append(record)
        self._chars[split] += len(record.text) + len(record.markdown)
        if len(self._rows[split]) >= _GROUP_ROWS or self._chars[split] >= _GROUP_CHARS:
            self._write_group(split)

    def _write_group(self, split: str) -> None:
        rows = msgspec.to_builtins(self._rows[split])
        if rows:
            self._files[split].write_table(pa.Table.from_pylist(rows, RECORD_SCHEMA))
        self._rows[split], self._chars[split] = [], 0


class _FileWriter(_Files):
    """A file for each record, in ``SPLIT/`` by the first two digits of its id, and an index."""

    def __init__(self, folder: Path, suffix: str, render: Callable[[CorpusRecord], str]) -> None:
        self._folder = folder
        self._suffix = suffix
        self._render = render
        self._index: IO[bytes] = (folder / INDEX_FILE).open("wb")
        super().__init__({"index": self._index})

    def write(self, record: CorpusRecord) -> None:
        name = f"{record.split}/{record.id[:2]}/{record.id}{self._suffix}"
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._render(record), encoding="utf-8", newline="\n")
        self._index.write(_encode_json({"file": name, **_metadata(record)}) + b"\n")


def _metadata(record: CorpusRecord) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(record)
    del values["text"], values["markdown"]
    return values


def _markdown_file(record: CorpusRecord) -> str:
    """Return the Markdown after a front matter, whose values are JSON, a subset of YAML."""
    front = "".join(f"{name}: {_as_yaml(value)}\n" for name, value in _metadata(record).items())
    return f"---\n{front}---\n\n{record.markdown}\n"


def _as_yaml(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.translate(_YAML_LINE_BREAKS)


_YAML_LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}

_RENDERERS: Mapping[str, tuple[str, Callable[[CorpusRecord], str]]] = {
    "markdown": (".md", _markdown_file),
    "text": (".txt", lambda record: f"{record.text}\n"),
}

_ARROW_TYPES: Mapping[object, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    float | None: pa.float64(),
    bool: pa.bool_(),
    tuple[str, ...]: pa.list_(pa.string()),
    tuple[InLink, ...]: pa.list_(pa.struct([("source", pa.string()), ("anchor", pa.string())])),
}
_SMALL_NUMBERS = frozenset({"chunk", "chunks", "depth", "words", "cluster_size"})
RECORD_SCHEMA = pa.schema(
    [
        (name, pa.int32() if name in _SMALL_NUMBERS else _ARROW_TYPES[annotation])
        for name, annotation in get_type_hints(CorpusRecord).items()
    ]
)
"""The columns in Parquet; docs/reference/corpus.md has the meaning of each."""


# Spreadsheet programs evaluate a cell that begins with one of these signs
# (https://owasp.org/www-community/attacks/CSV_Injection), and anchors and URLs are untrusted. As
# OWASP advises, such a cell gets a single quote in front; so does a formula after a character at
# which some programs split cells. Some locales read full-width signs as their ASCII forms.
_FORMULA = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_CELL_START = "(?:^|(?<=[;\t\r\n]))"
_FORMULA_START = re.compile(f"{_CELL_START}(?='*{_FORMULA})")
_ESCAPED_FORMULA_START = re.compile(f"{_CELL_START}'(?='*{_FORMULA})")


def escape_formulas(text: str) -> str:
    """Return ``text`` with a single quote before each position where a formula could begin."""
    return _FORMULA_START.sub("'", text)


def unescape_formulas(cell: str) -> str:
    """Return the text that :func:`escape_formulas` escaped; other text is unchanged."""
    return _ESCAPED_FORMULA_START.sub("", cell)
