"""The store against dictionaries: any calls, crashes and power failures."""

import shutil
import tempfile
from copy import deepcopy
from pathlib import Path
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from focused.storage import journal as journal_module
from focused.storage import state_store as store_module
from focused.storage.state_store import StateStore
from tests.support.examples import examples

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
keys = st.binary(min_size=1, max_size=2) | st.just(b"k" * 511)
values = st.binary(max_size=20) | st.just(b"large" * 2_000)
members = st.binary(min_size=3, max_size=3)
ROWS, SETS = "content", "queue"


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.boots = 0
        self.now: tuple[dict[bytes, bytes], dict[bytes, set[bytes]]] = ({}, {})
        self.committed, self.synced = deepcopy(self.now), deepcopy(self.now)
        self.patches = [mock.patch.object(journal_module, "_boot_id", self._boot)]

    @initialize(checkpoint_bytes=st.sampled_from([1, 300, 2_000_000]))
    def begin(self, checkpoint_bytes: int) -> None:
        self.patches.append(mock.patch.object(store_module, "_CHECKPOINT_BYTES", checkpoint_bytes))
        for patch in self.patches:
            patch.start()
        self.store = StateStore.open(self.folder / "state", {})

    @rule(key=keys, value=values)
    def put(self, key: bytes, value: bytes) -> None:
        self.store.tables.put(ROWS, key, value)
        self.now[0][key] = value

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        assert self.store.tables.delete(ROWS, key) == (self.now[0].pop(key, None) is not None)

    @rule(key=keys, some=st.sets(members, max_size=4))
    def add(self, key: bytes, some: set[bytes]) -> None:
        for member in some:
            self.store.tables.add(SETS, key, member)
            self.now[1].setdefault(key, set()).add(member)

    @rule(key=keys, data=st.data())
    def discard(self, key: bytes, data: st.DataObject) -> None:
        there = self.now[1].get(key, set())
        member = data.draw(members | st.sampled_from(sorted(there)) if there else members)
        assert self.store.tables.discard(SETS, key, member) == (member in there)
        there.discard(member)
        if not there:
            self.now[1].pop(key, None)

    @rule(key=keys)
    def delete_a_set(self, key: bytes) -> None:
        assert self.store.tables.delete(SETS, key) == (self.now[1].pop(key, None) is not None)

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.committed = deepcopy(self.now)
        if self.store._journal.bytes == 0:  # a checkpoint came along
            self.synced = self.committed

    @rule(times=st.sampled_from([1, 1, 20]))
    def sync(self, times: int) -> None:
        for _ in range(times):
            self.store.sync()
        self.synced = self.committed

    @rule()
    def the_process_dies(self) -> None:
        self.store.abandon()
        self._begin_again(self.committed)

    @rule()
    def the_power_fails(self) -> None:
        self.store.abandon()
        self.boots += 1
        self._begin_again(self.synced)

    @rule()
    def ends_in_order(self) -> None:
        self.store.close()
        self._begin_again(self.now)

    def _boot(self) -> bytes:
        return b"%036d" % self.boots

    def _begin_again(self, kept: tuple) -> None:
        self.now = deepcopy(kept)
        self.committed = self.synced = deepcopy(kept)
        self.store = StateStore.open(self.folder / "state", {})

    @invariant()
    def both_hold_the_same(self) -> None:
        rows, sets = self.now
        assert dict(self.store.tables.scan(ROWS)) == rows
        assert {
            key: set(self.store.tables.members(SETS, key))
            for key, _ in self.store.tables.first_members(SETS)
        } == sets
        assert self.store.tables.count(ROWS) == len(rows)
        assert self.store.tables.count(SETS) == sum(map(len, sets.values()))
        for key, there in sets.items():
            assert self.store.tables.first_two(SETS, key) == (*sorted(there), None, None)[:2]
            assert self.store.tables.set_size(SETS, key) == len(there)

    def teardown(self) -> None:
        self.store.abandon()
        for patch in self.patches:
            patch.stop()
        shutil.rmtree(self.folder)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=examples(100), stateful_step_count=30, deadline=None
)
