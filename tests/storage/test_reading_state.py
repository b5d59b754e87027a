"""Reading a state writes nothing, however the crawl ended."""

from pathlib import Path

import pytest

from focused.errors import StateError
from focused.storage.state_store import StateStore


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def store_with_a_row(state: Path) -> StateStore:
    store = StateStore.open(state, {"topic": "whales"})
    store.tables.put("content", b"key", b"row")
    store.commit()
    return store


@pytest.mark.parametrize("end", [StateStore.close, StateStore.abandon], ids=["ended", "killed"])
def test_what_a_crawl_committed_is_read_and_nothing_is_written(state, end):
    end(store_with_a_row(state))
    before = files(state)
    with StateStore.open_for_reading(state) as (store, running):
        assert store.tables.get("content", b"key") == b"row"
        assert not running
    assert files(state) == before


def test_a_damaged_journal_is_reported_by_its_own_folder(state):
    store_with_a_row(state).abandon()
    journal = state / "journal"
    journal.write_bytes(journal.read_bytes()[:-1] + b"\xff")
    with pytest.raises(StateError, match=str(state)), StateStore.open_for_reading(state):
        pass
