"""Debian's tools, as stand-ins."""

from pathlib import Path

import pytest

from tests.lab.builders.fake_debian import FakeDebian


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDebian:
    return FakeDebian(tmp_path / "debian", monkeypatch)
