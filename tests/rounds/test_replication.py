"""A partition's state in shared storage: the next attempt restores what a manifest names."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec import structs

from focused.archive.archive import page_rows
from focused.errors import StorageError
from focused.rounds import replication
from focused.rounds.manifest import StoredState
from focused.rounds.replication import Replica, restore
from focused.rounds.storage import SharedStorage
from focused.storage import state_store as store_module
from focused.storage.environment import OLDEST_FORMAT
from focused.storage.rows import pack
from focused.storage.state_store import StateStore
from tests.rounds import shared_storages
from tests.support.examples import examples

AtOnce, Later = shared_storages.AtOnce, shared_storages.Later
s3_server, storage_url = shared_storages.s3_server, shared_storages.storage_url
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROWS, SETS = "content", "queue"
PARTITION = 7

State = tuple[dict[bytes, bytes], dict[bytes, set[bytes]]]


def everything(store: StateStore) -> dict[str, Any]:
    """All rows of all tables, but for the bookkeeping of checkpoints."""
    tables = store.tables
    found: dict[str, Any] = {}
    for name in tables.names - tables.sets:
        found[name] = dict(tables.scan(name))
    found["meta"].pop(b"checkpoint", None)
    for name in tables.sets:
        keys = [key for key, _ in tables.first_members(name)]
        found[name] = {key: list(tables.members(name, key)) for key in keys}
    return found


@pytest.fixture
def storage(storage_url: str) -> SharedStorage:
    return SharedStorage(storage_url, "whales")


class Owner:
    """An attempt at the partition: it restores a state, and begins."""

    def __init__(
        self,
        storage: SharedStorage,
        folder: Path,
        attempt: int,
        state: StoredState | None = None,
        background: Executor | None = None,
        **limits: Any,
    ) -> None:
        self.folder = folder
        restore(storage, PARTITION, folder, state)
        self.store = StateStore.open(folder / "state", {"topic": "whales"})
        self.replica = Replica(
            storage,
            PARTITION,
            attempt,
            self.store,
            folder,
            restored=state,
            background=background or AtOnce(),
            **limits,
        )
        self.replica.begin()

    def put(self, *rows: tuple[bytes, bytes]) -> None:
        for key, value in rows:
            self.store.tables.put(ROWS, key, value)
        self.store.commit()
        self.store.sync()

    def upload(self) -> StoredState:
        return self.replica.upload(self.replica.prepare())

    def rows(self) -> dict[bytes, bytes]:
        return dict(self.store.tables.scan(ROWS))


@pytest.fixture
def owners(storage: SharedStorage, tmp_path: Path) -> Iterator[Any]:
    opened: list[Owner] = []

    def make(attempt: int, state: StoredState | None = None, **limits: Any) -> Owner:
        folder = tmp_path / f"owner-{len(opened)}"
        opened.append(Owner(storage, folder, attempt, state, **limits))
        return opened[-1]

    yield make
    for each in opened:
        each.store.abandon()


@pytest.mark.parametrize("older_format", range(OLDEST_FORMAT, store_module.FORMAT_VERSION))
def test_a_state_of_an_earlier_format_is_migrated_and_stored_anew(
    storage, owners, monkeypatch, older_format
):
    added = [0.25, True] if older_format == 19 else [{"spam": 0.25, "rendered": True}]
    with monkeypatch.context() as earlier:
        earlier.setattr(store_module, "FORMAT_VERSION", older_format)
        first = owners(1)
        for number in range(2):  # one row is in the snapshot, one in a segment
            row = [number, f"http://a.test/{number}", "a.test", "fetched", *[0] * 24, *added]
            first.store.tables.put("pages", number.to_bytes(8, "big"), pack(row))
            first.put()
            if not number:
                first.replica.begin()
        stored = structs.replace(first.upload(), format=older_format - 18)
    second = owners(2, stored)
    again = owners(3, second.upload())
    for owner in (second, again):
        rows = list(page_rows(owner.store.tables))
        assert [(each["spam"], each["rendered"]) for each in rows] == [(0.25, True)] * 2
    assert again.replica.upload(again.replica.prepare()).snapshot.startswith(f"{2:010}/")


def objects(storage: SharedStorage, attempt: int, begins: str = "") -> Sequence[str]:
    home = f"state/partition-0007/{attempt:010}"
    return [f"{home}/{name}" for name in storage.entries(home) if name.startswith(begins)]


def test_a_new_partition_has_no_state(storage, tmp_path):
    restore(storage, PARTITION, tmp_path / "new", None)
    assert not (tmp_path / "new/state").exists()


def test_the_next_attempt_has_every_row_of_the_named_state(owners):
    first = owners(1)
    first.put((b"a", b"1"), (b"b", b"2"))
    first.store.tables.add(SETS, b"s", b"abc")
    first.store.tables.put_meta("inbox", "5-1")
    first.store.commit()
    state = first.upload()
    stored = everything(first.store)
    first.put((b"c", b"lost with the machine"))
    first.store.abandon()
    assert everything(owners(2, state).store) == stored


def test_what_was_written_before_the_first_snapshot_is_in_it(storage, tmp_path, owners):
    store = StateStore.open(tmp_path / "one/state", {"topic": "whales"})
    replica = Replica(storage, PARTITION, 1, store, tmp_path / "one", background=AtOnce())
    store.tables.put(ROWS, b"a", b"1")
    replica.begin()
    state = replica.upload(replica.prepare())
    store.abandon()
    assert owners(2, state).rows() == {b"a": b"1"}


def test_an_older_state_in_the_folder_is_replaced(owners, storage):
    first = owners(1)
    first.put((b"a", b"1"))
    state = first.upload()
    first.put((b"b", b"committed here, and never uploaded"))
    first.store.close()
    restore(storage, PARTITION, first.folder, state)
    found = StateStore.reopen(first.folder / "state")
    assert dict(found.tables.scan(ROWS)) == {b"a": b"1"}
    found.close()


def test_a_later_state_that_no_manifest_names_never_happened(owners):
    first = owners(1)
    first.put((b"a", b"1"))
    named = first.upload()
    first.replica.confirm(named)
    for number in range(20):
        first.put((b"a", b"%d" % number))
        first.upload()
    assert owners(2, named).rows() == {b"a": b"1"}


def test_an_attempt_out_of_reach_that_goes_on_changes_nothing(owners, storage):
    asleep = owners(1, min_snapshot_bytes=1)
    asleep.put((b"a", b"1"))
    named = asleep.upload()
    second = owners(2, named)
    for number in range(5):
        asleep.put((b"a", os.urandom(200_000)), (b"%d" % number, b"by the old one"))
        asleep.upload()
    second.put((b"b", b"2"))
    state = second.upload()
    assert owners(3, state).rows() == {b"a": b"1", b"b": b"2"}
    assert owners(3, named).rows() == {b"a": b"1"}


@pytest.mark.parametrize("first", [1, 9_999_999_997])  # with ten digits, and then eleven
def test_attempts_in_a_row_leave_few_objects(owners, storage, first):
    state, rows = None, {}
    for attempt in range(first, first + 7):
        owner = owners(attempt, state, min_snapshot_bytes=1)
        for number in range(6):
            rows[b"%d-%d" % (attempt, number)] = os.urandom(20_000)
            owner.put((b"%d-%d" % (attempt, number), rows[b"%d-%d" % (attempt, number)]))
            state = owner.upload()
            owner.replica.confirm(state)
        assert sum(len(objects(storage, each)) for each in range(first, attempt + 1)) < 30
        owner.store.abandon()
    assert owners(9, state).rows() == rows


def test_the_state_of_the_round_before_is_kept(owners):
    first = owners(1, min_snapshot_bytes=1)
    states = []
    for number in range(30):
        first.put((b"%d" % number, os.urandom(20_000)))
        states.append((first.upload(), first.rows()))
        first.replica.confirm(states[-1][0])
        for state, rows in states[-2:]:
            other = owners(2, state)
            assert other.rows() == rows
            other.store.abandon()


def test_nothing_is_uploaded_when_nothing_was_committed(owners, storage):
    first = owners(1)
    before = objects(storage, 1)
    first.upload()
    assert objects(storage, 1) == before


@pytest.mark.parametrize("kind", ["segment-", "snapshot-"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "another"])
def test_damage_is_reported_with_the_objects_name(owners, storage, kind, damage, tmp_path):
    first = owners(1)
    for number in b"123":
        first.put((b"a", b"%c" % number))
        state = first.upload()
    name = objects(storage, 1, kind)[0]
    content = storage.read(name)
    if damage == "missing":
        storage.delete([name])
    elif damage == "truncated":
        storage.write(name, content[: len(content) // 2])
    elif damage == "another":
        storage.write(name, storage.read(objects(storage, 1, "segment-")[1]))
    else:
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 1])
        storage.write(name, content[:middle] + flipped + content[middle + 1 :])
    with pytest.raises(StorageError, match=name):
        restore(storage, PARTITION, tmp_path / "two", state)


def test_uploads_in_a_thread_have_all_that_was_committed_before_them(owners):
    first = owners(1, min_snapshot_bytes=5_000)
    rows: list[tuple[bytes, bytes]] = []
    with ThreadPoolExecutor(1) as pool:
        for turn in range(20):
            uploading = pool.submit(first.replica.upload, first.replica.prepare())
            durable = len(rows)
            while len(rows) < 20 * (turn + 1) or not uploading.done():
                rows.append((b"%d" % len(rows), os.urandom(100)))
                first.put(rows[-1])
            state = uploading.result()
            first.replica.confirm(state)
    first.store.abandon()
    assert owners(2, state).rows() == dict(rows[:durable])


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

    def entries(self, *args: Any) -> Any:
        return self._call("entries", *args)

    def delete(self, *args: Any) -> Any:
        return self._call("delete", *args)


keys = st.sampled_from([b"a", b"b", b"c"])
values = st.binary(max_size=4) | st.just(b"large" * 100)
members = st.sampled_from([b"abc", b"abd", b"xyz"])


def test_a_snapshot_may_take_longer_than_many_uploads(owners, storage):
    later = Later()
    first = owners(1, min_snapshot_bytes=2_000, background=later)
    for number in range(20):
        first.put((b"%d" % number, os.urandom(500)), (b"last", b"%d" % number))
        first.upload()
    rows = first.rows()
    later.run()
    first.put((b"after", b"1"))
    state = first.upload()
    assert sum(run.last + 1 - run.first for run in state.runs) < 20
    first.store.abandon()
    assert owners(2, state).rows() == {**rows, b"after": b"1"}


def test_a_snapshot_holds_large_sets_while_the_crawl_goes_on(owners):
    later = Later()
    first = owners(1, min_snapshot_bytes=1, background=later)
    for n in range(20_000):
        first.store.tables.add(SETS, b"%d" % (n % 7), n.to_bytes(40, "big"))
        first.store.tables.put(ROWS, b"%d" % n, b"%d" % n)
    for _ in range(2):
        first.put((b"last", b"1"))
        first.upload()
    for n in range(0, 20_000, 3):
        first.store.tables.discard(SETS, b"%d" % (n % 7), n.to_bytes(40, "big"))
        first.store.tables.put(ROWS, b"%d" % n, b"changed" * 10)
        if n % 1_000 == 0:
            first.store.commit()
            first.store.freeze().close()  # a checkpoint: pages are freed, and used again
    later.run()
    first.put((b"last", b"2"))
    state = first.upload()
    assert state.snapshot.endswith("2")
    stored = everything(first.store)
    first.store.abandon()
    assert everything(owners(2, state).store) == stored


def test_a_snapshot_of_a_store_that_was_closed_fails_harmlessly(owners):
    later = Later()
    first = owners(1, min_snapshot_bytes=1, background=later)
    first.put((b"a", os.urandom(100_000)))
    first.upload()
    first.put((b"a", b"2"))
    state = first.upload()
    first.store.abandon()
    later.run()
    assert owners(2, state).rows() == {b"a": b"2"}


def test_a_restored_state_uploads_little_however_large_it_is(owners, storage):
    first = owners(1)
    first.put((b"a", os.urandom(500_000)))
    second = owners(2, first.upload())
    second.put((b"b", b"2"))
    state = second.upload()
    sizes = storage.entries("state/partition-0007/0000000002")
    assert sum(size for size in sizes.values() if size) < 2_000
    second.store.abandon()
    assert sorted(owners(3, state).rows()) == [b"a", b"b"]


class ReplicaMachine(RuleBasedStateMachine):
    """Attempts at one partition against a dictionary: any writes, failures, kills, and sleepers."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.storage = UnreliableStorage(f"file://{self.folder}/shared", "whales")
        self.now: State = ({}, {})
        self.committed: State = ({}, {})
        self.named: tuple[StoredState | None, State] = (None, ({}, {}))
        """The state that a manifest names, and what it has."""
        self.asleep: list[Owner] = []
        self.attempt = 0
        self.patches = ExitStack()

    @initialize(segments=st.sampled_from([1, 3, 1_000]), is_inline=st.booleans())
    def begin(self, segments: int, is_inline: bool) -> None:
        self.later = Later()
        for name, value in (("_MAX_SEGMENTS", segments), ("_UPLOADS_UNTIL_RETRY", 1)):
            self.patches.enter_context(mock.patch.object(replication, name, value))
        self.limits: dict[str, Any] = {"background": None if is_inline else self.later}
        self._start()

    def _start(self) -> None:
        self.attempt += 1
        state, expected = self.named
        folder = self.folder / f"owner-{self.attempt}"
        self.owner = Owner(self.storage, folder, self.attempt, state, **self.limits)
        tables = self.owner.store.tables
        sets = [key for key, _ in tables.first_members(SETS)]
        found = dict(tables.scan(ROWS)), {key: set(tables.members(SETS, key)) for key in sets}
        assert found == expected
        self.now, self.committed = found, deepcopy(found)

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

    @rule(key=keys)
    def delete_a_set(self, key: bytes) -> None:
        self.owner.store.tables.delete(SETS, key)
        self.now[1].pop(key, None)

    @rule(times=st.sampled_from([0, 1, 20]))
    def commit(self, times: int) -> None:
        self.owner.store.commit()
        self.committed = deepcopy(self.now)
        for _ in range(times):
            self.owner.store.sync()

    @rule(calls=st.none() | st.integers(0, 6), after=st.booleans(), is_named=st.booleans())
    def upload(self, calls: int | None, after: bool, is_named: bool) -> None:
        self.commit(1)
        self.storage.calls_until_failure, self.storage.fails_after = calls, after
        with suppress(StorageError):
            state = self.owner.upload()
            if is_named:
                self.named = state, deepcopy(self.committed)
                self.owner.replica.confirm(state)
        self.storage.calls_until_failure = None

    @rule()
    def background_jobs_run(self) -> None:
        self.later.run()

    @rule()
    def the_owner_dies(self) -> None:
        self.owner.store.abandon()
        self._start()

    @rule()
    def the_owner_is_out_of_reach(self) -> None:
        self.asleep.append(self.owner)
        self._start()

    @rule(value=values)
    def those_out_of_reach_go_on(self, value: bytes) -> None:
        for owner in self.asleep:
            owner.put((b"by an old attempt", value))
            owner.upload()

    def teardown(self) -> None:
        for owner in (self.owner, *self.asleep):
            owner.store.abandon()
        self.patches.close()
        shutil.rmtree(self.folder)


TestReplicaMachine = ReplicaMachine.TestCase
TestReplicaMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)
