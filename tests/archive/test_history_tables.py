"""The histories of pages and the visits in Parquet files, and their check."""

import shutil
import struct
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from focused.archive.archive import HISTORY_COLUMNS
from focused.archive.page_history import page_history, visit_rows
from focused.archive.warc_files import WARC_FILE
from focused.crawl.folder_check import FolderReport, check_folder
from focused.durations import DAY_S
from focused.reports.crawl_folder import read_crawl
from focused.storage.state_store import StateStore
from focused.web.warc_reader import read_response
from tests.support.continuous_crawl import HOME, LEFT, NEWS, whales
from tests.support.simulated import START, Simulation, topic


@pytest.fixture
def copied(living_crawl: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(living_crawl, tmp_path / "out"))


def checked(folder: Path) -> FolderReport:
    return check_folder(folder, lambda title: nullcontext(lambda done, total: None))


def at(seconds: float) -> pd.Timestamp:
    return pd.Timestamp(seconds, unit="s", tz="UTC")


def page_of(folder: Path, url: str) -> pd.Series:
    pages = pd.read_parquet(folder / "pages.parquet").set_index("url")
    return pages.loc[url]


def test_a_page_has_the_times_and_the_number_of_its_versions(living_crawl):
    news = page_of(living_crawl, NEWS)
    assert news.first_seen == news.fetched_at < at(START + 60)
    assert news.first_seen < news.last_changed < news.last_seen
    assert (news.versions, bool(pd.isna(news.gone_at))) == (3, True)
    assert 2 / 14 * 0.5 < news.change_rate < 2 / 14 * 1.5


def test_a_page_that_never_changed_has_one_version_and_the_rate_zero(living_crawl):
    home = page_of(living_crawl, HOME)
    assert (home.versions, bool(pd.isna(home.last_changed))) == (1, True)
    assert home.change_rate == 0


def test_a_page_that_left_tells_since_when(living_crawl):
    left = page_of(living_crawl, LEFT)
    assert at(START + 4 * DAY_S) <= left.gone_at <= at(START + 7 * DAY_S)


def test_visits_have_a_row_each_in_order_of_time(living_crawl):
    visits = pd.read_parquet(living_crawl / "visits.parquet")
    assert visits["at"].is_monotonic_increasing
    assert (visits["at"] > visits.previous_at).all()
    assert {"changed", "identical", "gone", "moved", "reappeared"} <= set(visits.result)
    pages = pd.read_parquet(living_crawl / "pages.parquet").set_index("seq")
    assert (pages.loc[visits.page].url.to_numpy() == visits.url).all()


def test_a_crawl_that_visits_no_page_again_has_no_history(tmp_path):
    simulation = Simulation(topic(tmp_path, HOME), {HOME: whales(HOME)}).run()
    simulation.close()
    folder = simulation.topic.output.folder
    assert pd.read_parquet(folder / "pages.parquet")[list(HISTORY_COLUMNS)].isna().all(axis=None)
    assert not (folder / "visits.parquet").exists()
    assert read_crawl(folder).visits.empty


def test_files_from_before_histories_can_be_read(copied):
    pages = pq.read_table(copied / "pages.parquet")
    shutil.rmtree(copied / "state")
    (copied / "visits.parquet").unlink()
    pq.write_table(pages.drop(list(HISTORY_COLUMNS)), copied / "pages.parquet")
    assert read_crawl(copied).pages[list(HISTORY_COLUMNS)].isna().all(axis=None)


def test_visits_that_the_files_lack_are_read_from_the_state(copied):
    visits = pd.read_parquet(copied / "visits.parquet")
    visits.head(3).to_parquet(copied / "visits.parquet")
    assert len(read_crawl(copied).visits) == len(visits)


def test_each_version_has_a_warc_record(living_crawl):
    with StateStore.open_for_reading(living_crawl / "state") as (store, _):
        number = int(page_of(living_crawl, NEWS).seq)
        first = page_history(store.tables, number).first_version
        later = [row for row in visit_rows(store.tables) if row.page == number and row.on_topic]
    texts = [
        read_response(living_crawl / each.warc_file, each.warc_offset).body
        for each in (first, *later)
    ]
    assert [text.split(b"fluke ")[-1].split()[1] for text in texts] == [b"calf", b"calf", b"saw"]


def test_a_sound_continuous_crawl_passes_the_check(living_crawl):
    report = checked(living_crawl)
    assert report.damaged == []
    assert report.files == 3


@pytest.mark.parametrize("version", ["first", "later"])
def test_the_check_finds_a_version_without_its_warc_record(copied, version):
    with StateStore.open_for_reading(copied / "state") as (store, _):
        number = int(page_of(copied, NEWS).seq)
        place = page_history(store.tables, number).first_version
        if version == "later":
            place = next(row for row in visit_rows(store.tables) if row.page == number)
    with (copied / WARC_FILE).open("r+b") as warc:
        warc.seek(place.warc_offset)
        warc.write(b"\0\0")
    found = checked(copied).damaged
    assert any(f"no record of {NEWS} at offset {place.warc_offset:,}" in each for each in found)


def test_the_check_finds_a_missing_visit(copied):
    identity = {"topic": "whales", "policy": "focused"}
    store = StateStore.open(copied / "state", identity)
    store.tables.delete("visits", struct.pack(">Q", 5))
    store.close()
    found = " ".join(checked(copied).damaged)
    assert "1 rows of visits are missing" in found
    assert "visits were counted" in found
