"""The frontier fixture of the suite."""

from __future__ import annotations

import pytest

from focused.frontier.interface import Frontier
from tests.support.frontier_lives import Life


@pytest.fixture
def frontier(life: Life) -> Frontier:
    return life.begin()
