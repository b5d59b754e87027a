"""The state folder and other processes, programs, formats, and full disks."""

import resource
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Timer

import lmdb
import msgspec
import pytest

from focused.errors import StateError
from focused.storage import environment
from focused.storage.environment import shared_lock
from focused.storage.state_store import FORMAT_VERSION, StateStore


def elsewhere(program: str, folder: Path, **options) -> subprocess.Popen[str]:
    """A Python process on the folder, which it has as ``folder``."""
    head = "import sys; from pathlib import Path; folder = Path(sys.argv[1])\n"
    head += "from focused.errors import StateError\n"
    head += "from focused.storage.state_store import StateStore\n"
    command = [sys.executable, "-c", head + program, str(folder)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    )


def read_output(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=60)
    return out.strip()


def everything(folder: Path) -> dict[str, bytes]:
    """Of the files that hold something: locks are anybody's."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("lock", "lock.mdb")
    }


def checkpoint(store: StateStore) -> None:
    store.commit()
    for _ in range(20):
        store.sync()


LOOK_TWICE = """
view = StateStore.view(folder)
print(view.tables.count("content"), flush=True)
input()
print(view.tables.count("content"), flush=True)
view.close()
view = StateStore.view(folder)
print(view.tables.count("content"), flush=True)
view.close()
"""


def test_a_view_beside_a_running_crawl_is_of_one_moment_and_holds_nobody_up(tmp_path):
    folder = tmp_path / "state"
    store = StateStore.open(folder, {})
    store.tables.put("content", b"1", b"")
    checkpoint(store)
    store.tables.put("content", b"2", b"")
    store.commit()
    beside = elsewhere(LOOK_TWICE, folder)
    assert beside.stdout is not None
    assert beside.stdout.readline() == "1\n"
    for number in range(100):
        store.tables.put("content", b"later %d" % number, bytes(1_000))
        checkpoint(store)
    out, _ = beside.communicate("\n", timeout=60)
    assert out.split() == ["1", "102"]
    store.tables.put("content", b"last", b"")
    store.close()
    store = StateStore.reopen(folder)
    assert store.tables.count("content") == 103
    store.close()


def test_another_process_is_refused_and_reported_by_whom(tmp_path):
    store = StateStore.open(tmp_path / "state", {})
    program = "try: StateStore.open(folder, {})\nexcept StateError as error: print(error)"
    message = read_output(elsewhere(program, tmp_path / "state"))
    assert "in use by another crawl (process" in message
    store.tables.put("content", b"1", b"")
    store.close()


def test_a_crawl_waits_for_a_command_that_reads_its_state(tmp_path):
    StateStore.open(tmp_path, {}).close()
    reading = ExitStack()
    reading.enter_context(shared_lock(tmp_path))
    ended = Event()
    reading.callback(ended.set)  # before the lock is released
    Timer(0.1, reading.close).start()
    StateStore.open(tmp_path, {}).close()
    assert ended.is_set()


def test_a_command_that_goes_on_reading_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "MAX_READING_S", 0.0)
    StateStore.open(tmp_path, {}).close()
    with shared_lock(tmp_path), pytest.raises(StateError, match="being read by another command"):
        StateStore.open(tmp_path, {})


@pytest.mark.parametrize("held", ["rows", "a table named as ours", "a row named as our table"])
@pytest.mark.parametrize("reading", ["open", "reopen", "view"])
def test_another_programs_tables_are_refused_and_left_alone(tmp_path, held, reading):
    folder = tmp_path / "theirs"
    folder.mkdir()
    with lmdb.open(str(folder), max_dbs=3) as env:
        table = env.open_db(b"meta") if held == "a table named as ours" else None
        with env.begin(write=True) as txn:
            txn.put(b"meta" if held == "a row named as our table" else b"k", b"v", db=table)
    before = everything(folder)
    with pytest.raises(StateError, match="damaged or belongs"):
        StateStore.open(folder, {}) if reading == "open" else getattr(StateStore, reading)(folder)
    assert everything(folder) == before


@pytest.mark.parametrize("reading", ["open", "reopen", "view"])
@pytest.mark.parametrize("version", [3, FORMAT_VERSION + 1])
def test_another_format_is_refused_by_its_number_and_left_alone(tmp_path, version, reading):
    folder = tmp_path / "state"
    folder.mkdir()
    with lmdb.open(str(folder), max_dbs=3) as env:
        identity = msgspec.json.encode({"format": version, "topic": "t"})
        with env.begin(write=True) as txn:
            txn.put(b"identity", identity, db=env.open_db(b"meta", txn))
            txn.put(b"row", b"kept", db=env.open_db(b"frontier", txn))
    before = everything(folder)
    with pytest.raises(StateError, match=f"its format is {version}, not {FORMAT_VERSION}"):
        StateStore.open(folder, {}) if reading == "open" else getattr(StateStore, reading)(folder)
    assert everything(folder) == before


@pytest.mark.parametrize("identity", [b"no json", b"[1]"])
@pytest.mark.parametrize("reading", ["open", "reopen", "view"])
def test_an_identity_that_cannot_be_read_is_damage(tmp_path, identity, reading):
    folder = tmp_path / "state"
    folder.mkdir()
    with lmdb.open(str(folder), max_dbs=3) as env, env.begin(write=True) as txn:
        txn.put(b"identity", identity, db=env.open_db(b"meta", txn))
    with pytest.raises(StateError, match="damaged or belongs"):
        StateStore.open(folder, {}) if reading == "open" else getattr(StateStore, reading)(folder)


FILL = """
store = StateStore.open(folder, {})
number = 0
try:
    while True:
        store.tables.put("content", number.to_bytes(4, "big"), bytes(700))
        store.commit()
        number += 1
except StateError as error:
    print(number, error)
store.close()
"""


@pytest.mark.parametrize("room", [300_000, 2_100_000])
def test_a_full_disk_is_reported_and_costs_nothing_that_was_committed(tmp_path, room):
    """Where the journal finds no room, and where the tables do not."""
    folder = tmp_path / "state"
    StateStore.open(folder, {}).close()
    full = elsewhere(
        FILL, folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    )
    number, _, message = read_output(full).partition(" ")
    assert "free some disk and start the same command again" in message
    store = StateStore.open(folder, {})
    kept = [int.from_bytes(key, "big") for key, _ in store.tables.scan("content")]
    # Where only the tables found no room the last commit is in the journal.
    assert kept in ([*range(int(number))], [*range(int(number) + 1)])
    store.tables.put("content", b"more", b"")
    store.close()
