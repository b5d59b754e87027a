"""What only the frontier on disk promises: its folder is one crawl's, and sound, or refused.

What every frontier promises is told in tests/contracts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from focused.errors import StateError
from focused.frontier.store import StateStore

IDENTITY = {"topic": "test", "policy": "focused"}


@pytest.fixture
def store(tmp_path: Path):
    store = StateStore.open(tmp_path / "state", IDENTITY)
    yield store
    store.close()


def test_a_second_crawl_on_the_same_folder_is_refused(store: StateStore, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="in use by another crawl"):
        StateStore.open(tmp_path / "state", IDENTITY)


def test_another_topics_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    StateStore.open(tmp_path / "state", IDENTITY).close()
    with pytest.raises(StateError, match="holds another crawl: its topic is 'test'"):
        StateStore.open(tmp_path / "state", {**IDENTITY, "topic": "other"})
    StateStore.open(tmp_path / "state", IDENTITY).close()


def test_a_damaged_folder_is_refused_in_plain_words(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StateError, match="damaged or not ours"):
        StateStore.open(folder, IDENTITY)
