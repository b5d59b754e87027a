"""The memory that hostile answers take is bounded."""

import hostile
import pytest

pytestmark = pytest.mark.long

MEMORY_MB = 300.0


@pytest.mark.parametrize("name", [*hostile.PAGES, "zstd bomb, 1 GB"])
def test_memory_is_bounded(name):
    assert hostile.measure(name).memory_mb < MEMORY_MB


def test_a_bomb_is_reported_by_its_name():
    cost = hostile.measure("zstd bomb, 1 GB")
    assert cost.outcome == "`too-large`"
    assert cost.sent_mb < 1.0
