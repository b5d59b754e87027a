"""Read tables, settings and statistics of finished, killed and running crawls alike.

:mod:`focused.archive.parquet` declares the columns of the tables, and writes them. Those of a crawl
of many partitions are folders with a file for each partition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from focused.archive.archive import HISTORY_COLUMNS, PAGE_COLUMNS, PageRow
from focused.archive.parquet import (
    LINKS_SCHEMA,
    PAGES_SCHEMA,
    VISITS_SCHEMA,
    write_parquet_files,
)
from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.errors import StateError, StateFormatError
from focused.storage.arrow_columns import times_as_seconds
from focused.storage.state_store import StateStore
from focused.topic import Scope, scope_from_json
from focused.web.urls import normalize_url


@contextmanager
def open_tables(folder: Path) -> Iterator[Path]:
    """Yield a folder with up-to-date Parquet files: the crawl's own, or a temporary one.

    A temporary export is needed where the crawl's own files lack rows: it was killed, is still
    running, or writes no Parquet. Of a state that another version wrote, the crawl's own files are
    used. Raises :class:`StateError` when the crawl cannot be read.
    """
    if not folder.is_dir():
        raise StateError(f"{folder}: no such folder; pass a crawl's [output] folder")
    if any((folder / "state").glob("partition-*")) and not (folder / "pages").exists():
        raise StateError(
            f"{folder}: no partition of this crawl has ended; read what it has committed by: "
            f"focused download {folder.absolute().as_uri()} FOLDER"
        )
    with ExitStack() as stack:
        own = folder
        if (folder / PARTITIONS_FOLDER).is_dir():
            own = _of_partitions(folder, stack)
        elif (folder / "state" / "data.mdb").is_file():
            own = _up_to_date(folder, stack)
        yield own


def _of_partitions(folder: Path, stack: ExitStack) -> Path:
    """Return a folder with a file of each partition in the folder of each table."""
    tables = Path(stack.enter_context(TemporaryDirectory(prefix="focused-")))
    for state in sorted(folder.glob(f"{PARTITIONS_FOLDER}/*/state/data.mdb")):
        partition = state.parents[1]
        for path in _up_to_date(partition, stack).glob("*.parquet"):
            (tables / path.stem).mkdir(exist_ok=True)
            (tables / path.stem / f"{partition.name}.parquet").symlink_to(path.absolute())
    return tables


def _up_to_date(folder: Path, stack: ExitStack) -> Path:
    try:
        with StateStore.open_for_reading(folder / "state") as (store, _):
            pages, visits = store.tables.count("pages"), store.tables.count("visits")
            if _count_rows(folder / "pages.parquet") == pages and (
                not visits or _count_rows(folder / "visits.parquet") == visits
            ):
                return folder
            own = Path(stack.enter_context(TemporaryDirectory(prefix="focused-")))
            write_parquet_files(store.tables, own)
            return own
    except StateFormatError:
        if _count_rows(folder / "pages.parquet") is None:
            raise
        return folder


def _count_rows(path: Path) -> int | None:
    """Number of rows of a Parquet file; None when it is unreadable."""
    try:
        rows: int = pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError):
        return None
    return rows


class _Seeds(TypedDict, total=False):
    urls: list[str]


class _Training(TypedDict, total=False):
    good: list[str]
    labels: str | None
    link_prior: str


class _Politeness(TypedDict, total=False):
    robots: bool


class _Topic(TypedDict, total=False):
    name: str
    path: str
    seeds: _Seeds
    training: _Training
    politeness: _Politeness
    scope: dict[str, Any]


class _Settings(TypedDict, total=False):
    topic: _Topic
    policy: str
    web: str | None


def read_settings(folder: Path) -> Mapping[str, Any]:
    """Read the settings of the last run; empty without the file. Raises :class:`StateError`.

    What others read of them has its type, if it is there.
    """
    return read_json(folder / "settings.json", _Settings)


_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)]
_Number = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
_Counts = dict[str, _Count]


class _Trap(TypedDict):
    site: str
    kind: str
    pages: _Count
    links: _Count


class _Blocked(TypedDict, total=False):
    longest_s: _Number
    times: _Count
    threshold_s: _Number


class _Profile(TypedDict, total=False):
    pages: _Count
    elapsed_s: _Number
    cpu_s: _Number
    stages: dict[str, _Number]
    parser_processes: _Count
    pages_parsed_in_processes: _Count
    parser_process_s: _Number
    reactor_blocked: _Blocked


class _Stats(TypedDict, total=False):
    fetched: _Count
    on_topic: _Count
    classified: _Count
    spam: _Count | _Counts
    nofollow: _Count | _Counts
    links_over_limit: _Count | _Counts
    robots_excluded: _Count | _Counts
    unrecorded_hosts: _Count | _Counts
    frontier: _Count | _Counts
    failures: _Counts
    out_of_scope: _Counts
    javascript: _Counts
    javascript_hosts: _Counts
    mirrors: dict[str, str]
    long_crawl_delays: dict[str, _Number]
    traps: list[_Trap]
    active_s: _Number
    started_at: _Number
    ended_at: _Number
    end_reason: str
    profile: _Profile | None


def read_stats(folder: Path) -> Mapping[str, Any]:
    """Read the statistics of the last stop, as :func:`read_settings`; empty after a kill."""
    return read_json(folder / "stats.json", _Stats)


def read_scope(folder: Path) -> Scope | None:
    """Read the scope of the last run; None if it is unknown. Raises :class:`StateError`."""
    topic = read_settings(folder).get("topic")
    try:
        scope = None if topic is None else scope_from_json(topic)
        for pattern in () if scope is None else (*scope.allow_paths, *scope.deny_paths):
            re.compile(pattern)
    except (ValueError, re.error) as error:
        raise _damaged(folder / "settings.json", error) from None
    return scope


_ROWS_AT_ONCE = 4_096


def table_files(tables: Path, name: str) -> list[Path]:
    """Return the Parquet files of a table: one of the crawl, or one of each partition."""
    return sorted((tables / name).glob("*.parquet")) or [tables / f"{name}.parquet"]


_SCHEMAS = {"pages": PAGES_SCHEMA, "links": LINKS_SCHEMA, "visits": VISITS_SCHEMA}
_KNOWN = frozenset(
    {"seq", "url", "host", "outcome", "fetched_at", "source", "target", "page", "at", "result"}
)
"""Columns in which each row has a value."""
_Columns = TypeVar("_Columns", pa.Table, pa.RecordBatch)


def stored_columns(path: Path, table: str, columns: Collection[str]) -> list[str]:
    """Return those of some ``columns`` that a file of a table has.

    It may lack :data:`HISTORY_COLUMNS`. Raises StateError if it lacks others, or if a column has
    another type.
    """
    with readable_table(path):
        stored = pq.read_schema(path)
    found = [name for name in columns if stored.names.count(name) == 1]
    if missing := set(columns).difference(found, HISTORY_COLUMNS):
        raise _foreign(path, f"lacks the columns {', '.join(sorted(missing))}")
    for name in found:
        kind, expected = stored.field(name).type, _SCHEMAS[table].field(name).type
        if _comparable(kind) != _comparable(expected):
            raise _foreign(path, f"its column {name} has the type {kind}, not {expected}")
    return found


def _comparable(kind: pa.DataType) -> pa.DataType:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    # Files of earlier versions hold times in seconds.
    if is_number or pa.types.is_timestamp(kind):
        return pa.float64()
    return pa.string() if pa.types.is_large_string(kind) else kind


def _foreign(path: Path, problem: str) -> StateError:
    return StateError(f"{path}: {problem}; it was written by another program or version")


def complete_columns(found: _Columns, path: Path, table: str, columns: Collection[str]) -> _Columns:
    """Return what was read of a file, with times as seconds and the columns that the file lacks.

    These are null. Raises StateError for a row without what each row has, and for one with nan.
    """
    for name in sorted(set(columns).difference(found.schema.names)):
        found = found.append_column(name, pa.nulls(len(found), _SCHEMAS[table].field(name).type))
    found = times_as_seconds(found)
    for name in columns:
        values = found.column(name)
        is_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
        if is_nan or (name in _KNOWN and values.null_count):
            raise _foreign(path, f"has rows without {name}")
    return found


def read_page_rows(tables: Path, urls: Collection[str] | None = None) -> Iterator[PageRow]:
    """Yield the pages of all partitions, or those of ``urls`` alone.

    Only the latter have ``features``, which are large. Raises :class:`StateError`.
    """
    columns = [name for name in PAGE_COLUMNS if urls is not None or name != "features"]
    chosen = None if urls is None else [("url", "in", list(urls))]
    for path in table_files(tables, "pages"):
        stored_columns(path, "pages", columns)
        with readable_table(path):
            table = pq.read_table(path, columns=columns, filters=chosen)
        for batch in complete_columns(table, path, "pages", columns).to_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                known = {name: value for name, value in row.items() if value is not None}
                known["features"] = dict(row.get("features") or ())
                yield PageRow(**{**_UNKNOWN, **known})


_UNKNOWN: Mapping[str, Any] = {
    "score": 0.0, "depth": 0, "parent": None, "anchor": "", "found_at": 0.0, "policy": ""
}  # fmt: skip


@contextmanager
def readable_table(path: Path) -> Iterator[None]:
    """Turn what prevents reading a table's file into a StateError that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise StateError(
            f"{path}: is missing; this is no crawl's folder, or its topic sets parquet = false"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"{path}: is damaged ({first_line(error)}); resume the crawl to write it again"
        ) from None


def read_json(path: Path, shape: Any = dict[str, Any]) -> dict[str, Any]:
    """Read a JSON object of a crawl's folder; empty without the file. Raises StateError.

    ``shape`` is a type by which msgspec checks the object.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        msgspec.convert(value, shape)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    return value


def _damaged(path: Path, error: Exception) -> StateError:
    return StateError(f"{path}: is damaged ({first_line(error)}); delete it to go on without it")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, else its type."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def url_spellings(url: str) -> list[str]:
    """Return how tables may spell a URL: as typed, then normalised as the crawl does."""
    typed = url.strip()
    tried = [typed, normalize_url(typed)]
    if "://" not in typed:
        tried += [normalize_url(f"https://{typed}"), normalize_url(f"http://{typed}")]
    return list(dict.fromkeys(spelling for spelling in tried if spelling))
