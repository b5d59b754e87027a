"""Queued links to files and back: CSV for people and spreadsheets, Parquet for data frames.

Rows are written and read a batch at a time, however many there are. Both ways
keep every field of a link, so what is exported and imported is what was queued.
Text in CSV cells is written so that no spreadsheet program runs it as a formula
(:mod:`focused.spreadsheet`).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from focused.errors import ConfigurationError
from focused.frontier.queued import QueuedLink, link_key
from focused.spreadsheet import cell_of_text, text_of_cell
from focused.web.url import host_of, normalise
from focused.whole_file import whole_file

SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("host", pa.string()),  # of the URL; for readers
        ("priority", pa.float64()),  # orders the host's queue, larger first
        ("score", pa.float64()),  # predicted, in [0, 1]
        ("depth", pa.int32()),
        ("parent", pa.string()),  # null for seeds and what an operator added
        ("anchor", pa.string()),
        ("tries", pa.int32()),  # failed fetches
        ("hops", pa.int32()),  # redirects since the link
        ("found_at", pa.float64()),  # seconds since the epoch
        ("trail", pa.uint64()),  # the scorer's own
        ("evidence", pa.list_(pa.float64())),  # the features behind the score
        ("payload", pa.string()),  # a driver's own request, or null
        ("key", pa.string()),  # of the URL-seen test, 32 hexadecimal digits
    ]
)
_TEXTS = [field.name for field in SCHEMA if field.type == pa.string()] + ["evidence"]
_ROWS_A_BATCH = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_Way = TypeVar("_Way")

_Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Key = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class _Row(msgspec.Struct, frozen=True):
    """A row as it is read; all but ``url`` may be missing."""

    url: str
    host: str | None = None
    priority: float | None = None
    score: _Probability = 1.0
    depth: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0
    parent: str | None = None
    anchor: str = ""
    tries: _Count = 0
    hops: _Count = 0
    found_at: float | None = None
    trail: Annotated[int, msgspec.Meta(ge=0)] = 0
    evidence: Annotated[tuple[float, ...], msgspec.Meta(max_length=255)] = ()
    payload: str | None = None
    key: _Key | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no link: ``where`` it stands, and what is wrong."""

    where: str
    problem: str


def export_links(links: Iterable[QueuedLink], path: Path) -> int:
    """Write the links to ``path``, ``.csv`` or ``.parquet``; return how many.

    Raises ConfigurationError when the file has another name or cannot be written.
    """
    write = _by_suffix(path, _WRITERS)
    try:
        with whole_file(path) as part:
            return write(links, part)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def read_links(
    path: Path, place: Callable[[float], float | None], now: float
) -> Iterator[QueuedLink | BadRow]:
    """Yield the links of ``path``, ``.csv`` or ``.parquet``, and what is none, row by row.

    ``place`` tells the priority of a score, None where it follows from none:
    for rows without a priority. A column that is missing has a link's own
    default; ``url`` must be there.
    Raises ConfigurationError when the file cannot be read or has unknown columns.
    """
    read = _by_suffix(path, _READERS)
    for where, cells in read(path):
        if isinstance(cells, BadRow):
            yield cells
            continue
        try:
            yield _queued(cells, place, now)
        except ValueError as error:  # msgspec's own is one
            yield BadRow(where, str(error).replace(" - at `$.", ", in column `"))


def _queued(
    cells: Mapping[str, Any], place: Callable[[float], float | None], now: float
) -> QueuedLink:
    row = msgspec.convert(cells, _Row, strict=False)
    texts = (row.url, row.parent or "", row.anchor, row.payload or "")
    if any(map(_SURROGATE.search, texts)):
        raise ValueError("a text is not UTF-8")
    url = normalise(row.url)
    if url is None:
        raise ValueError(f"{row.url!r} is no URL that can be crawled")
    host = host_of(url)
    if row.host not in (None, host):
        raise ValueError(f"the host of {url} is {host}, not {row.host}")
    priority = place(row.score) if row.priority is None else row.priority
    if priority is None:
        raise ValueError("priority is missing: this crawl's does not follow from the score")
    found_at = now if row.found_at is None else row.found_at
    if not all(map(math.isfinite, (priority, row.score, found_at, *row.evidence))):
        raise ValueError("a number is not finite")
    if row.trail >= 1 << 64:
        raise ValueError("trail has more than 64 bits")
    return QueuedLink(
        key=link_key(url) if row.key is None else bytes.fromhex(row.key),
        url=url,
        host=host,
        priority=priority,
        score=row.score,
        depth=row.depth,
        parent=row.parent,
        anchor=row.anchor,
        evidence=row.evidence,
        found_at=found_at,
        tries=row.tries,
        hops=row.hops,
        payload=row.payload,
        trail=row.trail,
    )


def _cells(link: QueuedLink) -> dict[str, Any]:
    fields = msgspec.structs.asdict(link)
    return {**fields, "key": link.key.hex(), "evidence": list(link.evidence)}


def _write_csv(links: Iterable[QueuedLink], path: Path) -> int:
    written = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, SCHEMA.names)
        table.writeheader()
        for link in links:
            cells = _cells(link)
            cells["evidence"] = " ".join(map(repr, cells["evidence"]))
            texts = {name: cell_of_text(cells[name]) for name in _TEXTS if cells[name]}
            table.writerow({**cells, **texts})
            written += 1
    return written


def _write_parquet(links: Iterable[QueuedLink], path: Path) -> int:
    written = 0
    with pq.ParquetWriter(path, SCHEMA) as writer:
        rows = map(_cells, links)
        while batch := list(islice(rows, _ROWS_A_BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))
            written += len(batch)
    return written


def _read_csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any] | BadRow]]:
    # What is not UTF-8 spoils its row, not the file.
    with (
        _readable(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file,
    ):
        table = csv.reader(file, strict=True)
        try:
            names = next(table, [])
        except csv.Error as error:
            raise ConfigurationError(
                f"{path}: its first line is no list of columns: {error}"
            ) from error
        _check_columns(path, names)
        while True:
            where = f"line {table.line_num + 1}"
            try:
                row = next(table)
            except StopIteration:
                return
            except csv.Error as error:
                yield where, BadRow(where, str(error))
                continue
            if len(row) != len(names):
                if row:
                    yield where, BadRow(where, f"{len(row)} cells, not {len(names)}")
                continue
            cells: dict[str, Any] = {
                name: cell for name, cell in zip(names, row, strict=True) if cell
            }
            cells |= {name: text_of_cell(cells[name]) for name in _TEXTS if name in cells}
            if "evidence" in cells:
                cells["evidence"] = cells["evidence"].split()
            yield where, cells


def _read_parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any] | BadRow]]:
    with _readable(path), pq.ParquetFile(path) as file:
        _check_columns(path, file.schema_arrow.names)
        number = 0
        for batch in file.iter_batches(_ROWS_A_BATCH):
            for cells in batch.to_pylist():
                number += 1
                present = {name: cell for name, cell in cells.items() if cell is not None}
                yield f"row {number}", present


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, names: list[str]) -> None:
    unknown = sorted(set(names) - set(SCHEMA.names))
    if unknown:
        raise ConfigurationError(
            f"{path}: unknown columns {', '.join(unknown)}; known are {', '.join(SCHEMA.names)}"
        )
    if "url" not in names:
        raise ConfigurationError(f"{path}: there is no column url")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{path}: a column stands there twice")


def _by_suffix(path: Path, kinds: Mapping[str, _Way]) -> _Way:
    way = kinds.get(path.suffix.lower())
    if way is None:
        raise ConfigurationError(f"{path}: name a .csv or a .parquet file")
    return way


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}
_READERS = {".csv": _read_csv, ".parquet": _read_parquet}
