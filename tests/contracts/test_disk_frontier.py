"""The contract suite on the frontier on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.every_frontier import *  # noqa: F403 -- the whole suite
from tests.support.frontier_lives import DiskLife


@pytest.fixture
def life(tmp_path: Path) -> Iterator[DiskLife]:
    life = DiskLife(tmp_path / "state")
    yield life
    life.crash()
