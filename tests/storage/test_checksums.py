"""A damaged row is an error when it is read, never a wrong result."""

from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from focused.errors import StateError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.environment import MAX_TABLES
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables

URL = "http://a.test/1"
LINK = QueuedLink(link_key(URL), URL, "a.test", 0.5, 0.5)
KEY, MEMBER = b"key", b"member"


def flip_a_bit(stored: bytes, at: int) -> bytes:
    return stored[:at] + bytes([stored[at] ^ 4]) + stored[at + 1 :]


def damage_value(folder: Path, table: str, at: int) -> None:
    """Flip a bit of the only row's value, or of the only set's only member."""
    _replace(folder, table, lambda key, stored: (key, flip_a_bit(stored, at)))


def damage_key(folder: Path, table: str) -> None:
    _replace(folder, table, lambda key, stored: (flip_a_bit(key, 0), stored))


def _replace(folder: Path, table: str, how: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> None:
    with lmdb.open(str(folder), map_size=1 << 40, max_dbs=MAX_TABLES) as env:
        database = env.open_db(table.encode(), create=False)
        with env.begin(write=True, db=database) as txn:
            [(key, stored)] = list(txn.cursor())
            txn.delete(key)
            txn.put(*how(key, stored))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state with one row in a table and one member in a set."""
    folder = tmp_path / "mine" / "state"
    store = StateStore.open(folder, {})
    store.tables.put("content", KEY, b"value")
    store.tables.add("queue", KEY, MEMBER)
    store.close()
    return folder


ROW_READS: dict[str, Callable[[Tables], object]] = {
    "get": lambda tables: tables.get("content", KEY),
    "get_many": lambda tables: tables.get_many("content", [KEY]),
    "scan": lambda tables: list(tables.scan("content")),
    "last_key": lambda tables: tables.last_key("content"),
}
MEMBER_READS: dict[str, Callable[[Tables], object]] = {
    "first_two": lambda tables: tables.first_two("queue", KEY),
    "members": lambda tables: list(tables.members("queue", KEY)),
    "members from a start": lambda tables: list(tables.members("queue", KEY, MEMBER[:1])),
    "members_with": lambda tables: tables.members_with("queue", [(KEY, MEMBER[:2])]),
    "first_members": lambda tables: list(tables.first_members("queue")),
}


@pytest.mark.parametrize("opening", [StateStore.reopen, StateStore.view])
@pytest.mark.parametrize("at", range(len(b"value") + 4))
@pytest.mark.parametrize("read", ROW_READS)
def test_a_row_with_a_flipped_bit_is_refused_by_each_way_to_read_it(folder, read, at, opening):
    damage_value(folder, "content", at)
    store = opening(folder)
    with pytest.raises(StateError, match="table 'content'") as raised:
        ROW_READS[read](store.tables)
    assert str(folder) in str(raised.value)
    assert f"focused crawl --check {folder.parent}" in str(raised.value)
    store.close()


@pytest.mark.parametrize("at", range(2, len(MEMBER) + 4))  # before: another place in the order
@pytest.mark.parametrize("read", MEMBER_READS)
def test_a_member_with_a_flipped_bit_is_refused_by_each_way_to_read_it(folder, read, at):
    damage_value(folder, "queue", at)
    store = StateStore.reopen(folder)
    with pytest.raises(StateError, match="table 'queue'"):
        MEMBER_READS[read](store.tables)
    store.close()


@pytest.mark.parametrize(
    ("table", "read"),
    [
        ("content", lambda tables: list(tables.scan("content"))),
        ("queue", lambda tables: list(tables.first_members("queue"))),
    ],
)
def test_a_row_under_a_damaged_key_is_refused(folder, table, read):
    damage_key(folder, table)
    store = StateStore.reopen(folder)
    with pytest.raises(StateError, match=f"table '{table}'"):
        read(store.tables)
    store.close()


def test_a_row_of_another_table_is_refused(folder):
    store = StateStore.reopen(folder)
    store.tables.put("pages", KEY, b"value")
    store.close()
    with lmdb.open(str(folder), map_size=1 << 40, max_dbs=MAX_TABLES) as env:
        pages = env.open_db(b"pages", create=False)
        content = env.open_db(b"content", create=False)
        with env.begin(write=True) as txn:
            txn.put(KEY, txn.get(KEY, db=pages), db=content)
    store = StateStore.reopen(folder)
    assert store.tables.get("pages", KEY) == b"value"
    with pytest.raises(StateError, match="table 'content'"):
        store.tables.get("content", KEY)
    store.close()


def test_after_a_damaged_row_was_read_nothing_is_written(folder):
    damage_value(folder, "content", 0)
    store = StateStore.reopen(folder)
    before = (folder / "data.mdb").read_bytes(), (folder / "journal").read_bytes()
    store.tables.put("pages", KEY, b"new")
    with pytest.raises(StateError):
        store.tables.get("content", KEY)
    with pytest.raises(StateError, match="table 'content'"):
        store.commit()
    store.close()
    assert before == ((folder / "data.mdb").read_bytes(), (folder / "journal").read_bytes())


@pytest.mark.parametrize("table", ["host_ids", "links", "sources"])
def test_a_frontier_whose_rows_do_not_fit_together_is_damaged(tmp_path, table):
    store = StateStore.open(tmp_path / "state", {})
    frontier = DiskFrontier(store.tables)
    frontier.push(LINK, 1.0)
    frontier.save()
    for key in [key for key, _ in store.tables.scan(table)]:
        store.tables.delete(table, key)
    store.close()
    store = StateStore.reopen(tmp_path / "state")
    with pytest.raises(StateError, match="is damaged"):
        DiskFrontier(store.tables).offer(2.0)
    store.close()
