"""Migrate the states of older formats, when a crawl opens them.

A migration is one transaction: a crash leaves the old state or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from focused.storage import environment
from focused.storage.environment import EMPTY, IDENTITY, META
from focused.storage.journal import decode_batches
from focused.storage.rows import add_checksum, checksum_seed, pack, unpack, verify_checksum

_JOURNAL_2_MAGIC = b"focused journal 2\n"
_decode_journal_2 = msgspec.msgpack.Decoder(list[tuple[int, int, bytes, bytes]]).decode
_FORMAT_18_TABLES = (
    "meta", "links", "sources", "host_ids", "hosts", "leased", "robots", "pages", "page_links",
    "payloads", "page_histories", "visits", "training_examples", "scorer_state", "directories",
    "dead_hosts", "content", "sketches", "shingles", "host_shingles", "mirrors", "canonical_urls",
    "canonical_hosts", "signatures", "ignorable_url_parts", "trap_patterns", "closed_patterns",
    "trap_frames", "trap_counts", "site_trust", "page_records", "page_numbers", "released_pages",
    "validator_trust", "signal_trust", "missing_pages", "boilerplate", "boilerplate_pages",
    "revisit_pages", "revisit_due_times", "revisit_groups", "outbox", "queue", "seen",
    "revisit_queue",
)  # fmt: skip
"""The tables that a journal of format 18 names by position."""
_FORMER_COUNTERS = ("second_fetches", "other_pages")
_PUT, _DELETE, _ADD, _DISCARD = range(4)
_OUTCOME = 3
"""The place of the outcome in rows of pages."""
_AT_ONCE = 10_000


def migrate(env: lmdb.Environment, folder: Path, to_format: int) -> None:
    """Bring a state of a format from :data:`focused.storage.environment.OLDEST_FORMAT` up to date.

    Raises lmdb.Error, OSError, ValueError and msgspec.MsgspecError when the files are damaged.
    """
    found = environment.find_identity(env) or {}
    with env.begin(write=True) as txn:
        tables = _OldTables(env, txn)
        for each in range(found["format"], to_format):
            _MIGRATIONS[each](tables, folder)
        tables.put(META, IDENTITY, msgspec.json.encode({**found, "format": to_format}))


class _OldTables:
    """The tables of a state in one transaction of its migration."""

    def __init__(self, env: lmdb.Environment, txn: lmdb.Transaction) -> None:
        self._env, self._txn = env, txn
        self._dbs = environment.open_databases(env, txn)

    def create(self, table: str, *, is_set: bool = False) -> Any:
        if table not in self._dbs:
            self._dbs[table] = environment.create_database(
                self._env, self._txn, table, is_set=is_set
            )
        return self._dbs[table]

    def put(self, table: str, key: bytes, value: bytes, *, is_set: bool = False) -> None:
        stored = add_checksum(checksum_seed(table), key, value)
        self._txn.put(key, stored, db=self.create(table, is_set=is_set))

    def delete(self, table: str, key: bytes) -> None:
        self._txn.delete(key, db=self._dbs[table])

    def repeat(self, operation: int, table: str, key: bytes, value: bytes) -> None:
        """Repeat a step of a journal."""
        if operation in (_PUT, _ADD):
            self.put(table, key, value, is_set=operation == _ADD)
        elif table in self._dbs:
            if operation == _DISCARD:
                stored = add_checksum(checksum_seed(table), key, value)
                self._txn.delete(key, stored, db=self._dbs[table])
            else:
                self.delete(table, key)

    def get_meta(self, key: bytes) -> Any:
        stored = self._txn.get(key, db=self._dbs[META])
        return None if stored is None else msgspec.json.decode(_verified(META, key, bytes(stored)))

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a row's value."""
        stored = self._txn.get(key, db=self._dbs[table]) if table in self._dbs else None
        return None if stored is None else _verified(table, key, bytes(stored))

    def change(self, table: str, new_value: Callable[[bytes, bytes], bytes]) -> None:
        """Replace the values of a table's rows; ``new_value`` takes key and value."""
        if table not in self._dbs:
            return
        with self._txn.cursor(db=self._dbs[table]) as cursor:
            found = cursor.first()
            while found:
                rows = [(bytes(key), bytes(stored)) for key, stored in islice(cursor, _AT_ONCE)]
                for key, stored in rows:
                    self.put(table, key, new_value(key, _verified(table, key, stored)))
                found = cursor.set_range(rows[-1][0] + b"\0")

    def drop(self, table: str) -> None:
        """Remove a table."""
        found = self._dbs.pop(table, None)
        if found is not None:
            self._txn.drop(found)

    def remove(self, table: str, is_removed: Callable[[bytes], bool]) -> None:
        """Remove the rows whose keys ``is_removed``."""
        if table not in self._dbs:
            return
        with self._txn.cursor(db=self._dbs[table]) as cursor:
            keys = [bytes(key) for key in cursor.iternext(values=False)]
        for key in filter(is_removed, keys):
            self.delete(table, key)

    def move(self, source: str, target: str, new_key: Callable[[bytes], bytes | None]) -> None:
        """Move the rows to which ``new_key`` gives a key to another table."""
        if source not in self._dbs:
            return
        with self._txn.cursor(db=self._dbs[source]) as cursor:
            rows = [(bytes(key), bytes(stored)) for key, stored in cursor]
        for key, stored in rows:
            moved = new_key(key)
            if moved is not None:
                self.put(target, moved, _verified(source, key, stored))
                self.delete(source, key)


def _from_format_18(tables: _OldTables, folder: Path) -> None:
    """Name the tables in the journal, and give each feature's rows a table of their own."""
    number = int(tables.get_meta(b"checkpoint") or 0)
    for batch in decode_batches(_journal(folder), number, _decode_journal_2, _JOURNAL_2_MAGIC):
        for operation, position, key, value in batch:
            tables.repeat(operation, _FORMAT_18_TABLES[position], key, value)
    tables.put(META, b"checkpoint", msgspec.json.encode(number + 1))
    tables.create(EMPTY, is_set=True)
    tables.move("site_trust", "site_novelty", lambda key: _without_suffix(key, b"novelty"))
    tables.move("content", "copied_pages", _copied_page_key)
    # Pages are no longer fetched a second time to find cloaking.
    tables.remove("site_trust", lambda key: key.endswith(b"second fetches"))
    tables.remove("site_trust", lambda key: key.startswith(b"second fetch "))
    counters = tables.get_meta(b"counters")
    if counters is not None:  # the crawl has committed
        kept = {name: n for name, n in counters.items() if name not in _FORMER_COUNTERS}
        tables.put(META, b"counters", msgspec.json.encode(kept))
    tables.change("page_records", _without_signal)
    tables.drop("signal_trust")
    # No key is empty: the row of all further hosts had none but the prefix.
    tables.move(META, "javascript_hosts", lambda key: _without_prefix(key, b"javascript/", b"*"))


def _from_format_19(tables: _OldTables, folder: Path) -> None:
    """Give rows of pages the columns of features, which had a table or a place in all rows."""
    number = int(tables.get_meta(b"checkpoint") or 0)
    for batch in decode_batches(_journal(folder), number):
        for table, steps in batch.items():
            for operation, key, value in steps:
                tables.repeat(operation, table, key, value)
    tables.put(META, b"checkpoint", msgspec.json.encode(number + 1))
    tables.change("pages", lambda key, row: _with_added(row, tables.get("page_columns", key)))
    tables.drop("page_columns")
    kinds = tables.get_meta(b"page_columns") or {}
    kinds |= {"spam": "number", "rendered": "flag"}
    tables.put(META, b"page_columns", msgspec.json.encode(kinds))


def _with_added(row: bytes, own: bytes | None) -> bytes:
    """Return a page's row with spam, rendered and the columns of features in one value."""
    *fields, spam, rendered = unpack(row)
    is_page = fields[_OUTCOME] not in ("redirected", "failed")
    added = {"spam": spam, "rendered": rendered} if is_page else {}
    return pack([*fields, added | ({} if own is None else unpack(own))])


def _journal(folder: Path) -> bytes:
    path = folder / "journal"
    return path.read_bytes() if path.exists() else b""


def _without_signal(key: bytes, row: bytes) -> bytes:
    """Return a page's record without its last change signal and what that meant."""
    fields = unpack(row)
    return pack([*fields[:6], *fields[8:]])


def _copied_page_key(key: bytes) -> bytes | None:
    """Return the key of a row that is no content's; contents have keys of 16 bytes."""
    is_row = key.startswith(b"row") and len(key) == 11
    return key if is_row or key.startswith(b"refused for ") else None


def _without_prefix(key: bytes, prefix: bytes, if_empty: bytes = b"") -> bytes | None:
    return (key[len(prefix) :] or if_empty) if key.startswith(prefix) else None


def _without_suffix(key: bytes, suffix: bytes) -> bytes | None:
    return key[: -len(suffix)] if key.endswith(suffix) else None


def _verified(table: str, key: bytes, stored: bytes) -> bytes:
    value = verify_checksum(checksum_seed(table), key, stored)
    if value is None:
        raise ValueError(f"table {table!r}: the row of key {key.hex()} has a wrong checksum")
    return value


_MIGRATIONS: Mapping[int, Callable[[_OldTables, Path], None]] = {
    18: _from_format_18,
    19: _from_format_19,
}
