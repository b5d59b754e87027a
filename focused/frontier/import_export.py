"""Export queued links to Parquet, and import them.

Works in batches. Export and import keep every field; times to the microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from focused.errors import ConfigurationError, os_errors_as
from focused.files import atomic_write_path
from focused.frontier.queued_link import PAGE, InvalidRow, QueuedLink, link_key
from focused.storage.arrow_columns import TIMESTAMP, rows_as_table, times_as_seconds
from focused.web.urls import host_of, normalize_url

FRONTIER_SCHEMA = pa.schema(
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
        ("found_at", TIMESTAMP),
        ("tag_path_key", pa.uint64()),  # the scorer's own
        ("features", pa.list_(pa.float64())),  # the features behind the score
        ("payload", pa.string()),  # a driver's own request, or null
        ("key", pa.string()),  # of the URL-seen test, 32 hexadecimal digits
        ("purpose", pa.string()),  # "page", or that of a feature
        ("is_exempt", pa.bool_()),  # before all others, and from hosts without budget, too
    ]
)
_ROWS_PER_BATCH = 10_000

_Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Key = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class _LinkCells(msgspec.Struct, frozen=True):
    """A row of an imported file; only ``url`` is required."""

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
    tag_path_key: Annotated[int, msgspec.Meta(ge=0)] = 0
    features: Annotated[tuple[float, ...], msgspec.Meta(max_length=255)] = ()
    payload: str | None = None
    key: _Key | None = None
    purpose: str = PAGE
    is_exempt: bool = False


def export_links(links: Iterable[QueuedLink], path: Path) -> int:
    """Write the links to a Parquet file; return how many.

    Raises ConfigurationError for another suffix, or when the file cannot be written.
    """
    _check_suffix(path)
    written = 0
    unwritable = os_errors_as(ConfigurationError, f"{path} cannot be written")
    with (
        unwritable,
        atomic_write_path(path) as part,
        pq.ParquetWriter(part, FRONTIER_SCHEMA) as writer,
    ):
        rows = map(_cells, links)
        while batch := list(islice(rows, _ROWS_PER_BATCH)):
            writer.write_table(rows_as_table(batch, FRONTIER_SCHEMA))
            written += len(batch)
    return written


def read_links(
    path: Path, priority_of: Callable[[float], float | None], now: float
) -> Iterator[QueuedLink | InvalidRow]:
    """Yield the links of a Parquet file, and invalid rows.

    ``priority_of`` returns the priority of a score, or None, for rows without a priority. Missing
    columns have defaults, except ``url``. Raises ConfigurationError when the file cannot be read or
    has unknown columns.
    """
    _check_suffix(path)
    with _read_errors(path), pq.ParquetFile(path) as file:
        _check_columns(path, file.schema_arrow.names)
        number = 0
        for batch in file.iter_batches(_ROWS_PER_BATCH):
            for cells in times_as_seconds(batch).to_pylist():
                number += 1
                present = {name: cell for name, cell in cells.items() if cell is not None}
                try:
                    yield _queued_link(present, priority_of, now)
                except ValueError as error:  # msgspec's own is one
                    problem = str(error).replace(" - at `$.", ", in column `")
                    yield InvalidRow(f"row {number}", problem)


def _queued_link(
    cells: Mapping[str, Any], priority_of: Callable[[float], float | None], now: float
) -> QueuedLink:
    row = msgspec.convert(cells, _LinkCells, strict=False)
    url = normalize_url(row.url)
    if url is None:
        raise ValueError(f"{row.url!r} is no URL that can be crawled")
    host = host_of(url)
    if row.host not in (None, host):
        raise ValueError(f"the host of {url} is {host}, not {row.host}")
    priority = priority_of(row.score) if row.priority is None else row.priority
    if priority is None:
        raise ValueError("priority is missing, and scores don't determine it in this crawl")
    found_at = now if row.found_at is None else row.found_at
    if not all(map(math.isfinite, (priority, row.score, found_at, *row.features))):
        raise ValueError("a number is not finite")
    if row.tag_path_key >= 1 << 64:
        raise ValueError("tag_path_key has more than 64 bits")
    key = link_key(url) if row.key is None else bytes.fromhex(row.key)
    values = {"key": key, "url": url, "host": host, "priority": priority, "found_at": found_at}
    return QueuedLink(**(msgspec.structs.asdict(row) | values))


def _cells(link: QueuedLink) -> dict[str, Any]:
    fields = msgspec.structs.asdict(link)
    return {**fields, "key": link.key.hex(), "features": list(link.features)}


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, names: list[str]) -> None:
    unknown = sorted(set(names) - set(FRONTIER_SCHEMA.names))
    if unknown:
        raise ConfigurationError(
            f"{path}: unknown columns {', '.join(unknown)}; "
            f"known are {', '.join(FRONTIER_SCHEMA.names)}"
        )
    if "url" not in names:
        raise ConfigurationError(f"{path}: the column url is missing")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{path}: a column occurs twice")


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{path}: name a .parquet file")
