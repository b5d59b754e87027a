"""The changes that a crawl observed, as change histories."""

import pytest

from focused.reports.collection_changes import read_changes
from focused_lab.change_history import ChangeKind, read_change_history
from focused_lab.freshness.observed_changes import export_changes
from tests.support.command import focused
from tests.support.continuous_crawl import BACK, DAY_S, HOME, LEFT, MOVED, NEWS, SHIPS
from tests.support.simulated import START


@pytest.mark.parametrize("name", ["all.tsv", "all.tsv.gz"])
def test_the_observed_changes_are_a_change_history(living_crawl, tmp_path, name):
    assert export_changes(living_crawl, tmp_path / name) == [tmp_path / name]
    pages = {page.page: page.changes for page in read_change_history(tmp_path / name).pages}
    kinds = {url: [str(change.kind) for change in found] for url, found in pages.items()}
    assert kinds[HOME] == ["created"]
    assert kinds[NEWS] == ["created", "changed", "changed"]
    assert kinds[LEFT] == kinds[MOVED] == ["created", "deleted"]
    assert kinds[BACK] == ["created", "deleted", "created"]


def test_a_change_lies_in_the_middle_between_two_visits(living_crawl, tmp_path):
    export_changes(living_crawl, tmp_path / "all.tsv")
    pages = {page.page: page.changes for page in read_change_history(tmp_path / "all.tsv").pages}
    (seen,) = [each for each in read_changes(living_crawl, START + DAY_S) if each.url == SHIPS]
    assert seen.previous_at is not None
    (found,) = [each for each in pages[SHIPS] if each.kind is ChangeKind.CHANGED]
    assert found.at == pytest.approx((seen.previous_at + seen.at) / 2)


def test_a_folder_gets_the_history_of_each_host(living_crawl, tmp_path):
    files = export_changes(living_crawl, tmp_path / "changes")
    assert [file.name for file in files] == ["a.test.tsv.gz", "b.test.tsv.gz"]
    assert [len(read_change_history(file).pages) for file in files] == [6, 1]


def test_a_command_writes_them(living_crawl, tmp_path):
    focused("web", "changes", living_crawl, "--out", tmp_path / "changes.tsv.gz")
    assert (tmp_path / "changes.tsv.gz").is_file()
