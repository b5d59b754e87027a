"""The engines that the contract suites run on."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine, MemoryEngine


@pytest.fixture(params=["memory"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return MemoryEngine()
