"""Times are UTC timestamps in files and seconds since the epoch in memory."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.archive.parquet import PAGES_SCHEMA, VISITS_SCHEMA
from focused.frontier.import_export import FRONTIER_SCHEMA
from focused.storage.arrow_columns import TIMESTAMP, rows_as_table, times_as_seconds

SCHEMA = pa.schema([("url", pa.string()), ("at", TIMESTAMP)])
NOON_S = 1_717_243_200.5
NOON = datetime(2024, 6, 1, 12, 0, 0, 500_000, UTC)


def stored(folder: Path, table: pa.Table) -> pa.Table:
    pq.write_table(table, folder / "a.parquet")
    return pq.read_table(folder / "a.parquet")


def test_a_time_is_a_timestamp_in_the_file_and_seconds_in_memory(tmp_path):
    table = stored(tmp_path, rows_as_table([{"url": "a", "at": NOON_S}, {"url": "b"}], SCHEMA))
    assert table["at"].to_pylist() == [NOON, None]
    assert times_as_seconds(table).to_pylist() == [
        {"url": "a", "at": NOON_S},
        {"url": "b", "at": None},
    ]


@given(st.floats(-62e9, 250e9))
def test_a_time_keeps_its_microseconds(seconds):
    (row,) = times_as_seconds(rows_as_table([{"at": seconds}], SCHEMA)).to_pylist()
    assert row["at"] == pytest.approx(seconds, rel=1e-15, abs=0.6e-6)
    (again,) = times_as_seconds(rows_as_table([row], SCHEMA)).to_pylist()
    assert again == row


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_other_programs_are_read(unit, zone):
    column = pa.array([int(NOON_S)], pa.int64()).cast(pa.timestamp("s", tz=zone))
    batch = pa.record_batch([column.cast(pa.timestamp(unit, tz=zone))], names=["at"])
    assert times_as_seconds(batch).to_pylist() == [{"at": int(NOON_S)}]


def test_seconds_of_earlier_versions_stay_as_they_are():
    table = pa.table({"at": [NOON_S, None]})
    assert times_as_seconds(table).equals(table)


@pytest.mark.parametrize("schema", [PAGES_SCHEMA, VISITS_SCHEMA, FRONTIER_SCHEMA])
def test_each_time_in_a_file_is_a_timestamp(schema):
    times = {"at", "first_seen", "last_seen", "last_changed"}
    named = [field for field in schema if field.name in times or field.name.endswith("_at")]
    assert named
    assert {field.type for field in named} == {TIMESTAMP}
