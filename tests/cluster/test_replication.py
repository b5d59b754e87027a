"""A partition's state in shared storage: what a successor restores, whatever happened before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from focused.cluster import replication
from focused.cluster.replication import FencedError, Replica, newest_token, restore
from focused.cluster.storage import SharedStorage
from focused.errors import StorageError
from focused.storage.state_store import StateStore
from tests.support import shared_storages
from tests.support.examples import examples

Later = shared_storages.Later
s3_server, storage_url = shared_storages.s3_server, shared_storages.storage_url
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROWS, SETS = "content", "queue"
PARTITION = 7

State = tuple[dict[bytes, bytes], dict[bytes, set[bytes]]]


def everything(store: StateStore) -> dict[str, Any]:
    """All rows of all tables, but for the bookkeeping of checkpoints and restores."""
    tables = store.tables
    found: dict[str, Any] = {}
    for name in tables.names - tables.sets:
        found[name] = dict(tables.scan(name))
    for bookkeeping in (b"checkpoint", b"restored_from"):
        found["meta"].pop(bookkeeping, None)
    for name in tables.sets:
        keys = [key for key, _ in tables.first_members(name)]
        found[name] = {key: list(tables.members(name, key)) for key in keys}
    return found


@pytest.fixture
def storage(storage_url: str) -> SharedStorage:
    return SharedStorage(storage_url, "whales")


class Owner:
    """An owner of the partition: it restores, and begins."""

    def __init__(self, storage: SharedStorage, folder: Path, token: int, **limits: Any) -> None:
        self.folder, self.token = folder, token
        restore(storage, PARTITION, folder, token)
        self.store = StateStore.open(folder / "state", {"topic": "whales"})
        self.replica = Replica(storage, PARTITION, token, self.store, folder, **limits)
        self.replica.begin()

    def put(self, *rows: tuple[bytes, bytes]) -> None:
        for key, value in rows:
            self.store.tables.put(ROWS, key, value)
        self.store.commit()
        self.store.sync()

    def rows(self) -> dict[bytes, bytes]:
        return dict(self.store.tables.scan(ROWS))


@pytest.fixture
def owners(storage: SharedStorage, tmp_path: Path) -> Iterator[Any]:
    opened: list[Owner] = []

    def make(token: int, **limits: int) -> Owner:
        opened.append(Owner(storage, tmp_path / f"owner-{token}", token, **limits))
        return opened[-1]

    yield make
    for each in opened:
        each.store.abandon()


def objects(storage: SharedStorage, token: int, begins: str = "") -> Sequence[str]:
    home = f"state/partition-0007/{token:010}"
    return [f"{home}/{name}" for name in storage.entries(home) if name.startswith(begins)]


def test_an_empty_partition_leaves_the_folder_without_state(storage, tmp_path) -> None:
    assert newest_token(storage, PARTITION) == 0
    restore(storage, PARTITION, tmp_path / "new", 1)
    assert not (tmp_path / "new/state").exists()


def test_a_successor_has_every_row_of_the_last_flush(owners, storage) -> None:
    first = owners(1)
    first.put((b"a", b"1"), (b"b", b"2"))
    first.store.tables.add(SETS, b"s", b"abc")
    first.store.tables.put_meta("inbox", "5-1")
    first.store.commit()
    first.replica.flush()
    flushed = everything(first.store)
    first.put((b"c", b"lost with the process"))
    first.store.abandon()
    assert everything(owners(2).store) == flushed
    assert newest_token(storage, PARTITION) == 2


def test_what_was_written_before_the_first_snapshot_is_in_it(storage, tmp_path) -> None:
    store = StateStore.open(tmp_path / "one/state", {})
    replica = Replica(storage, PARTITION, 1, store, tmp_path / "one")
    store.tables.put(ROWS, b"a", b"1")
    replica.begin()
    store.abandon()
    restore(storage, PARTITION, tmp_path / "two", 2)
    found = StateStore.open(tmp_path / "two/state", {})
    assert dict(found.tables.scan(ROWS)) == {b"a": b"1"}
    found.close()


def test_an_older_state_in_the_folder_is_replaced(owners, storage, tmp_path) -> None:
    first = owners(1)
    first.put((b"a", b"1"))
    first.replica.flush()
    first.put((b"b", b"committed here, and never uploaded"))
    first.store.close()
    restore(storage, PARTITION, first.folder, 2)
    found = StateStore.reopen(first.folder / "state")
    assert dict(found.tables.scan(ROWS)) == {b"a": b"1"}
    found.close()


def test_an_old_owner_that_goes_on_changes_nothing(owners, storage) -> None:
    asleep = owners(1)
    asleep.put((b"a", b"1"))
    asleep.replica.flush()
    second = owners(2)
    asleep.put((b"a", b"by the old owner"))
    with pytest.raises(FencedError, match="partition 7 has another owner"):
        asleep.replica.flush()
    with pytest.raises(FencedError):
        asleep.replica.flush()
    second.put((b"b", b"2"))
    second.replica.flush()
    assert owners(3).rows() == {b"a": b"1", b"b": b"2"}


def test_an_old_owner_is_fenced_before_its_successor_wrote_a_snapshot(
    owners, storage, tmp_path
) -> None:
    asleep = owners(1)
    restore(storage, PARTITION, tmp_path / "two", 2)
    asleep.put((b"a", b"1"))
    with pytest.raises(FencedError):
        asleep.replica.flush()


def test_an_old_owner_is_fenced_after_its_successor_cleaned_up(owners, storage) -> None:
    asleep = owners(1)
    second = owners(2, min_snapshot_bytes=1)
    large = os.urandom(100_000)
    second.put((b"b", large))
    second.replica.flush()
    second.replica.flush()
    assert objects(storage, 1) == []
    asleep.put((b"a", b"1"))
    with pytest.raises(FencedError):
        asleep.replica.flush()
    assert owners(3).rows() == {b"b": large}


def test_a_lower_token_can_neither_restore_nor_begin(owners, storage, tmp_path) -> None:
    owners(5)
    with pytest.raises(FencedError):
        restore(storage, PARTITION, tmp_path / "late", 4)
    late = StateStore.open(tmp_path / "late/state", {})
    with pytest.raises(FencedError):
        Replica(storage, PARTITION, 4, late, tmp_path / "late").begin()
    late.close()


def test_a_snapshot_replaces_the_segments_that_outgrew_it(owners, storage) -> None:
    first = owners(1, min_snapshot_bytes=2_000)
    rows = {}
    for number in range(20):
        key, value = b"%d" % number, os.urandom(500)
        rows[key] = value
        first.put((key, value))
        first.replica.flush()
    assert len(objects(storage, 1, "segment-")) < 15
    assert len(objects(storage, 1, "snapshot-")) == 1
    first.store.abandon()
    assert owners(2).rows() == rows


def test_nothing_is_uploaded_when_nothing_was_committed(owners, storage) -> None:
    first = owners(1)
    before = objects(storage, 1)
    first.replica.flush()
    assert objects(storage, 1) == before


def test_a_truncated_last_segment_was_never_relied_on(owners, storage, caplog) -> None:
    first = owners(1)
    for number in b"123":
        first.put((b"a", b"%c" % number))
        first.replica.flush()
    last = objects(storage, 1, "segment-")[-1]
    content = storage.read(last)
    for length in (0, 10, len(content) - 1):
        storage.write(last, content[:length])
        restore(storage, PARTITION, first.folder.with_name("two"), 2)
        found = StateStore.reopen(first.folder.with_name("two") / "state")
        assert dict(found.tables.scan(ROWS)) == {b"a": b"2"}
        found.close()
    assert "its upload was interrupted" in caplog.text


@pytest.mark.parametrize("kind", ["segment-", "snapshot-", "manifest"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_damage_is_reported_with_the_objects_name(owners, storage, kind, damage, tmp_path) -> None:
    first = owners(1)
    for number in b"123":
        first.put((b"a", b"%c" % number))
        first.replica.flush()
    if (kind, damage) == ("manifest", "missing"):
        return  # then the owner never began
    name = objects(storage, 1, kind)[0]
    content = storage.read(name)
    if damage == "missing":
        storage.delete([name])
    elif damage == "truncated":
        storage.write(name, content[: len(content) // 2])
    else:
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 1])
        storage.write(name, content[:middle] + flipped + content[middle + 1 :])
    with pytest.raises(StorageError, match=name):
        restore(storage, PARTITION, tmp_path / "two", 2)


def test_a_flipped_bit_in_the_last_segment_is_damage(owners, storage, tmp_path) -> None:
    first = owners(1)
    first.put((b"a", b"1"))
    first.replica.flush()
    (name,) = objects(storage, 1, "segment-")
    content = storage.read(name)
    storage.write(name, content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StorageError, match=name):
        restore(storage, PARTITION, tmp_path / "two", 2)


def test_prepared_commits_can_be_uploaded_while_the_crawl_goes_on(owners) -> None:
    first = owners(1)
    first.put((b"a", b"1"))
    prepared = first.replica.prepare()
    first.put((b"b", b"after"))
    first.replica.upload(prepared)
    first.store.abandon()
    assert owners(2).rows() == {b"a": b"1"}


def test_uploads_in_a_thread_have_all_that_was_committed_before_them(owners) -> None:
    first = owners(1, min_snapshot_bytes=5_000)
    rows = []
    with ThreadPoolExecutor(1) as pool:
        for flush in range(20):
            uploading = pool.submit(first.replica.upload, first.replica.prepare())
            durable = len(rows)
            while len(rows) < 20 * (flush + 1) or not uploading.done():
                rows.append((b"%d" % len(rows), os.urandom(100)))
                first.put(rows[-1])
            uploading.result()
    first.store.abandon()
    found = owners(2).rows()
    assert found == dict(rows[:durable])


class UnreliableStorage(SharedStorage):
    """Fails on request, before or after it did what it was asked to do."""

    calls_until_failure: int | None = None
    fails_after = False

    def _call(self, name: str, *args: Any) -> Any:
        failing = False
        if self.calls_until_failure is not None:
            failing = self.calls_until_failure <= 0
            self.calls_until_failure -= 1
        if failing and not self.fails_after:
            raise StorageError("the storage is gone")
        result = getattr(super(), name)(*args)
        if failing:
            raise StorageError("the answer got lost")
        return result

    def write(self, *args: Any) -> Any:
        return self._call("write", *args)

    def upload(self, *args: Any) -> Any:
        return self._call("upload", *args)

    def exists(self, *args: Any) -> Any:
        return self._call("exists", *args)

    def delete(self, *args: Any) -> Any:
        return self._call("delete", *args)


def test_the_next_flush_uploads_what_a_failed_one_did_not(tmp_path) -> None:
    storage = UnreliableStorage(f"file://{tmp_path}/shared", "whales")
    first = Owner(storage, tmp_path / "one", 1)
    for value in (b"1", b"2", b"3"):
        first.put((b"a", value), (value, value))
        storage.calls_until_failure = 0
        with pytest.raises(StorageError, match="is gone"):
            first.replica.flush()
    storage.calls_until_failure = None
    first.put((b"a", b"4"))
    first.replica.flush()
    first.store.abandon()
    second = Owner(storage, tmp_path / "two", 2)
    assert second.rows() == {b"a": b"4", b"1": b"1", b"2": b"2", b"3": b"3"}
    second.store.close()


def test_commits_beyond_the_memory_bound_are_uploaded_by_a_snapshot(tmp_path) -> None:
    storage = UnreliableStorage(f"file://{tmp_path}/shared", "whales")
    first = Owner(storage, tmp_path / "one", 1, max_pending_bytes=5_000)
    storage.calls_until_failure = 0
    rows = {}
    for number in range(30):
        rows[b"%d" % number] = os.urandom(1_000)
        first.put((b"%d" % number, rows[b"%d" % number]))
        with pytest.raises(StorageError):
            first.replica.flush()
        assert sum(map(len, first.replica._unsent)) <= 5_000
    storage.calls_until_failure = None
    first.replica.flush()
    first.put((b"after", b"it"))
    first.replica.flush()
    first.store.abandon()
    second = Owner(storage, tmp_path / "two", 2)
    assert second.rows() == {**rows, b"after": b"it"}
    second.store.close()


def test_a_segment_whose_upload_seemed_to_fail_does_not_follow_a_later_snapshot(tmp_path) -> None:
    storage = UnreliableStorage(f"file://{tmp_path}/shared", "whales")
    first = Owner(storage, tmp_path / "one", 1, max_pending_bytes=1_000)
    first.put((b"a", b"old"))
    storage.calls_until_failure, storage.fails_after = 0, True
    with pytest.raises(StorageError, match="the answer got lost"):
        first.replica.flush()
    storage.calls_until_failure = None
    first.put((b"a", b"new" * 1_000))
    first.replica.flush()
    first.put((b"b", b"after"))
    first.replica.flush()
    first.store.abandon()
    second = Owner(storage, tmp_path / "two", 2)
    assert second.rows() == {b"a": b"new" * 1_000, b"b": b"after"}
    second.store.close()


keys = st.sampled_from([b"a", b"b", b"c"])
values = st.binary(max_size=4) | st.just(b"large" * 100)
members = st.sampled_from([b"abc", b"abd", b"xyz"])


def test_a_snapshot_may_take_longer_than_many_flushes(owners, storage) -> None:
    later = Later()
    first = owners(1, min_snapshot_bytes=2_000, background=later)
    for number in range(20):
        first.put((b"%d" % number, os.urandom(500)), (b"last", b"%d" % number))
        first.replica.flush()
    rows = first.rows()
    later.run()
    first.put((b"after", b"1"))
    first.replica.flush()
    assert len(objects(storage, 1, "segment-")) < 20
    first.store.abandon()
    second = owners(2)
    assert second.rows() == {**rows, b"after": b"1"}


def test_a_snapshot_from_before_commits_were_dropped_does_not_count(owners, storage) -> None:
    later = Later()
    first = owners(1, min_snapshot_bytes=1, max_pending_bytes=250_000, background=later)
    for key in (b"a", b"c"):
        first.put((key, os.urandom(100_000)))
        first.replica.flush()
    large = os.urandom(300_000)
    first.put((b"b", large))
    later.run()
    with pytest.raises(StorageError, match="commits were dropped while uploads failed"):
        first.replica.flush()
    later.run()
    first.replica.flush()
    first.store.abandon()
    assert owners(2).rows()[b"b"] == large


def test_a_snapshot_holds_large_sets_while_the_crawl_goes_on(owners, storage) -> None:
    later = Later()
    first = owners(1, min_snapshot_bytes=1, background=later)
    for n in range(20_000):
        first.store.tables.add(SETS, b"%d" % (n % 7), n.to_bytes(40, "big"))
        first.store.tables.put(ROWS, b"%d" % n, b"%d" % n)
    for _ in range(2):
        first.put((b"last", b"1"))
        first.replica.flush()
    for n in range(0, 20_000, 3):
        first.store.tables.discard(SETS, b"%d" % (n % 7), n.to_bytes(40, "big"))
        first.store.tables.put(ROWS, b"%d" % n, b"changed" * 10)
        if n % 1_000 == 0:
            first.store.commit()
            first.store.freeze().close()  # a checkpoint: pages are freed, and used again
    later.run()
    first.put((b"last", b"2"))
    first.replica.flush()
    assert objects(storage, 1, "segment-")[0].endswith("3")
    flushed = everything(first.store)
    first.store.abandon()
    assert everything(owners(2).store) == flushed


def test_a_snapshot_of_a_store_that_was_closed_fails_harmlessly(owners, storage) -> None:
    later = Later()
    first = owners(1, min_snapshot_bytes=1, background=later)
    first.put((b"a", os.urandom(100_000)))
    first.replica.flush()
    first.put((b"a", b"2"))
    first.replica.flush()
    first.store.abandon()
    later.run()
    assert owners(2).rows() == {b"a": b"2"}


def test_a_takeover_uploads_little_however_large_the_state_is(owners, storage) -> None:
    first = owners(1)
    first.put((b"a", os.urandom(500_000)))
    first.replica.flush()
    second = owners(2)
    sizes = storage.entries("state/partition-0007/0000000002")
    assert sum(size for size in sizes.values() if size) < 2_000
    second.put((b"b", b"2"))
    second.replica.flush()
    second.store.abandon()
    third = owners(3)
    assert sorted(third.rows()) == [b"a", b"b"]


class ReplicaMachine(RuleBasedStateMachine):
    """Owners of one partition against a dictionary: any writes, failures, kills, and sleepers."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.storage = UnreliableStorage(f"file://{self.folder}/shared", "whales")
        self.now: State = ({}, {})
        self.committed: State = ({}, {})
        self.possible: list[State] = []
        """The states that a successor may restore: that of the last flush, or one that failed."""
        self.asleep: list[Owner] = []
        self.token = 0
        self.patches = ExitStack()

    @initialize(
        segments=st.sampled_from([1, 3, 1_000]),
        pending=st.sampled_from([100, 2_000_000]),
        is_inline=st.booleans(),
    )
    def begin(self, segments: int, pending: int, is_inline: bool) -> None:
        self.later = Later()
        for name, value in (("_MAX_SEGMENTS", segments), ("_FLUSHES_UNTIL_RETRY", 1)):
            self.patches.enter_context(mock.patch.object(replication, name, value))
        self.limits: dict[str, Any] = {
            "max_pending_bytes": pending,
            "background": None if is_inline else self.later,
        }
        self._take_over()

    def _take_over(self) -> None:
        self.token += 1
        self.owner = Owner(
            self.storage, self.folder / f"owner-{self.token}", self.token, **self.limits
        )
        found = self._held()
        assert not self.possible or found in self.possible
        self.now, self.committed, self.possible = found, deepcopy(found), [deepcopy(found)]

    def _held(self) -> State:
        tables = self.owner.store.tables
        sets = [key for key, _ in tables.first_members(SETS)]
        return dict(tables.scan(ROWS)), {key: set(tables.members(SETS, key)) for key in sets}

    @rule(key=keys, value=values)
    def put(self, key: bytes, value: bytes) -> None:
        self.owner.store.tables.put(ROWS, key, value)
        self.now[0][key] = value

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        self.owner.store.tables.delete(ROWS, key)
        self.now[0].pop(key, None)

    @rule(key=keys, some=st.sets(members, min_size=1, max_size=4))
    def add(self, key: bytes, some: set[bytes]) -> None:
        self.owner.store.tables.add_many(SETS, [(key, member) for member in some])
        self.now[1].setdefault(key, set()).update(some)

    @rule(key=keys, data=st.data())
    def discard(self, key: bytes, data: st.DataObject) -> None:
        there = self.now[1].get(key, set())
        if there:
            member = data.draw(st.sampled_from(sorted(there)))
            self.owner.store.tables.discard(SETS, key, member)
            there.discard(member)
            if not there:
                del self.now[1][key]

    @rule(key=keys)
    def delete_a_set(self, key: bytes) -> None:
        self.owner.store.tables.delete(SETS, key)
        self.now[1].pop(key, None)

    @rule()
    def commit(self) -> None:
        self.owner.store.commit()
        self.committed = deepcopy(self.now)

    @rule(times=st.sampled_from([1, 1, 20]))
    def sync(self, times: int) -> None:
        for _ in range(times):
            self.owner.store.sync()

    @rule()
    def flush(self) -> None:
        self.commit()
        self._flush()

    @rule(calls=st.integers(0, 6), after=st.booleans())
    def flush_with_a_failure(self, calls: int, after: bool) -> None:
        self.commit()
        self.storage.calls_until_failure, self.storage.fails_after = calls, after
        self._flush()
        self.storage.calls_until_failure = None

    def _flush(self) -> None:
        self.possible.append(deepcopy(self.committed))
        # It fails, too, while a snapshot is awaited after commits were dropped.
        with suppress(StorageError):
            self.owner.replica.flush()
            self.possible = self.possible[-1:]

    @rule()
    def background_jobs_run(self) -> None:
        self.later.run()

    @rule()
    def flush_until_it_is_durable(self) -> None:
        for _ in range(3):
            self.flush()
            self.later.run()
        assert len(self.possible) == 1

    @rule()
    def the_owner_dies(self) -> None:
        self.owner.store.abandon()
        self._take_over()

    @rule()
    def the_owner_falls_asleep(self) -> None:
        self.asleep.append(self.owner)
        self._take_over()

    @rule(value=values)
    def a_sleeper_wakes(self, value: bytes) -> None:
        for owner in self.asleep:
            owner.store.tables.put(ROWS, b"by an old owner", value)
            owner.store.commit()
            with pytest.raises(FencedError):
                owner.replica.flush()

    def teardown(self) -> None:
        for owner in (self.owner, *self.asleep):
            owner.store.abandon()
        self.patches.close()
        shutil.rmtree(self.folder)


TestReplicaMachine = ReplicaMachine.TestCase
TestReplicaMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)
