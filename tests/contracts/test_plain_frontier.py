"""The contract suite on the in-memory reference frontier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.every_frontier import *  # noqa: F403 -- the whole suite
from tests.support.frontier_lives import PlainLife


@pytest.fixture
def life(tmp_path: Path) -> Iterator[PlainLife]:
    life = PlainLife()
    yield life
    life.crash()
