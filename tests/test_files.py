"""A file is written whole, or left as it was."""

import os
import subprocess
import sys

import pytest

from focused.files import atomic_write_path, write_atomically, write_json_atomically


def test_a_file_is_replaced_and_nothing_else_stays(tmp_path):
    path = tmp_path / "figures.csv"
    path.write_text("old")

    assert write_atomically(path, b"new") == path

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "figures.csv"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write_path(path) as part:
            part.write_text("half of")
            raise RuntimeError("disk")

    with pytest.raises(RuntimeError, match="disk"):
        write_half()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "figures.csv"
    path.write_text("old")

    with atomic_write_path(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "nowhere" / "file", b"")


def test_json_keeps_its_letters(tmp_path):
    path = write_json_atomically(tmp_path / "topic.json", {"name": "Walé"})

    assert path.read_text(encoding="utf-8") == '{\n "name": "Walé"\n}\n'


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from focused.files import atomic_write_path
with atomic_write_path(Path(sys.argv[1])) as part:
    part.write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_stale_temporary_files_of_killed_writers_are_removed(tmp_path):
    path = tmp_path / "figures.[csv]"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], check=False)
    assert killed.returncode == -9
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write_atomically(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_what_another_writer_writes_at_the_same_time_stays(tmp_path):
    path = tmp_path / "figures.csv"
    theirs = tmp_path / f".figures.csv.{os.getppid()}.part"
    others = tmp_path / ".figures.csv.kept.part"
    theirs.write_text("half of")
    others.write_text("no number of a process")
    write_atomically(path, b"new")
    assert theirs.exists() and others.exists()
