"""Reading and writing the tables of a state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.storage.state_store import StateStore
from focused.storage.tables import Tables


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    store = StateStore.open(tmp_path / "state", {})
    yield store.tables
    store.close()


def test_the_first_members_of_a_set_are_its_smallest(tables: Tables) -> None:
    for key, member in ((b"a", b"1"), (b"b", b"2"), (b"b", b"1"), (b"b", b"3"), (b"b", b"1")):
        tables.add("queue", key, member)
    assert tables.first_two("queue", b"a") == (b"1", None)
    assert tables.first_two("queue", b"b") == (b"1", b"2")
    assert tables.first_two("queue", b"c") == (None, None)
    assert [tables.first_member("queue", key) for key in (b"a", b"b", b"c")] == [b"1", b"1", None]
    assert [tables.set_size("queue", key) for key in (b"a", b"b", b"c")] == [1, 3, 0]
    assert tables.count("queue") == 4
    assert list(tables.members("queue", b"b")) == [b"1", b"2", b"3"]
    assert list(tables.members("queue", b"c")) == []
    assert list(tables.first_members("queue")) == [(b"a", b"1"), (b"b", b"1")]
    assert tables.discard("queue", b"b", b"1") and not tables.discard("queue", b"b", b"1")
    assert tables.first_two("queue", b"b") == (b"2", b"3")
    assert tables.delete("queue", b"b")
    assert tables.first_two("queue", b"b") == (None, None)


def test_the_floor_of_a_key_is_the_row_at_or_before_it(tables: Tables) -> None:
    assert tables.floor("content", b"b") is None
    for key in (b"b", b"d"):
        tables.put("content", key, b"value of " + key)
    found = {key: tables.floor("content", key) for key in (b"a", b"b", b"c", b"d", b"e")}
    b, d = (b"b", b"value of b"), (b"d", b"value of d")
    assert found == {b"a": None, b"b": b, b"c": b, b"d": d, b"e": d}


def test_a_scan_starts_at_a_key_under_its_prefix(tables: Tables) -> None:
    for key in (b"a1", b"b1", b"b2", b"b3", b"c1"):
        tables.put("content", key, b"")
    assert [key for key, _ in tables.scan("content", b"b", b"b2")] == [b"b2", b"b3"]
    assert [key for key, _ in tables.scan("content", b"b", b"a")] == [b"b1", b"b2", b"b3"]


def test_a_member_is_found_by_how_it_begins(tables: Tables) -> None:
    for member in (b"abc1", b"abd2"):
        tables.add("seen", b"k", member)
    assert tables.member_with("seen", b"k", b"abd") == b"abd2"
    assert tables.member_with("seen", b"k", b"abe") is None
    assert tables.member_with("seen", b"k", b"aaa") is None
    assert tables.member_with("seen", b"other", b"abd") is None


def test_a_row_that_is_not_the_last_is_not_written_as_such(tables: Tables) -> None:
    tables.put("links", b"b", b"", last=True)
    with pytest.raises(ValueError, match="not the last"):
        tables.put("links", b"a", b"", last=True)
