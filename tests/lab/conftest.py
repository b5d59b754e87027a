"""Reports without pictures."""

from __future__ import annotations

import pytest

from focused_lab.analysis import report_files


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports without pictures, whose drawing would take most of the time."""
    monkeypatch.setattr(report_files, "plot_all", lambda *given: {})
