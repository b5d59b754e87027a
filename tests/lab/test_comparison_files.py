"""The run log survives whatever ends the comparison."""

import json

import pytest

from focused.errors import ConfigurationError, StateError
from focused_lab.comparison_files import RUN_LOG_FILE, RunLog, program_digest, rotate_run_log
from tests.support.packages import install


def test_rows_are_there_again_when_it_is_opened_again(tmp_path):
    with RunLog(tmp_path / "out") as journal:
        journal.add("one", {"policy": "bfs"})
        journal.add("two", {"policy": "dfs"})
    with RunLog(tmp_path / "out") as journal:
        assert journal.rows == {"one": {"policy": "bfs"}, "two": {"policy": "dfs"}}


def test_each_row_is_in_the_file_as_soon_as_it_was_added(tmp_path):
    with RunLog(tmp_path) as journal:
        journal.add("one", {"policy": "bfs"})
        (line,) = journal.path.read_text().splitlines()
        assert json.loads(line) == {"key": "one", "run": {"policy": "bfs"}}


@pytest.mark.parametrize("left", range(1, 12))
def test_a_last_line_that_was_torn_is_dropped_and_the_next_one_is_whole(tmp_path, left):
    with RunLog(tmp_path) as journal:
        journal.add("one", {"policy": "bfs"})
        whole = journal.path.read_bytes()
    (tmp_path / RUN_LOG_FILE).write_bytes(whole + whole[:left])
    with RunLog(tmp_path) as journal:
        assert list(journal.rows) == ["one"]
        journal.add("two", {"policy": "dfs"})
    with RunLog(tmp_path) as journal:
        assert (list(journal.rows), journal.damaged) == (["one", "two"], 0)


def test_damaged_lines_are_counted_and_the_others_stay(tmp_path):
    good = json.dumps({"key": "one", "run": {"policy": "bfs"}})
    lines = ["{", "[]", '{"key": "two"}', '{"key": "three", "run": 3}', good, "\xff"]
    (tmp_path / RUN_LOG_FILE).write_bytes("\n".join([*lines, ""]).encode("latin-1"))
    with RunLog(tmp_path) as journal:
        assert (list(journal.rows), journal.damaged) == (["one"], 5)


def test_a_run_log_in_use_by_another_comparison_is_refused(tmp_path):
    with RunLog(tmp_path), pytest.raises(StateError, match="in use by another comparison"):
        RunLog(tmp_path)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="is not writable"):
        RunLog(tmp_path / "file" / "out")


def test_a_rotated_run_log_gets_a_free_name(tmp_path):
    assert rotate_run_log(tmp_path) is None
    for number in (1, 2):
        (tmp_path / RUN_LOG_FILE).write_text(str(number))
        assert rotate_run_log(tmp_path) == tmp_path / f"runs.{number}.jsonl"
    assert (tmp_path / "runs.1.jsonl").read_text() == "1"


@pytest.mark.parametrize("name", ["policy_of_mine.policy", "mine"])
def test_a_changed_policy_of_others_changes_the_program_digest(tmp_path, monkeypatch, name):
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points = "[focused.orderings]\nmine = policy_of_mine:policy\n"
    install(tmp_path, "policy_of_mine", "def policy(inputs): ...\n", entry_points)
    before = program_digest(["bfs", name])
    assert before == program_digest(["bfs", name])
    (tmp_path / "policy_of_mine.py").write_text("def policy(inputs): return None\n")
    assert before != program_digest(["bfs", name])
