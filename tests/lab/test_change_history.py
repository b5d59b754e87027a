"""Specification of change histories: reading, writing, and what is made consistent."""

import gzip

import pytest

from focused.errors import ConfigurationError
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    exists_at,
    first_at,
    last_at,
    last_change_at,
    page_changes,
    read_change_history,
    write_change_history,
)

CREATED, CHANGED, DELETED = ChangeKind.CREATED, ChangeKind.CHANGED, ChangeKind.DELETED
BREAD = PageChanges(
    "bread.html", (Change(CREATED, 10.0, 40), Change(CHANGED, 20.5, 3, 2), Change(DELETED, 30.0))
)


@pytest.mark.parametrize("name", ["bakery.tsv", "bakery.tsv.gz"])
def test_a_written_history_is_read_back(tmp_path, name):
    history = SiteChanges("bakery", (BREAD, PageChanges("a \x85b", (Change(CREATED, 1.0),))))
    write_change_history(tmp_path / name, history)
    assert read_change_history(tmp_path / name) == history


def test_equal_histories_are_equal_files(tmp_path):
    for name in ("one.tsv.gz", "two.tsv.gz"):
        write_change_history(tmp_path / name, SiteChanges("any", (BREAD,)))
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()


def test_events_of_a_page_are_sorted_by_time(tmp_path):
    path = tmp_path / "bakery.tsv"
    path.write_text("b\tchanged\t20\t1\t1\na\tcreated\t5\t1\t0\nb\tcreated\t10\t9\t0\n")
    history = read_change_history(path)
    assert [page.page for page in history.pages] == ["b", "a"]
    assert [change.at for change in history.pages[0].changes] == [10.0, 20.0]
    assert (first_at(history), last_at(history)) == (5.0, 20.0)


@pytest.mark.parametrize(
    ("kinds", "consistent"),
    [
        ((CREATED, CREATED), (CREATED, CHANGED)),
        ((CREATED, DELETED, CHANGED), (CREATED, DELETED, CREATED)),
        ((CREATED, DELETED, DELETED), (CREATED, DELETED)),
        ((CHANGED, CREATED), (CHANGED, CHANGED)),
        ((DELETED, CREATED), (DELETED, CREATED)),
    ],
)
def test_contradicting_events_become_consistent(kinds, consistent):
    changes = [Change(kind, float(at)) for at, kind in enumerate(kinds)]
    assert tuple(each.kind for each in page_changes("page", changes).changes) == consistent


def test_a_page_exists_from_its_creation_to_its_deletion():
    assert [exists_at(BREAD, time) for time in (9.9, 10.0, 29.9, 30.0)] == [
        False,
        True,
        True,
        False,
    ]
    assert last_change_at(BREAD, 9.9) is None
    assert last_change_at(BREAD, 25.0) == Change(CHANGED, 20.5, 3, 2)


def test_a_page_whose_first_event_is_a_change_existed_before():
    assert exists_at(PageChanges("old", (Change(CHANGED, 10.0),)), 0.0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tcreated\t5\t1", "line 2.*4 fields"),
        ("a\tmade\t5\t1\t0", "line 2.*'made'"),
        ("a\tcreated\tsoon\t1\t0", "line 2.*'soon'"),
        ("a\tcreated\tinf\t1\t0", "line 2.*finite"),
        ("a\tcreated\t5\t-1\t0", "line 2.*negative"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = tmp_path / "bakery.tsv"
    path.write_text(f"a\tcreated\t1\t1\t0\n{line}\n")
    with pytest.raises(ConfigurationError, match=message):
        read_change_history(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(gzip.compress(b"a\tcreated\t5\t1\t0\n" * 99)[:-9])
    latin = tmp_path / "latin.tsv"
    latin.write_bytes(b"caf\xe9\tcreated\t5\t1\t0\n")
    for path in (cut, latin, tmp_path / "missing.tsv"):
        with pytest.raises(ConfigurationError, match=path.name):
            read_change_history(path)
