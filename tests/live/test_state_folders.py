"""A crawl's folder with all kinds of damage, through the real command."""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from focused.archive.crawl_tables import open_tables
from tests.live.webs import (
    INTERRUPTED_DELAY_S,
    LATENCIES,
    SEED,
    all_pages,
    answered,
    pages_asked,
    wide_web,
)
from tests.support.crawling import Finished, crawl, start, write_topic
from tests.support.recorded_web import MemoryWeb, Served, html, page, served
from tests.support.small_disk import SmallDisk

BEFORE = 60
LMDB_PAGE_BYTES = 4096


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served(wide_web(), LATENCIES) as site:
        yield site


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, site: Served) -> Path:
    """The folder of a crawl that has some pages, and could go on."""
    topic = write_topic(tmp_path_factory.mktemp("begun"), SEED, budget=f"pages = {BEFORE}")
    assert crawl(topic, site.address).status == 0
    return topic.parent / "out"


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a crawl that was killed: its last pages are in the journal alone."""
    topic = write_topic(tmp_path_factory.mktemp("dead"), SEED, delay_s=INTERRUPTED_DELAY_S)
    with served(wide_web(), LATENCIES) as site:
        process = start(topic, site.address)
        journal = topic.parent / "out/state/journal"
        # A checkpoint empties the journal.
        while answered(site) < BEFORE or journal.stat().st_size <= 10 * LMDB_PAGE_BYTES:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
    return topic.parent / "out"


@pytest.fixture
def topic(tmp_path: Path, begun: Path) -> Path:
    """A topic whose crawl is begun, in a copy of its own."""
    shutil.copytree(begun, tmp_path / "out")
    return write_topic(tmp_path, SEED)


@pytest.fixture
def killed_topic(tmp_path: Path, dead: Path) -> Path:
    """A topic whose crawl was killed, in a copy of its own."""
    shutil.copytree(dead, tmp_path / "out")
    return write_topic(tmp_path, SEED)


def files_in(folder: Path) -> dict[str, bytes]:
    """What must stay as it is: all but the log and the locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("crawl.log", "lock", "lock.mdb")
    }


def complaint_of(crawled: Finished) -> str:
    """The one line of the output."""
    assert crawled.status not in (0, None), crawled.output
    assert crawled.status > 0, f"killed by signal {-crawled.status}: {crawled.output}"
    assert "Traceback" not in crawled.output
    ours = [line for line in crawled.output.splitlines() if line.startswith("focused: ")]
    (line,) = [line for line in ours if not line.startswith("focused: resuming in ")]
    return line


def refused(topic: Path, site: Served) -> str:
    """Crawl; return the complaint, after making sure that nothing was asked for or changed."""
    before, began_at = files_in(topic.parent / "out"), time.monotonic()
    crawled = crawl(topic, site.address)
    complaint = complaint_of(crawled)
    assert crawled.output.splitlines() == [complaint]
    assert files_in(topic.parent / "out") == before
    assert not [each for each in site.accesses if each.start >= began_at]
    return complaint


def damage(topic: Path, how: Callable[[bytes], bytes], file: str = "data.mdb") -> None:
    data = topic.parent / "out/state" / file
    data.write_bytes(how(data.read_bytes()))


def noise(length: int) -> bytes:
    return random.Random(9).randbytes(length)


def repeated(site: Served) -> int:
    asked = pages_asked(site)
    return len(asked) - len(set(asked))


def test_a_damaged_state_is_reported_and_left_alone(topic, site):
    damage(topic, lambda data: noise(2 * LMDB_PAGE_BYTES) + data[2 * LMDB_PAGE_BYTES :])
    complaint = refused(topic, site)
    assert str(topic.parent / "out/state") in complaint
    assert "damaged" in complaint


@pytest.mark.parametrize("lot", range(6))
def test_noise_on_any_page_of_the_state_is_reported_or_was_on_a_free_page(topic, site, lot):
    pages = (topic.parent / "out/state/data.mdb").stat().st_size // LMDB_PAGE_BYTES
    number = random.Random(lot).randrange(2, pages)  # the first two begin the file: see above
    damage(topic, lambda data: noise_on_page(number, data))
    crawled = crawl(topic, site.address)
    if crawled.status == 0:
        assert set(crawled.fetched()) == all_pages()
    else:
        assert str(topic.parent / "out") in complaint_of(crawled)


def noise_on_page(number: int, data: bytes) -> bytes:
    at = number * LMDB_PAGE_BYTES
    return data[:at] + noise(LMDB_PAGE_BYTES) + data[at + LMDB_PAGE_BYTES :]


def noise_half_way(data: bytes) -> bytes:
    half = len(data) // 2
    return data[:half] + noise(LMDB_PAGE_BYTES) + data[half + LMDB_PAGE_BYTES :]


@pytest.mark.parametrize("what", ["noise in the journal", "no journal"])
def test_a_damaged_journal_is_reported_and_left_alone(killed_topic, site, what):
    if what == "no journal":
        (killed_topic.parent / "out/state/journal").unlink()
    else:
        damage(killed_topic, noise_half_way, "journal")
    complaint = refused(killed_topic, site)
    assert str(killed_topic.parent / "out/state") in complaint
    assert "damaged" in complaint


@pytest.mark.parametrize("what", ["an empty state", "no state"])
def test_a_harvest_that_lost_its_state_is_not_overwritten(topic, site, what):
    if what == "no state":
        shutil.rmtree(topic.parent / "out/state")
    else:
        damage(topic, lambda data: b"")
    complaint = refused(topic, site)
    assert str(topic.parent / "out") in complaint
    assert "pages.parquet" in complaint
    assert "output.folder" in complaint


def test_a_folder_with_files_of_another_program_is_left_alone(tmp_path, site):
    topic = write_topic(tmp_path, SEED)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/settings.json").write_text('{"editor": "mine"}')
    complaint = refused(topic, site)
    assert "settings.json" in complaint
    assert "output.folder" in complaint


@pytest.mark.parametrize(
    "largest_file_bytes",
    [pytest.param(120_000, id="for the state"), pytest.param(400_000, id="for the WARC")],
)
def test_where_there_is_not_a_room_the_crawl_stops_and_continues_when_there_is(
    tmp_path, largest_file_bytes
):
    web, topic = _long_pages(), write_topic(tmp_path, "http://long.test/0")
    with served(web) as site:
        stopped = crawl(topic, site.address, largest_file_bytes=largest_file_bytes)
        complaint = complaint_of(stopped)
        with open_tables(stopped.folder) as tables:  # a full disk may have no room for its own
            harvested = replace(stopped, folder=tables).fetched()
        ended = crawl(topic, site.address)
    assert f"cannot write to {tmp_path / 'out'}" in complaint
    assert "start the same command again" in complaint
    assert 0 < len(harvested) < len(LONG_PAGES)
    assert ended.status == 0, ended.output
    assert ended.fetched()[: len(harvested)] == harvested
    assert set(ended.fetched()) == LONG_PAGES
    # One connection a host: one answer had nowhere to go.
    assert repeated(site) <= 1


LONG_PAGES = {f"http://long.test/{number}" for number in range(40)}


def _long_pages() -> MemoryWeb:
    """Pages that are much of the WARC and little of the state."""
    rng = random.Random(3)
    return MemoryWeb(
        *[
            page(
                f"http://long.test/{number}",
                html(str(number), f"/{number + 1}", f"/{number + 2}", text=_long_text(rng)),
            )
            for number in range(len(LONG_PAGES))
        ]
    )


def _long_text(rng: random.Random) -> str:
    return " ".join(f"{rng.randrange(10**9):x}" for _ in range(3000))


@SmallDisk.needed
def test_a_folder_that_may_not_be_written_to_is_reported(tmp_path, site):
    topic = write_topic(tmp_path, SEED)
    with SmallDisk(tmp_path / "out", kib=500) as disk:
        disk.make_read_only()
        complaint = complaint_of(disk.crawl(topic, site.address))
    assert str(tmp_path / "out") in complaint
    assert "Read-only file system" in complaint


def test_a_harvest_that_cannot_be_exported_is_reported_and_kept(topic, site):
    in_the_way = topic.parent / "out/pages.parquet"
    in_the_way.unlink()
    in_the_way.mkdir()
    crawled = crawl(topic, site.address)
    assert str(topic.parent / "out") in complaint_of(crawled)
    in_the_way.rmdir()
    ended = crawl(topic, site.address)
    assert ended.status == 0, ended.output
    assert set(ended.fetched()) == all_pages()
