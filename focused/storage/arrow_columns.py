"""Rows as columns of Parquet files, and back.

Times are seconds since the epoch in memory, and UTC timestamps of microseconds in files. Files of
earlier versions hold the seconds. pyarrow is slow to import: crawls import this module at their
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

TIMESTAMP = pa.timestamp("us", tz="UTC")
_PER_SECOND = 1e6

_Columns = TypeVar("_Columns", pa.Table, pa.RecordBatch)


def arrow_table(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return a table of a schema, from values by column name; times are seconds since the epoch.

    Raises pyarrow.ArrowException for a time outside the years -290,308 to 294,247.
    """
    arrays = [_array(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_as_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return a table of a schema, from rows; what a row lacks is null."""
    return arrow_table({name: [row.get(name) for row in rows] for name in schema.names}, schema)


def times_as_seconds(columns: _Columns) -> _Columns:
    """Return a table or batch that was read, with its timestamps as seconds since the epoch."""
    for number, field in enumerate(columns.schema):
        if pa.types.is_timestamp(field.type):
            seconds = _seconds(columns.column(number))
            columns = columns.set_column(number, field.name, seconds)
    return columns


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        ticks = pc.round(pc.multiply(pa.array(values, pa.float64()), _PER_SECOND))
        return ticks.cast(pa.int64()).cast(kind)
    if not pa.types.is_map(kind):
        return pa.array(values, kind)
    maps = [value or {} for value in values]
    ends = [0, *accumulate(map(len, maps))]
    keys = pa.array(chain.from_iterable(maps), kind.key_type)
    items = pa.array(chain.from_iterable(map(dict.values, maps)), kind.item_type)
    return pa.MapArray.from_arrays(ends, keys, items)


def _seconds(column: Any) -> Any:
    """Return timestamps of any unit as seconds."""
    ticks = column.cast(TIMESTAMP, safe=False).cast(pa.int64())
    return pc.divide(ticks.cast(pa.float64(), safe=False), _PER_SECOND)
