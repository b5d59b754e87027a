"""When what was written is true: at each commit, or at each so manieth."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from focused.errors import StateError
from focused.frontier import store as store_module
from focused.frontier.store import StateStore


def rows_after_a_crash(store: StateStore, folder: Path) -> int:
    """How many rows a process would find that opens the files as they are now."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with_them = StateStore.reopen(copy)
    try:
        return with_them.count("content")
    finally:
        with_them.close()


def write_and_commit(store: StateStore, number: int) -> None:
    store.put("content", number.to_bytes(4, "big"), b"d")
    store.commit()


def test_a_commit_makes_what_was_written_true(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", {})
    for number in range(3):
        write_and_commit(store, number)
        assert rows_after_a_crash(store, tmp_path / "state") == number + 1
    store.close()


def test_where_only_each_third_commit_counts_it_takes_the_others_along(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", {}, commit_every=3)
    found = []
    for number in range(7):
        write_and_commit(store, number)
        found.append(rows_after_a_crash(store, tmp_path / "state"))
    assert found == [0, 0, 3, 3, 3, 6, 6]
    store.close()
    assert rows_after_a_crash(store, tmp_path / "state") == 7


def test_the_first_members_of_a_set_are_its_smallest(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", {})
    for key, member in ((b"a", b"1"), (b"b", b"2"), (b"b", b"1"), (b"b", b"3"), (b"b", b"1")):
        store.add("queue", key, member)
    assert store.first_two("queue", b"a") == (b"1", None)
    assert store.first_two("queue", b"b") == (b"1", b"2")
    assert store.first_two("queue", b"c") == (None, None)
    assert [store.size_of("queue", key) for key in (b"a", b"b", b"c")] == [1, 3, 0]
    assert store.count("queue") == 4
    assert list(store.members("queue", b"b")) == [b"1", b"2", b"3"]
    assert list(store.members("queue", b"c")) == []
    assert list(store.firsts("queue")) == [(b"a", b"1"), (b"b", b"1")]
    assert store.discard("queue", b"b", b"1") and not store.discard("queue", b"b", b"1")
    assert store.first_two("queue", b"b") == (b"2", b"3")
    assert store.delete("queue", b"b")
    assert store.first_two("queue", b"b") == (None, None)
    store.close()


def test_a_member_is_found_by_how_it_begins(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", {})
    for member in (b"abc1", b"abd2"):
        store.add("seen", b"k", member)
    assert store.member_with("seen", b"k", b"abd") == b"abd2"
    assert store.member_with("seen", b"k", b"abe") is None
    assert store.member_with("seen", b"k", b"aaa") is None
    assert store.member_with("seen", b"other", b"abd") is None
    store.close()


def test_state_of_an_older_program_is_refused_by_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(store_module, "FORMAT_VERSION", store_module.FORMAT_VERSION - 1)
        StateStore.open(tmp_path / "state", {}).close()
    ours = store_module.FORMAT_VERSION
    with pytest.raises(StateError, match=f"its format is {ours - 1}, not {ours}"):
        StateStore.open(tmp_path / "state", {})
