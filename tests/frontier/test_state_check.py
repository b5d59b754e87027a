"""The state check finds all damage of what is in use, and writes nothing."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from focused.errors import StateError
from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink, link_key
from focused.frontier.state_check import check_state
from focused.storage import environment
from focused.storage import state_store as store_module
from focused.storage.environment import MAP_SIZE_BYTES, MAX_TABLES
from focused.storage.state_store import StateStore

PAGE_BYTES = 4096
HOSTS = 40


def link(number: int, rng: random.Random) -> QueuedLink:
    # One host has so many links that its sets have trees of their own.
    host = "large.test" if rng.random() < 0.5 else f"h{rng.randrange(HOSTS)}.test"
    url = f"http://{host}/a/page/{number}"
    return QueuedLink(link_key(url), url, host, rng.random(), 0.5, parent=f"http://{host}/")


def crawl(store: StateStore, links: range, rng: random.Random) -> None:
    """Push links and settle some, as a crawl does: rows come, move and go."""
    frontier = DiskFrontier(store.tables)
    for number in links:
        now = 1000.0 * number
        frontier.push(link(number, rng), now)
        if number % 3 == 0:
            offer = frontier.offer(now)
            assert isinstance(offer, Offer)
            frontier.settle(offer, HostPace(), now)
            store.tables.put("pages", number.to_bytes(8, "big"), rng.randbytes(number % 9_000))
        if number % 50 == 0:
            frontier.save()
            store.commit()
            store.sync()
    frontier.save()
    store.commit()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "state"
    store = StateStore.open(folder, {})
    crawl(store, range(1_500), random.Random(1))
    store.close()
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "mine" / "state"))


def damage_in(folder: Path) -> list[str]:
    return check_state(folder, _take_nothing).damaged


def _take_nothing(table: str, key: bytes, value: bytes) -> None:
    pass


def rows_by_lmdb(folder: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """All rows of all tables, as LMDB itself reads them."""
    with (
        lmdb.open(
            str(folder), map_size=MAP_SIZE_BYTES, max_dbs=MAX_TABLES, readonly=True, lock=False
        ) as env,
        env.begin() as txn,
    ):
        dbs = environment.open_databases(env, txn)
        return {name: list(txn.cursor(db=db)) for name, db in dbs.items()}


def noise(data: bytearray, page: int, rng: random.Random) -> None:
    data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = rng.randbytes(PAGE_BYTES)


def zeros(data: bytearray, page: int, rng: random.Random) -> None:
    data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)


def another_page(data: bytearray, page: int, rng: random.Random) -> None:
    other = rng.randrange(2, len(data) // PAGE_BYTES)
    other += other == page
    content = data[other * PAGE_BYTES : (other + 1) * PAGE_BYTES]
    data[page * PAGE_BYTES : page * PAGE_BYTES + len(content)] = content


@pytest.mark.parametrize("how", [noise, zeros, another_page])
def test_a_page_that_is_overwritten_is_noticed_or_holds_no_row(folder, how):
    rng = random.Random(2)
    whole, rows = (folder / "data.mdb").read_bytes(), rows_by_lmdb(folder)
    noticed = 0
    for page in rng.sample(range(2, len(whole) // PAGE_BYTES), 12):
        data = bytearray(whole)
        how(data, page, rng)
        (folder / "data.mdb").write_bytes(data)
        if damage_in(folder):
            noticed += 1
        else:
            assert rows_by_lmdb(folder) == rows, page
    assert noticed >= 6


@pytest.mark.parametrize("seed", range(2))
def test_flipped_bits_are_noticed_or_change_nothing(folder, seed):
    """Some bytes hold nothing: free space, the older head, what aligns rows."""
    rng = random.Random(seed)
    whole, rows = (folder / "data.mdb").read_bytes(), rows_by_lmdb(folder)
    noticed = 0
    for _ in range(16):
        data = bytearray(whole)
        data[rng.randrange(2 * PAGE_BYTES, len(data))] ^= 1 << rng.randrange(8)
        (folder / "data.mdb").write_bytes(data)
        if damage_in(folder):
            noticed += 1
        else:
            assert rows_by_lmdb(folder) == rows
    assert noticed >= 4


@pytest.mark.parametrize("at", range(0, 152, 15))
@pytest.mark.parametrize("head", [0, 1])
def test_a_damaged_head_is_noticed_or_changes_nothing(folder, head, at):
    rows = rows_by_lmdb(folder)
    data = bytearray((folder / "data.mdb").read_bytes())
    data[head * PAGE_BYTES + at] ^= 2
    (folder / "data.mdb").write_bytes(data)
    assert damage_in(folder) or rows_by_lmdb(folder) == rows


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_state_that_is_cut_short_is_noticed(folder, part):
    whole = (folder / "data.mdb").read_bytes()
    (folder / "data.mdb").write_bytes(whole[: int(len(whole) * part)])
    assert damage_in(folder)


def files_in(folder: Path) -> dict[str, Any]:
    return {path.name: (path.read_bytes(), path.stat()) for path in folder.iterdir()}


def without_access_time(files: dict[str, Any]) -> dict[str, Any]:
    return {name: (data, stat.st_mtime_ns, stat.st_ino) for name, (data, stat) in files.items()}


def test_a_sound_state_has_no_damage_and_stays_as_it_is(folder):
    before = without_access_time(files_in(folder))
    report = check_state(folder, _take_nothing)
    assert report.damaged == []
    assert report.rows["seen"] == 1_500
    assert report.rows["links"] == report.rows["queue"] == 1_000
    assert without_access_time(files_in(folder)) == before


def test_each_sound_row_is_handed_on_without_its_checksum(folder):
    taken = []
    check_state(folder, lambda table, key, value: taken.append((table, key, value)))
    store = StateStore.reopen(folder)
    pages = [("pages", key, value) for key, value in store.tables.scan("pages")]
    store.close()
    assert [row for row in taken if row[0] == "pages"] == pages


@pytest.fixture
def killed(folder: Path) -> Path:
    """A state whose last rows are in the journal alone."""
    store = StateStore.reopen(folder)
    crawl(store, range(1_500, 1_540), random.Random(3))
    store.tables.put("pages", b"last", b"row")
    store.commit()
    store.abandon()
    return folder


def test_rows_of_the_journal_are_handed_on_too(killed):
    taken = []
    report = check_state(killed, lambda table, key, value: taken.append((table, key, value)))
    assert report.damaged == []
    assert report.batches == 3
    assert ("pages", b"last", b"row") in taken


def test_a_damaged_journal_is_noticed(killed):
    journal = killed / "journal"
    whole = journal.read_bytes()
    rng = random.Random(4)
    for _ in range(50):
        data = bytearray(whole)
        data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
        journal.write_bytes(data)
        assert f"{killed}: its journal is damaged" in damage_in(killed)[0]
    journal.unlink()
    assert damage_in(killed) == [f"{killed}: its journal is missing"]


def delete_all(table: str, key: bytes | None = None) -> Callable[[StateStore], None]:
    def change(store: StateStore) -> None:
        for each in [key] if key else [key for key, _ in store.tables.scan(table)]:
            store.tables.delete(table, each)

    return change


def one_link_twice(store: StateStore) -> None:
    key, queue_key = next(store.tables.first_members("queue"))
    store.tables.add("queue", key, b"\0" + queue_key[1:])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (delete_all("host_ids"), "41 hosts have rows, but no name"),
        (delete_all("links"), "1,000 queued links have no row"),
        (delete_all("sources"), "1,000 queued links have a source without a row"),
        (delete_all("seen"), "1,000 queued links are not among the seen ones"),
        (delete_all("queue"), "1,000 rows of links have no place in a queue"),
        (one_link_twice, "1 links stand in two queues"),
        (
            lambda store: store.tables.put_meta("found", 1_499),
            "1 links were seen beyond those that were counted",
        ),
        (
            lambda store: store.tables.put("leased", bytes(4), bytes(12) + b"\0"),
            "1 links under way are not queued",
        ),
    ],
)
def test_tables_that_do_not_agree_are_reported(folder, change, reason):
    store = StateStore.reopen(folder)
    change(store)
    store.close()
    assert f"{folder}: {reason}" in damage_in(folder)


def test_a_state_of_another_format_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(store_module, "FORMAT_VERSION", 9)
        StateStore.open(tmp_path / "state", {}).close()
    with pytest.raises(StateError, match=f"its format is 9, not {store_module.FORMAT_VERSION}"):
        damage_in(tmp_path / "state")


def test_a_state_that_a_crawl_has_open_is_refused(folder):
    store = StateStore.reopen(folder)
    with pytest.raises(StateError, match="in use by another crawl"):
        damage_in(folder)
    store.close()
    assert damage_in(folder) == []


def test_a_folder_without_state_is_refused(tmp_path):
    with pytest.raises(StateError, match="there is no crawl's state"):
        damage_in(tmp_path)
