"""A crawl folder whose state another version wrote is still read by what needs no state."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from focused.archive.crawl_tables import open_tables, read_page_rows
from focused.errors import StateFormatError
from focused.reports.why import explain_url
from focused.storage import state_store
from focused.storage.arrow_columns import times_as_seconds
from tests.support.command import focused
from tests.support.continuous_crawl import NEWS
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


def test_its_parquet_files_are_read(folder):
    with open_tables(folder) as tables:
        assert tables == folder


def test_the_parquet_files_of_its_partitions_are_read(folder, tmp_path):
    whole = tmp_path / "whole"
    partition = whole / "partitions" / "partition-0000"
    shutil.copytree(folder, partition)
    with open_tables(whole) as tables:
        assert [row.url for row in read_page_rows(tables)] == [HOME, HOME + "whale1"]


def test_why_explains_its_pages(folder):
    assert explain_url(folder, HOME + "whale1").url == HOME + "whale1"


def test_without_parquet_files_the_format_is_named_with_what_to_do(folder):
    (folder / "pages.parquet").unlink()
    with (
        pytest.raises(StateFormatError, match=r"its format is 17, not .* choose another output"),
        open_tables(folder),
    ):
        pass


def printed(*words: object) -> str:
    return focused(*words).stdout


@pytest.fixture
def stateless(living_crawl: Path, tmp_path: Path) -> Path:
    """A continuous crawl of which only the files are left."""
    folder = Path(shutil.copytree(living_crawl, tmp_path / "out"))
    shutil.rmtree(folder / "state")
    return folder


def store_seconds(folder: Path) -> None:
    """Store times as earlier versions did."""
    for name in ("pages.parquet", "visits.parquet"):
        table = pq.read_table(folder / name)
        seconds = times_as_seconds(table)
        assert seconds.schema != table.schema
        pq.write_table(seconds, folder / name)


def results(folder: Path) -> list[str]:
    """What commands say of a crawl, in which its folder is not named."""
    work = folder.parent / "work"
    corpus, graph, report = work / "corpus", work / "graph", work / "report"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(folder / "search", ignore_errors=True)
    printed("report", folder, "--out", report)
    printed("export", folder, "--out", corpus)
    printed("graph", "build", folder, "--out", graph)
    return [
        (report / "report.json").read_text(encoding="utf-8"),
        (corpus / "train.jsonl").read_text(encoding="utf-8"),
        printed("search", folder, "whales", "--json", "--since", "2000-01-01"),
        printed("why", NEWS, "--folder", folder),
        printed("graph", "top", graph),
    ]


def test_files_with_seconds_instead_of_timestamps_say_the_same(stateless):
    expected = results(stateless)
    store_seconds(stateless)
    assert results(stateless) == expected


def test_a_graph_is_updated_after_times_became_timestamps(stateless, tmp_path):
    timestamps = Path(shutil.copytree(stateless, tmp_path / "new"))
    store_seconds(stateless)
    graph = tmp_path / "graph"
    printed("graph", "build", stateless, "--out", graph)
    best = printed("graph", "top", graph)
    shutil.rmtree(stateless)
    timestamps.rename(stateless)
    printed("graph", "build", stateless, "--out", graph)
    assert printed("graph", "top", graph) == best
