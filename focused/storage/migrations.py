"""Migrate the states of older formats, when a crawl opens them.

A migration is one transaction: a crash leaves the old state or the new one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import numpy as np

from focused.storage import environment
from focused.storage.environment import IDENTITY, META, WriteGuard
from focused.storage.journal import decode_batches
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables

_OUTCOME = 3
"""The place of the outcome in rows of pages."""
_WEIGHT = 6
"""The place of the weight in records of pages that are visited again, up to format 20."""
_AT_ONCE = 10_000


def migrate(env: lmdb.Environment, folder: Path, to_format: int) -> None:
    """Bring a state of a format from :data:`focused.storage.environment.OLDEST_FORMAT` up to date.

    Raises lmdb.Error, OSError, ValueError and msgspec.MsgspecError when the files are damaged, and
    StateError as :class:`Tables`.
    """
    found = environment.find_identity(env) or {}
    tables = Tables(env, WriteGuard(folder), read_only=False, record_steps=False)
    try:
        _replay_journal(tables, folder / "journal")
        for each in range(found["format"], to_format):
            _MIGRATIONS[each](tables)
        tables.put(META, IDENTITY, msgspec.json.encode({**found, "format": to_format}))
        tables.commit_transaction()
    finally:
        tables.abort()


def _replay_journal(tables: Tables, journal: Path) -> None:
    number = int(tables.get_meta("checkpoint") or 0)
    for batch in decode_batches(journal.read_bytes() if journal.exists() else b"", number):
        tables.replay(batch)
    tables.put_meta("checkpoint", number + 1)


def _rows(tables: Tables, table: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a table, which may be written meanwhile."""
    start = b""
    while rows := list(islice(tables.scan(table, start=start), _AT_ONCE)):
        yield from rows
        start = rows[-1][0] + b"\0"


def _from_format_19(tables: Tables) -> None:
    """Give rows of pages the columns of features, which had a table or a place in all rows."""
    for key, row in _rows(tables, "pages"):
        tables.put("pages", key, _with_added(row, tables.get("page_columns", key)))
    tables.drop("page_columns")
    kinds = tables.get_meta("page_columns") or {}
    tables.put_meta("page_columns", kinds | {"spam": "number", "rendered": "flag"})


def _with_added(row: bytes, own: bytes | None) -> bytes:
    """Return a page's row with spam, rendered and the columns of features in one value."""
    *fields, spam, rendered = unpack(row)
    is_page = fields[_OUTCOME] not in ("redirected", "failed")
    added = {"spam": spam, "rendered": rendered} if is_page else {}
    return pack([*fields, added | ({} if own is None else unpack(own))])


def _from_format_20(tables: Tables) -> None:
    """Give each page of a collection two rows, of what is stored and of when it is due, not four.

    Schedules had blocks of up to 16 pages of a site, and rows of due times of 64 pages.
    """
    for key, row in _rows(tables, "revisit_pages"):
        for page, (schedule, policy) in _records_of_block(row):
            number = page.to_bytes(4, "big")
            due_times = tables.get("revisit_due_times", (page // 64).to_bytes(4, "big")) or b""
            due = int.from_bytes(due_times[8 * (page % 64) + 4 :][:4], "big")
            record = tables.get("page_records", page.to_bytes(8, "big"))
            weight = None if record is None else struct.pack("<d", unpack(record)[_WEIGHT])
            site = int.from_bytes(key[:4], "big")
            tables.put("scheduled_pages", number, pack([site, due, schedule, policy, weight]))
            tables.add("pages_by_site", key[:4], number)
    for key, row in _rows(tables, "page_records"):
        history = tables.get("page_histories", key)
        if history is not None:
            record = unpack(row)
            del record[_WEIGHT]
            tables.put("page_histories", key, pack([*unpack(history), *record]))
    for table in ("revisit_pages", "revisit_due_times", "page_records"):
        tables.drop(table)


def _records_of_block(block: bytes) -> Iterator[tuple[int, Sequence[bytes | None]]]:
    """Yield the page numbers of a block, and a record of each of the two kinds, None for zeros."""
    count, *sizes = block[:3]
    end = 3 + 4 * count
    columns: list[list[bytes | None]] = []
    for size in sizes:
        records = [block[end + size * at : end + size * (at + 1)] for at in range(count)]
        columns.append([record if any(record) else None for record in records])
        end += size * count
    return zip(struct.unpack_from(f"<{count}I", block, 3), zip(*columns, strict=True), strict=True)


_FEATURES = 18
"""The features of a link up to format 21."""
_KEPT_FEATURES = (0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 17)
_FEATURES_OF_LINK, _FEATURES_OF_EXAMPLE, _WORDS_OF_EXAMPLE = 4, 4, 5
_SCORER_STATE = b"state"


def _from_format_21(tables: Tables) -> None:
    """Take from links, examples and scorer what is no feature any more (decision 0093)."""
    state = tables.get("scorer_state", _SCORER_STATE)
    learned = None if state is None else _apprentice_state(state[8:])
    is_users = state is not None and learned is None  # and so are the features
    if state is not None and learned is not None:
        tables.put("scorer_state", _SCORER_STATE, state[:8] + pack(_without_words(learned)))
    for key, row in _rows(tables, "training_examples"):
        example = unpack(row)
        if not is_users:
            example[_FEATURES_OF_EXAMPLE] = _kept(example[_FEATURES_OF_EXAMPLE])
        del example[_WORDS_OF_EXAMPLE]
        tables.put("training_examples", key, pack(example))
    for key, row in () if is_users else _rows(tables, "links"):
        link = unpack(row)
        features = link[_FEATURES_OF_LINK]
        if isinstance(features, bytes):  # two for each, in half precision
            pairs = [features[at : at + 2] for at in range(0, len(features), 2)]
            link[_FEATURES_OF_LINK] = b"".join(_kept(pairs))
        else:
            link[_FEATURES_OF_LINK] = _kept(features)
        tables.put("links", key, pack(link))


def _kept(features: Sequence[Any]) -> Sequence[Any]:
    return [features[at] for at in _KEPT_FEATURES] if len(features) == _FEATURES else features


def _apprentice_state(state: bytes) -> dict[str, Any] | None:
    """Return the decoded state of the apprentice; None for that of a user's own scorer."""
    try:
        found = msgspec.msgpack.decode(state)
    except msgspec.MsgspecError:
        return None
    return found if isinstance(found, dict) and "link_words" in found else None


def _without_words(learned: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the apprentice without running means by word."""
    links, relevance, *_ = learned.pop("link_words")
    del learned["page_words"]
    for positions in ("siblings", "tag_paths"):
        learned[positions] = [links, relevance, *learned[positions]]
    seen, weights, bias, examples = learned["correction"]
    columns = np.frombuffer(examples, "<f8").reshape(_FEATURES + 1, -1)
    kept = columns[[*_KEPT_FEATURES, _FEATURES]].tobytes()  # the last one is the relevance
    learned["correction"] = [seen, _kept(weights), bias, kept]
    return learned


_MIGRATIONS: Mapping[int, Callable[[Tables], None]] = {
    19: _from_format_19,
    20: _from_format_20,
    21: _from_format_21,
}
