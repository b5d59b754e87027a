"""A crawl folder whose state another version wrote is still read by what needs no state."""

from __future__ import annotations

from pathlib import Path

import pytest

from focused.archive.crawl_tables import open_tables
from focused.errors import StateFormatError
from focused.reports.why import explain_url
from focused.storage import state_store
from tests.support.simulated import Simulation, page, site, topic

HOME = "http://a.test/"
WEB = site(page(HOME, "/whale1", text="All about the whale"), page(HOME + "whale1", text="A whale"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished crawl of another version."""
    subject = topic(tmp_path, HOME)
    with monkeypatch.context() as older:
        older.setattr(state_store, "FORMAT_VERSION", 17)
        Simulation(subject, WEB).run().close()
    return subject.output.folder


def test_its_parquet_files_are_read(folder: Path) -> None:
    with open_tables(folder) as tables:
        assert tables == folder


def test_why_explains_its_pages(folder: Path) -> None:
    assert explain_url(folder, HOME + "whale1").url == HOME + "whale1"


def test_without_parquet_files_the_format_is_named_with_what_to_do(folder: Path) -> None:
    (folder / "pages.parquet").unlink()
    with (
        pytest.raises(StateFormatError, match=r"its format is 17, not .* choose another output"),
        open_tables(folder),
    ):
        pass
