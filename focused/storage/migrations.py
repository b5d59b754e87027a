"""Migrate the states of older formats, when a crawl opens them.

A migration is one transaction: a crash leaves the old state or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

import lmdb
import msgspec

from focused.storage import environment
from focused.storage.environment import IDENTITY, META, WriteGuard
from focused.storage.journal import decode_batches
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables

_OUTCOME = 3
"""The place of the outcome in rows of pages."""
_AT_ONCE = 10_000


def migrate(env: lmdb.Environment, folder: Path, to_format: int) -> None:
    """Bring a state of a format from :data:`focused.storage.environment.OLDEST_FORMAT` up to date.

    Raises lmdb.Error, OSError, ValueError and msgspec.MsgspecError when the files are damaged, and
    StateError as :class:`Tables`.
    """
    found = environment.find_identity(env) or {}
    tables = Tables(env, WriteGuard(folder), read_only=False, record_steps=False)
    try:
        for each in range(found["format"], to_format):
            _MIGRATIONS[each](tables, folder)
        tables.put(META, IDENTITY, msgspec.json.encode({**found, "format": to_format}))
        tables.commit_transaction()
    finally:
        tables.abort()


def _from_format_19(tables: Tables, folder: Path) -> None:
    """Give rows of pages the columns of features, which had a table or a place in all rows."""
    journal, number = folder / "journal", int(tables.get_meta("checkpoint") or 0)
    for batch in decode_batches(journal.read_bytes() if journal.exists() else b"", number):
        tables.replay(batch)
    tables.put_meta("checkpoint", number + 1)
    start = b""
    while rows := list(islice(tables.scan("pages", start=start), _AT_ONCE)):
        for key, row in rows:
            tables.put("pages", key, _with_added(row, tables.get("page_columns", key)))
        start = rows[-1][0] + b"\0"
    tables.drop("page_columns")
    kinds = tables.get_meta("page_columns") or {}
    tables.put_meta("page_columns", kinds | {"spam": "number", "rendered": "flag"})


def _with_added(row: bytes, own: bytes | None) -> bytes:
    """Return a page's row with spam, rendered and the columns of features in one value."""
    *fields, spam, rendered = unpack(row)
    is_page = fields[_OUTCOME] not in ("redirected", "failed")
    added = {"spam": spam, "rendered": rendered} if is_page else {}
    return pack([*fields, added | ({} if own is None else unpack(own))])


_MIGRATIONS: Mapping[int, Callable[[Tables, Path], None]] = {19: _from_format_19}
