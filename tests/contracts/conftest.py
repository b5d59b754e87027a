"""What each frontier must keep to, that of a crawl and the reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.frontier_lives import DiskLife, Frontier, Life, PlainLife


@pytest.fixture(params=["disk", "plain"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Life]:
    """How frontiers are made, die and come back."""
    made = DiskLife(tmp_path / "state") if request.param == "disk" else PlainLife()
    yield made
    made.crash()


@pytest.fixture
def frontier(life: Life) -> Frontier:
    return life.begin()
