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
        return with_them.count("seen")
    finally:
        with_them.close()


def write_and_commit(store: StateStore, number: int) -> None:
    store.put("seen", number.to_bytes(4, "big"), b"d")
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
    # Writing down whose state it is was the first commit.
    assert found == [0, 2, 2, 2, 5, 5, 5]
    store.close()
    assert rows_after_a_crash(store, tmp_path / "state") == 7


def test_the_first_row_of_a_prefix_comes_with_the_next_key(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", {})
    for key in (b"a1", b"b2", b"b1", b"c1"):
        store.put("queue", key, key + b"!")
    assert store.first("queue", b"a") == (b"a1", b"a1!", None)
    assert store.first("queue", b"b") == (b"b1", b"b1!", b"b2")
    assert store.first("queue", b"c") == (b"c1", b"c1!", None)
    assert store.first("queue", b"d") is None
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
