"""What the frontier promises: once, in order, not too soon, and never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from focused.errors import StateError
from focused.frontier.frontier import Frontier, NotYet, Offer
from focused.frontier.politeness import HostPace
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore

IDENTITY = {"topic": "test", "policy": "focused"}


def link(url: str, score: float = 0.5, **fields) -> QueuedLink:
    host = url.split("/")[2]
    return QueuedLink(link_key(url), url, host, score, score, **fields)


@pytest.fixture
def store(tmp_path: Path):
    store = StateStore.open(tmp_path / "state", IDENTITY)
    yield store
    store.close()


@pytest.fixture
def frontier(store: StateStore) -> Frontier:
    return Frontier(store)


def take(frontier: Frontier, now: float = 0.0, **options) -> Offer:
    offer = frontier.offer(now, **options)
    assert isinstance(offer, Offer)
    return offer


def finish(frontier: Frontier, offer: Offer, now: float, delay_s: float = 1.0) -> None:
    frontier.settle(offer, HostPace(now + delay_s), now)


def test_the_best_link_of_all_hosts_comes_first(frontier: Frontier) -> None:
    frontier.push(link("http://a/1", 0.2), 0)
    frontier.push(link("http://b/1", 0.9), 0)
    frontier.push(link("http://a/2", 0.6), 0)
    assert [take(frontier).link.url for _ in range(2)] == ["http://b/1", "http://a/2"]


def test_equal_links_come_in_the_order_they_were_found(frontier: Frontier) -> None:
    for name in "xyz":
        frontier.push(link(f"http://a/{name}"), 0)
    order = []
    for now in range(3):
        offer = take(frontier, now)
        order.append(offer.link.url[-1])
        finish(frontier, offer, now)
    assert order == ["x", "y", "z"]


def test_a_url_enters_once(frontier: Frontier) -> None:
    assert frontier.push(link("http://a/1"), 0)
    assert not frontier.push(link("http://a/1"), 0)
    finish(frontier, take(frontier), 0)
    assert not frontier.push(link("http://a/1", 0.9), 0)
    assert frontier.offer(10) is None


def test_a_better_in_link_moves_a_waiting_link_up(frontier: Frontier) -> None:
    frontier.push(link("http://a/1", 0.5), 0)
    frontier.push(link("http://a/2", 0.3, depth=7, parent="http://far/"), 0)
    frontier.push(link("http://a/2", 0.8, depth=9, parent="http://near/"), 0)
    offer = take(frontier)
    assert (offer.link.url, offer.link.parent, offer.link.depth) == (
        "http://a/2",
        "http://near/",
        7,
    )
    assert len(frontier) == 2


def test_a_better_in_link_leaves_a_link_under_way_alone(frontier: Frontier) -> None:
    frontier.push(link("http://a/1", 0.5), 0)
    offer = take(frontier)
    frontier.push(link("http://a/1", 0.9), 0)
    finish(frontier, offer, 0)
    assert len(frontier) == 0
    assert frontier.offer(10) is None


def test_a_host_is_asked_by_one_fetch_at_a_time(frontier: Frontier) -> None:
    frontier.push(link("http://a/1"), 0)
    frontier.push(link("http://a/2"), 0)
    take(frontier)
    assert frontier.offer(100) == NotYet(None)


def test_a_host_is_not_asked_before_it_is_due(frontier: Frontier) -> None:
    frontier.push(link("http://a/1"), 0)
    frontier.push(link("http://a/2"), 0)
    finish(frontier, take(frontier), now=5, delay_s=2)
    assert frontier.offer(6.9) == NotYet(7)
    assert isinstance(frontier.offer(7), Offer)


def test_with_patience_a_worse_link_waits_for_a_better_host(frontier: Frontier) -> None:
    frontier.push(link("http://good/1", 0.9), 0)
    frontier.push(link("http://good/2", 0.9), 0)
    frontier.push(link("http://poor/1", 0.1), 0)
    finish(frontier, take(frontier), now=0, delay_s=1)
    assert frontier.offer(0.5, patience_s=2) == NotYet(1)
    assert take(frontier, 0.5).link.url == "http://poor/1"


def test_with_patience_a_last_link_under_way_holds_up_nobody(frontier: Frontier) -> None:
    frontier.push(link("http://good/1", 0.9), 0)
    frontier.push(link("http://poor/1", 0.1), 0)
    take(frontier)
    assert take(frontier, patience_s=5).link.url == "http://poor/1"


def test_a_failed_link_stays_one_try_older(frontier: Frontier) -> None:
    frontier.push(link("http://a/1"), 0)
    frontier.retry(take(frontier), HostPace(3), 0)
    assert take(frontier, 3).link.tries == 1


def test_dropped_links_are_never_offered_nor_taken_again(frontier: Frontier) -> None:
    frontier.push(link("http://a/1"), 0)
    frontier.drop(link("http://a/1"), 0)
    assert frontier.offer(0) is None
    assert not frontier.push(link("http://a/1"), 0)


def test_what_was_under_way_is_queued_after_a_restart(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "state", IDENTITY)
    frontier = Frontier(store)
    for name in "123":
        frontier.push(link(f"http://a/{name}"), 0)
    finish(frontier, take(frontier), 0)
    take(frontier, 5)
    frontier.save()
    store.commit()
    store.close()
    store = StateStore.open(tmp_path / "state", IDENTITY)
    again = Frontier(store)
    assert again.found == 3
    assert again.offer(0.5) == NotYet(1.0)
    assert len(again) == 2
    assert take(again, 1.0).link.url == "http://a/2"
    store.close()


def test_a_second_crawl_on_the_same_folder_is_refused(store: StateStore, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="in use by another crawl"):
        StateStore.open(tmp_path / "state", IDENTITY)


def test_another_topics_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    StateStore.open(tmp_path / "state", IDENTITY).close()
    with pytest.raises(StateError, match="holds another crawl: its topic is 'test'"):
        StateStore.open(tmp_path / "state", {**IDENTITY, "topic": "other"})
    StateStore.open(tmp_path / "state", IDENTITY).close()


def test_a_damaged_folder_is_refused_in_plain_words(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StateError, match="damaged or not ours"):
        StateStore.open(folder, IDENTITY)
