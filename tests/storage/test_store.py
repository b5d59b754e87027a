"""Commits of the state store: each one, or every n-th."""

import contextlib
import errno
import gc
import os
import shutil
import stat
import weakref
from pathlib import Path

import lmdb
import pytest

from focused.errors import StateError
from focused.frontier.state_check import check_state
from focused.storage import environment
from focused.storage.journal import Journal
from focused.storage.state_store import StateStore


def rows_after_a_crash(store: StateStore, folder: Path) -> int:
    """How many rows a process would find that opens the files as they are now."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with_them = StateStore.reopen(copy)
    try:
        return with_them.tables.count("content")
    finally:
        with_them.close()


def write_and_commit(store: StateStore, number: int) -> None:
    store.tables.put("content", number.to_bytes(4, "big"), b"d")
    store.commit()


def test_a_commit_makes_what_was_written_true(store, tmp_path):
    for number in range(3):
        write_and_commit(store, number)
        assert rows_after_a_crash(store, tmp_path / "state") == number + 1


def test_where_only_each_third_commit_counts_it_takes_the_others_along(tmp_path):
    store = StateStore.open(tmp_path / "state", {}, commit_every=3)
    found = []
    for number in range(7):
        write_and_commit(store, number)
        found.append(rows_after_a_crash(store, tmp_path / "state"))
    assert found == [0, 0, 3, 3, 3, 6, 6]
    store.close()
    assert rows_after_a_crash(store, tmp_path / "state") == 7


def test_a_crawl_that_was_killed_while_its_tables_were_created_starts_again(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def kill(*_: object) -> bytes:
        raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(environment, "add_checksum", kill)
        with pytest.raises(Killed):
            StateStore.open(tmp_path, {"topic": "whales"})
    with pytest.raises(StateError, match="was the crawl ever started"):
        StateStore.view(tmp_path)
    with contextlib.closing(StateStore.open(tmp_path, {"topic": "whales"})) as store:
        assert not store.tables.count("content")


def test_a_state_whose_last_pages_were_never_written_is_sound(tmp_path):
    store = StateStore.open(tmp_path / "state", {})
    for number in range(300):
        store.tables.put("content", number.to_bytes(4, "big"), bytes(9_000))
    for number in range(300):
        store.tables.delete("content", number.to_bytes(4, "big"))
    store.tables.put("content", b"left", b"")
    store.close()
    store = StateStore.open(tmp_path / "state", {})
    assert store.tables.count("content") == 1
    store.close()


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("reading", [StateStore.reopen, StateStore.view])
def test_tables_that_were_cut_short_are_refused(tmp_path, part, reading):
    folder = tmp_path / "state"
    store = StateStore.open(folder, {})
    for number in range(100):
        store.tables.put("content", number.to_bytes(4, "big"), bytes(3_000))
    store.close()
    tables = folder / "data.mdb"
    whole = tables.read_bytes()
    tables.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(StateError, match="damaged or belongs"):
        reading(folder)


def grow(store: StateStore, checkpoints: int = 4) -> None:
    for number in range(checkpoints):
        for row in range(100):
            key = (100 * number + row).to_bytes(4, "big")
            store.tables.put("content", key, bytes(3_000))
        store.commit()
        store.freeze().close()


def used_bytes(folder: Path) -> int:
    with environment.open_environment(folder, durable=True, read_only=True, lock=False) as env:
        return int(env.info()["last_pgno"] + 1) * int(env.stat()["psize"])


def test_a_file_that_grows_is_extended_for_the_next_checkpoints_and_cut_at_the_end(tmp_path):
    store = StateStore.open(tmp_path, {})
    grow(store)
    tables = tmp_path / "data.mdb"
    extended = tables.stat().st_size
    store.close()
    assert extended > tables.stat().st_size == used_bytes(tmp_path)


def test_a_file_that_is_longer_than_its_tables_is_sound(tmp_path):
    store = StateStore.open(tmp_path, {})
    grow(store)
    store.abandon()
    used = used_bytes(tmp_path)
    assert (tmp_path / "data.mdb").stat().st_size > used
    StateStore.reopen(tmp_path).abandon()
    os.truncate(tmp_path / "data.mdb", used)
    with contextlib.closing(StateStore.reopen(tmp_path)) as again:
        assert again.tables.count("content") == 400


def test_a_disk_too_full_to_extend_the_file_loses_nothing(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with contextlib.closing(StateStore.open(tmp_path, {})) as store:
        grow(store)
        assert store.tables.count("content") == 400


def test_a_lack_of_address_space_is_no_damage(tmp_path, monkeypatch):
    StateStore.open(tmp_path, {}).close()

    def refuse(*_: object, **options: object) -> lmdb.Environment:
        raise lmdb.MemoryError(f"{tmp_path}: Cannot allocate memory")

    monkeypatch.setattr(lmdb, "open", refuse)
    with pytest.raises(StateError, match=r"Cannot allocate memory.*free some memory") as refused:
        StateStore.reopen(tmp_path)
    assert "damaged" not in str(refused.value)


def test_a_store_that_nobody_closed_is_not_collected(tmp_path):
    """In another thread than its own that would end the process at its next transaction."""
    reference = weakref.ref(StateStore.open(tmp_path, {}))
    gc.collect()
    store = reference()
    assert store is not None
    store.close()
    del store
    gc.collect()
    assert reference() is None


def test_a_lack_of_memory_while_reading_is_no_damage(tmp_path):
    class Transaction:
        def get(self, *_: object, **options: object) -> bytes:
            raise lmdb.MemoryError("mdb_get: Cannot allocate memory")

    store = StateStore.open(tmp_path, {})
    transaction, store.tables._txn = store.tables._txn, Transaction()
    with pytest.raises(StateError, match=r"Cannot allocate memory.*free some memory") as refused:
        store.tables.get("content", b"key")
    assert "damaged" not in str(refused.value)
    store.tables._txn = transaction
    store.abandon()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EROFS, "Read-only file system.*make the disk writable"),
        (errno.EIO, "Input/output error.*check the disk for errors"),
        (errno.ENOSPC, "No space left on device.*free some disk"),
        (errno.ENOMEM, "Cannot allocate memory.*free some memory"),
        (errno.EMFILE, "Too many open files.*allow more open files"),
    ],
)
def test_a_disk_that_refuses_writes_stops_the_crawl_and_loses_nothing(
    number, advice, tmp_path, monkeypatch
):
    """As ext4 does after an error of the disk, files that are open cannot be written any more."""
    folder = tmp_path / "state"
    store = StateStore.open(folder, {})
    write_and_commit(store, 0)

    def refuse(journal: Journal, data: bytes) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as refusing:
        refusing.setattr(Journal, "_write", refuse)
        with pytest.raises(StateError, match=advice):
            write_and_commit(store, 1)
        with pytest.raises(StateError, match=os.strerror(number)):
            write_and_commit(store, 2)
        store.close()
    store = StateStore.reopen(folder)
    assert store.tables.count("content") == 1
    store.close()
    assert check_state(folder, lambda table, key, value: None).damaged == []


def test_a_folder_made_before_a_part_of_the_identity_was_stored_is_opened(tmp_path):
    StateStore.open(tmp_path, {"topic": "whales"}).close()
    StateStore.open(tmp_path, {"topic": "whales", "spider": "mine"}).close()


def test_a_new_crawl_folder_is_for_its_user_alone(tmp_path):
    StateStore.open(tmp_path / "crawls" / "whales" / "state", {}).close()
    modes = [
        stat.S_IMODE((tmp_path / "crawls" / each).stat().st_mode)
        for each in ("whales", "whales/state")
    ]
    assert modes == [0o700, 0o700]


def test_the_rights_of_an_existing_crawl_folder_stay(tmp_path):
    folder = tmp_path / "whales"
    folder.mkdir()
    folder.chmod(0o750)
    StateStore.open(folder / "state", {}).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
