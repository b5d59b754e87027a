"""What the frontier guarantees about its folder."""

from pathlib import Path

import lmdb
import pytest
from msgspec.structs import replace

from focused.errors import StateError
from focused.frontier.disk_frontier import DiskFrontier
from focused.storage.state_store import StateStore
from tests.frontier.steps import finish, link, take, url_of_next

IDENTITY = {"topic": "test", "policy": "focused"}


@pytest.fixture
def store(tmp_path: Path):
    store = StateStore.open(tmp_path / "state", IDENTITY)
    yield store
    store.close()


def test_another_topics_folder_is_refused_and_left_alone(tmp_path):
    StateStore.open(tmp_path / "state", IDENTITY).close()
    with pytest.raises(StateError, match="holds another crawl: its topic is 'test'"):
        StateStore.open(tmp_path / "state", {**IDENTITY, "topic": "other"})
    StateStore.open(tmp_path / "state", IDENTITY).close()


@pytest.mark.parametrize("name", ["", "long." * 120 + "test", "lone\ud800.test"])
def test_a_name_that_no_row_can_have_leaves_the_other_hosts_their_numbers(tmp_path, name):
    store = StateStore.open(tmp_path / "state", IDENTITY)
    frontier = DiskFrontier(store.tables)
    frontier.push(link("http://a/1"), 0)
    with pytest.raises((lmdb.BadValsizeError, UnicodeEncodeError)):
        frontier.hosts.get(name)
    frontier.push(link("http://b/1"), 0)
    frontier.save()
    store.close()
    store = StateStore.open(tmp_path / "state", IDENTITY)
    frontier = DiskFrontier(store.tables)
    frontier.push(link("http://c/1"), 0)
    assert sorted(url_of_next(frontier) for _ in "abc") == [
        "http://a/1",
        "http://b/1",
        "http://c/1",
    ]
    store.close()


def test_of_two_links_of_a_host_whose_keys_begin_equal_the_second_counts_as_seen(store):
    """The price of ten bytes: once in a million hosts of 10^9 links. It costs that link alone."""
    frontier = DiskFrontier(store.tables)
    first = replace(link("http://a/1"), key=b"0123456789abcdef")
    second = replace(link("http://a/2", 0.9), key=b"0123456789ABCDEF")
    assert frontier.push(first, 0)
    offer = take(frontier)
    assert not frontier.push(second, 0)
    assert not frontier.drop(second, 0)
    finish(frontier, offer, 0)
    assert frontier.offer(9) is None
    assert len(frontier) == 0


def test_links_of_two_hosts_may_have_one_key(store):
    frontier = DiskFrontier(store.tables)
    for host in "ab":
        assert frontier.push(replace(link(f"http://{host}/1"), key=b"k" * 16), 0)
    offer = take(frontier)
    assert frontier.drop(replace(link("http://b/1"), key=b"k" * 16), 0)
    finish(frontier, offer, 0)
    assert frontier.offer(9) is None


def test_a_source_that_a_crash_undid_leaves_its_number_to_the_next(tmp_path):
    store = StateStore.open(tmp_path / "state", IDENTITY)
    frontier = DiskFrontier(store.tables)
    frontier.push(link("http://a/1", parent="http://kept/"), 0)
    frontier.save()
    store.commit()
    frontier.push(link("http://a/2", parent="http://undone/"), 0)
    store.abandon()
    store = StateStore.open(tmp_path / "state", IDENTITY)
    frontier = DiskFrontier(store.tables)
    frontier.push(link("http://a/3", parent="http://next/"), 0)
    assert [each.parent for each in frontier.waiting(frontier.hosts.get("a"))] == [
        "http://kept/",
        "http://next/",
    ]
    store.close()


def test_a_million_million_links_may_come_in(store):
    store.tables.put_meta("found", 2**40 - 2)
    frontier = DiskFrontier(store.tables)
    assert frontier.push(link("http://a/last"), 0)
    assert url_of_next(frontier) == "http://a/last"
