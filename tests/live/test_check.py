"""``focused crawl --check`` on the folder of a real crawl."""

import re
import shutil
from functools import partial
from pathlib import Path

import lmdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from focused.archive.parquet import PAGES_SCHEMA
from focused.archive.warc_files import WARC_FILE
from focused.storage.environment import MAP_SIZE_BYTES, MAX_TABLES
from focused.storage.state_store import StateStore
from tests.live.webs import HOSTS, SEED, pages_asked, wide_web
from tests.support.command import focused
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import served
from tests.support.small_disk import SmallDisk

PAGES = 40


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    topic = write_topic(tmp_path_factory.mktemp("crawled"), SEED, budget=f"pages = {PAGES}")
    with served(wide_web()) as site:
        assert crawl(topic, site.address, FOCUSED_REPORT=True).status == 0
    return topic.parent


@pytest.fixture
def topic(crawled: Path, tmp_path: Path) -> Path:
    shutil.copytree(crawled, tmp_path, dirs_exist_ok=True)
    return tmp_path / "whales.toml"


@pytest.fixture
def folder(topic: Path) -> Path:
    return topic.parent / "out"


check = partial(focused, "crawl", "--check")


def test_a_sound_crawl_is_reported_to_be_sound_by_folder_and_by_topic(topic, folder):
    for what in (folder, topic):
        checked = check(what)
        found = re.search(r"([\d,]+) records of the WARC and 5 files beside it", checked.output)
        assert found is not None, checked.output
        assert int(found[1].replace(",", "")) > PAGES  # requests are records, too
        assert "no damage was found" in checked.output


def test_a_check_changes_nothing(folder):
    def files() -> dict[str, tuple[bytes, int]]:
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = files()
    check(folder)
    assert files() == before


def test_a_crawl_that_was_killed_is_sound(folder):
    """Its last rows are in the journal; behind the WARC's end is what was being written."""
    with (folder / WARC_FILE).open("ab") as warc:
        warc.write(b"\x1f\x8b\x08 a record that was cut short")
    check(folder)


def flip_in(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 8
    path.write_bytes(data)


def damage_the_state(folder: Path) -> str:
    data = (folder / "state/data.mdb").read_bytes()
    # On all pages: LMDB keeps the bytes of those that are free.
    (folder / "state/data.mdb").write_bytes(data.replace(b"h0.test", b"h0.tesu"))
    return "state"


def damage_a_record(folder: Path) -> str:
    data = (folder / WARC_FILE).read_bytes()
    begins = data.index(b"\x1f\x8b\x08", len(data) // 2)
    flip_in(folder / WARC_FILE, begins + 20)  # behind the header, which has no checksum
    return WARC_FILE


def cut_the_warc(folder: Path) -> str:
    with (folder / WARC_FILE).open("r+b") as warc:
        warc.truncate(5_000)
    return WARC_FILE


def remove_the_warc(folder: Path) -> str:
    (folder / WARC_FILE).unlink()
    return WARC_FILE


def exchange_two_records(folder: Path) -> str:
    """The rows' offsets point at records that are sound, but of other URLs."""
    pages = pd.read_parquet(folder / "pages.parquet").dropna(subset=["warc_offset"])
    first, second, third, *_ = sorted(map(int, pages["warc_offset"]))
    whole = (folder / WARC_FILE).read_bytes()
    (folder / WARC_FILE).write_bytes(
        whole[:first] + whole[second:third] + whole[first:second] + whole[third:]
    )
    return "there is no record of http://h"


def damage_the_parquet_file(folder: Path) -> str:
    """Flip a bit of values: Parquet has checksums of these, not of its page headers."""
    path = folder / "pages.parquet"
    url = pq.read_metadata(path).row_group(0).column(PAGES_SCHEMA.get_field_index("url"))
    assert url.path_in_schema == "url"
    begin = url.dictionary_page_offset or url.data_page_offset
    flip_in(path, begin + url.total_compressed_size - 10)
    return "pages.parquet"


def damage_the_statistics(folder: Path) -> str:
    (folder / "stats.json").write_text('{"cut": ')
    return "stats.json"


def lose_a_row(folder: Path) -> str:
    store = StateStore.reopen(folder / "state")
    store.tables.delete("pages", (3).to_bytes(8, "big"))
    store.close()
    return "1 rows of pages are missing"


@pytest.mark.parametrize(
    "damage",
    [
        damage_the_state,
        damage_a_record,
        cut_the_warc,
        remove_the_warc,
        exchange_two_records,
        damage_the_parquet_file,
        damage_the_statistics,
        lose_a_row,
    ],
)
def test_damage_is_named_and_the_status_is_not_0(folder, damage):
    named = damage(folder)
    checked = check(folder, status=1)
    assert named in checked.output
    assert str(folder) in checked.output
    assert "Restore" in checked.output
    assert "Traceback" not in checked.output


@SmallDisk.needed
def test_a_folder_on_a_read_only_disk_can_be_checked(folder, tmp_path):
    with SmallDisk(tmp_path / "disk", kib=5_000) as disk:
        shutil.copytree(folder, disk.seen_from_here, dirs_exist_ok=True)
        disk.make_read_only()
        checked = check(disk.seen_from_here)
    assert "no damage was found" in checked.output


def test_a_crawl_that_runs_is_not_checked(folder):
    store = StateStore.reopen(folder / "state")
    checked = check(folder, status=2)
    store.close()
    assert "in use by another crawl" in checked.output


def test_a_folder_without_a_crawl_is_reported(tmp_path):
    checked = check(tmp_path, status=2)
    assert "there is no crawl's state" in checked.output


def test_a_folder_is_not_a_topic(folder):
    crawled = focused("crawl", folder, status=2)
    assert "name a topic file" in crawled.output


@pytest.mark.parametrize("table", ["hosts", "host_ids", "links", "queue", "seen", "sources"])
def test_a_crawl_never_continues_silently_from_a_damaged_row(topic, folder, table):
    _damage_all_rows_of(table, folder)
    topic = write_topic(topic.parent, SEED)
    with served(wide_web()) as site:
        crawled = crawl(topic, site.address)
    assert crawled.status not in (0, None)
    assert f"table '{table}'" in crawled.output
    assert "Traceback" not in crawled.output
    assert len(pages_asked(site)) <= HOSTS  # none was asked after the row was read
    checked = check(folder, status=1)
    assert f"table '{table}'" in checked.output


def _damage_all_rows_of(table: str, folder: Path) -> None:
    state = folder / "state"
    with lmdb.open(str(state), map_size=MAP_SIZE_BYTES, max_dbs=MAX_TABLES) as env:
        database = env.open_db(table.encode(), create=False)
        with env.begin(write=True, db=database) as txn:
            rows = list(txn.cursor())
            for key, _ in rows:
                txn.delete(key)
            for key, stored in rows:
                txn.put(key, stored[:-1] + bytes([stored[-1] ^ 1]))
