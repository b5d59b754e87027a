"""The archive of a crawl of many partitions: parts that standard readers take as one data set."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pytest
from warcio.archiveiterator import ArchiveIterator

from focused.archive.archive import Archive, LinkRow, PageRow
from focused.archive.warc_files import WarcFiles
from focused.errors import StorageError
from focused.rounds.archive_parts import download_warc_files, list_pieces, partition_name
from focused.rounds.manifest import StoredState
from focused.rounds.replication import Replica, restore
from focused.rounds.storage import SharedStorage
from focused.storage.state_store import StateStore
from focused.web.page import Fetched, HttpExchange
from focused.web.warc_reader import read_response
from focused.web.warc_records import format_http_head
from tests.rounds.shared_storages import AtOnce, Later

AGENT = {"User-Agent": "FocusedTest/0.1"}


class Owner:
    """An attempt at a partition that archives pages; ``named`` has the states in the manifest."""

    def __init__(
        self,
        storage: SharedStorage,
        folder: Path,
        partition: int,
        attempt: int,
        named: dict[int, StoredState],
        max_bytes: int,
        background: Executor | None,
    ) -> None:
        self.folder, self.partition, self.named = folder, partition, named
        state = named.get(partition)
        restore(storage, partition, folder, state)
        self.store = StateStore.open(folder / "state", {})
        self.replica = Replica(
            storage,
            partition,
            attempt,
            self.store,
            folder,
            restored=state,
            background=background or AtOnce(),
        )
        try:
            self.replica.begin()
        except BaseException:
            self.store.abandon()
            raise
        prefix = partition_name(partition)
        self.warc = WarcFiles(folder, self.store.tables, prefix=prefix, max_bytes=max_bytes)
        self.archive = Archive(self.store, warc=self.warc)

    def fetch(self, *urls: str) -> None:
        for url in urls:
            body = f"<p>the page {url}".encode()
            exchange = HttpExchange(
                format_http_head("GET / HTTP/1.1", AGENT),
                format_http_head("HTTP/1.1 200 OK", {"Content-Type": "text/html"}),
                body,
            )
            fetched = Fetched(url, 200, {"content-type": "text/html"}, body, exchange=exchange)
            seq = len(self.archive)
            row = PageRow(
                seq, url, "a.test", "fetched", 0.5, {}, 0, None, "", 0.0, float(seq), "focused"
            )
            capture = self.archive.capture(fetched, 0.0)
            self.archive.append(row, [LinkRow(f"{url}/next", "", 0.0, False, None)], capture)
            self.store.commit()
        self.store.sync()

    def upload(self) -> StoredState:
        return self.replica.upload(self.replica.prepare())

    def end_round(self) -> None:
        self.named[self.partition] = self.upload()
        self.replica.confirm(self.named[self.partition])

    def finish(self, *, is_named: bool = True) -> None:
        self.warc.close()
        state = self.upload()
        if is_named:
            self.named[self.partition] = state
        self.store.close()
        self.replica.finish()

    def die(self) -> None:
        self.warc.close()
        self.store.abandon()


Owns = Callable[..., Owner]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared/whales"


@pytest.fixture
def storage(shared: Path) -> SharedStorage:
    return SharedStorage(f"file://{shared.parent}", shared.name)


@pytest.fixture
def owns(storage: SharedStorage, tmp_path: Path) -> Iterator[Owns]:
    opened: list[Owner] = []
    named: dict[int, StoredState] = {}

    def make(
        partition: int,
        attempt: int,
        *,
        max_bytes: int = 1_000_000,
        background: Executor | None = None,
    ) -> Owner:
        folder = tmp_path / f"machine-{len(opened)}"
        owner = Owner(storage, folder, partition, attempt, named, max_bytes, background)
        opened.append(owner)
        return opened[-1]

    yield make
    for each in opened:
        each.die()


def records(path: Path) -> list[Any]:
    """Target URLs of the responses in a WARC file, as warcio reads it."""
    with path.open("rb") as file:
        found = [
            (each.rec_type, each.rec_headers.get_header("WARC-Target-URI"))
            for each in ArchiveIterator(file)
        ]
    return [url for kind, url in found if kind == "response"]


def assert_rows_point_to_records(shared: Path) -> pd.DataFrame:
    pages = pd.read_parquet(shared / "pages")
    for row in pages.itertuples():
        response = read_response(shared / "warc" / row.warc_file, row.warc_offset)
        assert response is not None and response.url == row.url
    return pages


def test_the_parts_of_all_partitions_are_one_data_set(owns, shared):
    for partition in (3, 7, 12):
        owner = owns(partition, 1)
        owner.fetch(*[f"http://a.test/{partition}/{n}" for n in range(5)])
        owner.finish()
    pages = assert_rows_point_to_records(shared)
    assert len(pages) == 15
    assert len(pd.read_parquet(shared / "links")) == 15
    assert not (shared / "visits").exists()
    table = ds.dataset(shared / "pages").to_table(columns=["url", "__filename"])
    by_file = {Path(each["__filename"]).stem: each["url"] for each in table.to_pylist()}
    assert {name: url.split("/")[3] for name, url in by_file.items()} == {
        "partition-0003": "3",
        "partition-0007": "7",
        "partition-0012": "12",
    }
    assert sorted(path.name for path in (shared / "warc").iterdir()) == [
        "partition-0003-00001.warc.gz",
        "partition-0007-00001.warc.gz",
        "partition-0012-00001.warc.gz",
    ]


def test_duckdb_reads_the_parts_as_one_table(owns, shared):
    duckdb = pytest.importorskip("duckdb")
    for partition in (3, 7):
        owner = owns(partition, 1)
        owner.fetch(*[f"http://a.test/{partition}/{n}" for n in range(partition)])
        owner.finish()
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT parse_filename(pages.filename, true), count(*), count(DISTINCT target)"
            " FROM read_parquet(?, filename = true) AS pages"
            " JOIN read_parquet(?) AS links ON links.source = pages.url GROUP BY 1 ORDER BY 1",
            [f"{shared}/pages/*.parquet", f"{shared}/links/*.parquet"],
        ).fetchall()
    assert found == [("partition-0003", 3, 3), ("partition-0007", 7, 7)]


def test_after_losses_each_row_points_to_its_record(owns, shared, storage):
    for attempt in range(1, 6):
        owner = owns(7, attempt, max_bytes=3_000)
        for n in range(7):
            owner.fetch(f"http://a.test/{attempt}/{n}")
            owner.end_round()
        owner.fetch(f"http://a.test/{attempt}/lost")
        owner.die()
    owner = owns(7, 6)
    owner.finish()
    pages = assert_rows_point_to_records(shared)
    wanted = [f"http://a.test/{attempt}/{n}" for attempt in range(1, 6) for n in range(7)]
    assert sorted(pages["url"]) == sorted(wanted)
    found = [url for path in (shared / "warc").iterdir() for url in records(path)]
    assert sorted(found) == sorted(wanted)
    assert list_pieces(storage, 7) == []


class KilledError(Exception):
    """The attempt was killed amid a deletion."""


class KilledDeletions(SharedStorage):
    """Some deletions remove a part of the objects, and the attempt is killed."""

    def __init__(self, url: str, crawl: str, random: Random) -> None:
        super().__init__(url, crawl)
        self.share, self._random = 0.4, random

    def delete(self, names: Sequence[str]) -> None:
        if names and self._random.random() < self.share:
            super().delete(self._random.sample(names, self._random.randrange(len(names))))
            raise KilledError
        super().delete(names)


@pytest.mark.parametrize("seed", range(40))
def test_whenever_attempts_are_killed_each_row_points_to_its_record(shared, tmp_path, seed):
    random = Random(seed)
    storage = KilledDeletions(f"file://{shared.parent}", shared.name, random)
    named: dict[int, StoredState] = {}
    wanted: list[str] = []
    for attempt in range(1, random.randrange(3, 9)):
        background, new = random.choice([AtOnce(), Later()]), list[str]()
        with suppress(KilledError), ExitStack() as stack:
            folder, max_bytes = tmp_path / f"machine-{attempt}", random.choice([3_000, 10**6])
            owner = Owner(storage, folder, 7, attempt, named, max_bytes, background)
            stack.callback(owner.die)
            for number in range(random.randrange(12)):
                step = random.choices(["fetch", "upload", "round", "end"], [10, 3, 5, 1])[0]
                if step == "fetch":
                    new.append(f"http://a.test/{attempt}/{number}")
                    owner.fetch(new[-1])
                elif step == "upload":
                    owner.upload()
                elif step == "round":
                    wanted, new = wanted + new, []
                    owner.end_round()
                else:
                    if isinstance(background, Later):
                        background.run()
                    owner.finish(is_named=False)
                    break
    storage.share = 0.0
    Owner(storage, tmp_path / "last", 7, 99, named, 10**6, None).finish()
    found = assert_rows_point_to_records(shared)["url"] if wanted else ()
    assert sorted(found) == sorted(wanted)


def test_an_unfinished_file_is_cut_where_the_state_ends(owns, shared):
    first = owns(7, 1)
    first.fetch("http://a.test/kept")
    first.end_round()
    first.fetch("http://a.test/not-in-the-state")
    first.replica._warc.upload_pieces()
    first.die()
    owns(7, 2)
    assert records(shared / "warc/partition-0007-00001.warc.gz") == ["http://a.test/kept"]


def test_what_an_attempt_left_in_pieces_is_stored_whole_before_the_next_one_writes(
    owns, shared, storage
):
    for attempt in (1, 2, 3):
        owner = owns(7, attempt, max_bytes=3_000, background=Later())
        for n in range(5):
            owner.fetch(f"http://a.test/{attempt}/{n}")
            owner.end_round()
        assert {each.attempt for each in list_pieces(storage, 7)} == {attempt}
    owns(7, 4, background=Later())
    assert list_pieces(storage, 7) == []
    owns(7, 5).finish()
    assert len(assert_rows_point_to_records(shared)) == 15


def test_the_next_attempt_begins_a_new_file(owns, shared):
    first = owns(7, 1)
    first.fetch("http://a.test/1")
    first.end_round()
    second = owns(7, 2)
    second.fetch("http://a.test/2")
    second.finish()
    assert records(shared / "warc/partition-0007-00002.warc.gz") == ["http://a.test/2"]
    assert_rows_point_to_records(shared)


def test_a_full_file_is_stored_whole_and_its_pieces_go(owns, shared, storage):
    owner = owns(7, 1, max_bytes=3_000)
    while not (owner.folder / "partition-0007-00002.warc.gz").exists():
        owner.fetch(f"http://a.test/{len(owner.archive)}")
        owner.end_round()
    local = owner.folder / "partition-0007-00001.warc.gz"
    assert (shared / "warc" / local.name).read_bytes() == local.read_bytes()
    assert {each.file for each in list_pieces(storage, 7)} == {2}


def test_an_attempt_out_of_reach_that_goes_on_adds_no_record(owns, shared):
    asleep = owns(7, 1, max_bytes=3_000)
    asleep.fetch("http://a.test/1")
    asleep.end_round()
    second = owns(7, 2, max_bytes=3_000)
    for n in range(20):
        asleep.fetch(f"http://a.test/old/{n}")
        asleep.upload()
    second.fetch("http://a.test/2")
    second.finish()
    found = [url for path in (shared / "warc").iterdir() for url in records(path)]
    assert sorted(found) == ["http://a.test/1", "http://a.test/2"]
    assert sorted(assert_rows_point_to_records(shared)["url"]) == sorted(found)


def test_an_end_that_no_manifest_names_adds_no_record(owns, shared):
    first = owns(7, 1)
    first.fetch("http://a.test/1")
    first.end_round()
    first.fetch("http://a.test/2")
    first.finish(is_named=False)
    second = owns(7, 2)
    second.fetch("http://a.test/2")
    second.finish()
    found = [url for path in (shared / "warc").iterdir() for url in records(path)]
    assert sorted(found) == ["http://a.test/1", "http://a.test/2"]
    assert sorted(assert_rows_point_to_records(shared)["url"]) == sorted(found)


def test_pieces_count_rather_than_a_file_of_an_end_that_no_manifest_names(owns, shared):
    first = owns(7, 1)
    first.fetch("http://a.test/1")
    first.end_round()
    unnamed = owns(7, 2, max_bytes=1_000)
    unnamed.fetch(*[f"http://a.test/unnamed/{n}" for n in range(20)])
    unnamed.finish(is_named=False)
    third = owns(7, 3, max_bytes=1_000, background=Later())
    third.fetch(*[f"http://a.test/{n}" for n in range(2, 8)])
    third.end_round()
    third.die()
    assert (third.folder / "partition-0007-00003.warc.gz").exists()
    owns(7, 4).finish()
    assert len(assert_rows_point_to_records(shared)) == 7


def test_a_file_of_an_end_that_no_manifest_names_is_not_downloaded(owns, storage, tmp_path):
    first = owns(7, 1)
    first.fetch("http://a.test/1")
    first.end_round()
    unnamed = owns(7, 2)
    unnamed.fetch("http://a.test/unnamed")
    unnamed.finish(is_named=False)
    third = owns(7, 3)
    third.end_round()
    restore(storage, 7, tmp_path / "copy", third.named[7])
    with StateStore.open_for_reading(tmp_path / "copy/state") as (store, _):
        download_warc_files(storage, 7, store.tables, tmp_path / "copy")
    found = [path.name for path in (tmp_path / "copy").glob("*.warc.gz")]
    assert found == ["partition-0007-00001.warc.gz"]


def test_a_file_is_whole_once_its_first_piece_is_gone(owns, shared, storage):
    first = owns(7, 1)
    for n in range(3):
        first.fetch(f"http://a.test/{n}")
        first.end_round()
    local = first.folder / "partition-0007-00001.warc.gz"
    storage.upload(f"warc/{local.name}", local)
    begin, *_ = list_pieces(storage, 7)
    storage.delete([f"warc-pieces/partition-0007/00001-0000000001-{begin.offset:015}"])
    owns(7, 2).finish()
    assert len(assert_rows_point_to_records(shared)) == 3


def test_a_crawl_that_ended_can_be_continued(owns, shared):
    first = owns(7, 1)
    first.fetch("http://a.test/1")
    first.finish()
    second = owns(7, 2)
    second.fetch("http://a.test/2")
    second.finish()
    assert sorted(assert_rows_point_to_records(shared)["url"]) == [
        "http://a.test/1",
        "http://a.test/2",
    ]


def test_a_missing_piece_is_reported_by_file_and_offset(owns, storage):
    first = owns(7, 1)
    for n in range(3):
        first.fetch(f"http://a.test/{n}")
        first.end_round()
    (_, second, _) = list_pieces(storage, 7)
    storage.delete([f"warc-pieces/partition-0007/00001-0000000001-{second.offset:015}"])
    with pytest.raises(StorageError, match=rf"byte {second.offset} of partition-0007-00001"):
        owns(7, 2)
