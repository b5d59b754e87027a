"""A frontier on disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.frontier.disk_frontier import DiskFrontier
from tests.frontier.steps import FrontierProcess


@pytest.fixture
def process(tmp_path: Path) -> Iterator[FrontierProcess]:
    """A process that opens frontiers in one folder."""
    process = FrontierProcess(tmp_path / "state")
    yield process
    process.crash()


@pytest.fixture
def frontier(process: FrontierProcess) -> DiskFrontier:
    return process.open()
