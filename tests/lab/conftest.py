"""A web of two sides and its topic; reports without pictures."""

from pathlib import Path

import pytest

from focused_lab.analysis import report_files
from focused_lab.experiment_plan import PreparedTopic
from tests.lab.two_sides import build_web, prepared_topic


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """The web of two sides."""
    return build_web(tmp_path / "web")


@pytest.fixture
def ours(tmp_path: Path) -> PreparedTopic:
    """The topic of one of the sides."""
    return prepared_topic(tmp_path)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports without pictures, whose drawing would take most of the time."""
    monkeypatch.setattr(report_files, "plot_all", lambda *given: {})
