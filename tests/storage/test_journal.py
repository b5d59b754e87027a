"""The journal returns committed batches, whole and in order."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.storage import journal as journal_module
from focused.storage.journal import Batch, Journal, min_tables_bytes

CHECKPOINT = 7
step = st.tuples(st.integers(0, 3), st.binary(max_size=9), st.binary())
batches_of_steps = st.lists(
    st.dictionaries(st.text(), st.lists(step, min_size=1, max_size=4), min_size=1, max_size=3),
    max_size=4,
)
one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def batch(name: str) -> Batch:
    return {"pages": [(0, name.encode(), b"v" * 5)], "links": [(1, b"k", b"")]}


def written(path: Path, batches: Sequence[Batch | None]) -> bytes:
    """A journal's file with these batches, None for a sync."""
    journal = Journal(path)
    journal.begin(CHECKPOINT, 0)
    for steps in batches:
        if steps is None:
            journal.sync()
        else:
            journal.append(steps)
    journal.close()
    return path.read_bytes()


def read(path: Path, raw: bytes | None = None) -> list[Batch]:
    if raw is not None:
        path.write_bytes(raw)
    journal = Journal(path)
    try:
        return list(journal.since(CHECKPOINT))
    finally:
        journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def another_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when it is called on, the machine has been started anew."""

    def starts() -> None:
        monkeypatch.setattr(journal_module, "_boot_id", lambda: b"another".ljust(36))

    return starts


@given(batches_of_steps)
@one_folder
def test_every_batch_comes_back_in_order(path, batches):
    written(path, batches)
    assert read(path) == batches


def test_a_journal_of_an_earlier_checkpoint_has_nothing_to_tell(path):
    written(path, [batch("a")])
    journal = Journal(path)
    assert not [*journal.since(CHECKPOINT + 1)]
    journal.close()


def test_wherever_a_last_batch_is_cut_short_the_ones_before_it_count(path):
    before = written(path, [batch("a"), batch("b")])
    path.unlink()
    raw = written(path, [batch("a"), batch("b"), batch("last")])
    for bytes_ in range(len(before), len(raw)):
        assert read(path, raw[:bytes_]) == [batch("a"), batch("b")]
    assert read(path, raw) == [batch("a"), batch("b"), batch("last")]


def test_a_flipped_byte_is_reported_wherever_it_is(path):
    raw = written(path, [batch("a"), None, batch("b"), batch("c")])
    for at in range(len(raw)):
        flipped = bytes([raw[at] ^ 0x55])
        with pytest.raises(ValueError, match="damaged"):
            read(path, raw[:at] + flipped + raw[at + 1 :])


def test_after_a_failure_of_power_what_was_synced_counts_and_no_more(path, another_boot):
    written(path, [batch("a"), None, batch("b"), None, batch("c")])
    another_boot()
    assert read(path) == [batch("a"), batch("b")]


@pytest.mark.parametrize("zeros", [1, 8, 64, 4_096])
def test_zeros_that_a_failure_of_power_left_are_no_sync(path, another_boot, zeros):
    raw = written(path, [batch("a"), None, batch("b")])
    another_boot()
    assert read(path, raw + bytes(zeros)) == [batch("a")]


class Filling:
    """A file of a disk with room for so many bytes more; it takes what it can, then fails."""

    def __init__(self, file, room: int) -> None:
        self._file = file
        self.room = room

    def __getattr__(self, name: str):
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = self._file.write(data[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", range(0, 30, 3))
def test_a_batch_that_found_no_room_was_never_tried(path, room):
    journal = Journal(path)
    journal.begin(CHECKPOINT, 0)
    journal.append(batch("a"))
    plain = journal._file
    journal._file = Filling(plain, room)
    with pytest.raises(OSError, match="No space left"):
        journal.append(batch("b"))
    journal._file = plain
    journal.append(batch("c"))
    journal.close()
    assert read(path) == [batch("a"), batch("c")]


def test_it_tells_how_long_the_tables_are_at_least(path):
    assert min_tables_bytes(path) is None
    journal = Journal(path)
    journal.begin(CHECKPOINT, 12_288)
    journal.close()
    assert min_tables_bytes(path) == 12_288
    path.write_bytes(b"something else" * 9)
    assert min_tables_bytes(path) is None
