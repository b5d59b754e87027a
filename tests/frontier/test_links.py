"""Links: pushed once, ordered, moved, put back, dropped, never lost."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from focused.frontier.disk_frontier import Known
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink, link_key
from tests.frontier.steps import drop_host, finish, link, take, url_of_next


def test_equal_links_come_in_the_order_they_were_found(frontier):
    for name in "xyz":
        frontier.push(link(f"http://a/{name}"), 0)
    order = []
    for now in range(3):
        offer = take(frontier, now)
        order.append(offer.link.url[-1])
        finish(frontier, offer, now)
    assert order == ["x", "y", "z"]


def test_a_url_enters_once(frontier):
    assert frontier.push(link("http://a/1"), 0)
    assert not frontier.push(link("http://a/1"), 0)
    finish(frontier, take(frontier), 0)
    assert not frontier.push(link("http://a/1", 0.9), 0)
    assert frontier.offer(10) is None


def test_a_better_in_link_moves_a_waiting_link_up(frontier):
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


def test_a_better_in_link_leaves_a_link_in_flight_alone(frontier):
    frontier.push(link("http://a/1", 0.5), 0)
    offer = take(frontier)
    frontier.push(link("http://a/1", 0.9), 0)
    finish(frontier, offer, 0)
    assert len(frontier) == 0
    assert frontier.offer(10) is None


def joined(url: str, score: float, feature: float, **fields) -> QueuedLink:
    """A link with features of all pages that link there."""
    return link(url, score, features=(feature,), **fields)


def test_features_of_another_page_may_move_a_waiting_link_down(frontier):
    frontier.push(joined("http://a/1", 0.8, 1.0), 0)
    frontier.push(joined("http://a/2", 0.5, 1.0), 0)
    assert not frontier.push(joined("http://a/1", 0.3, 2.0), 0, joined=True)
    assert [url_of_next(frontier) for _ in range(2)] == ["http://a/2", "http://a/1"]


def test_or_move_it_up(frontier):
    frontier.push(joined("http://a/1", 0.3, 1.0), 0)
    frontier.push(joined("http://a/2", 0.5, 1.0), 0)
    frontier.push(joined("http://a/1", 0.8, 2.0), 0, joined=True)
    assert [url_of_next(frontier) for _ in range(2)] == ["http://a/1", "http://a/2"]


def test_down_on_one_host_lets_another_host_go_first(frontier):
    frontier.push(joined("http://a/1", 0.8, 1.0), 0)
    frontier.push(joined("http://b/1", 0.5, 1.0), 0)
    frontier.push(joined("http://a/1", 0.3, 2.0), 0, joined=True)
    assert [url_of_next(frontier) for _ in range(2)] == ["http://b/1", "http://a/1"]


def test_unless_its_features_are_merged_a_poorer_link_changes_nothing(frontier):
    frontier.push(joined("http://a/1", 0.8, 1.0), 0)
    frontier.push(joined("http://a/1", 0.3, 2.0), 0)
    assert take(frontier).link == joined("http://a/1", 0.8, 1.0)


@pytest.mark.parametrize("score", [0.3, 0.8])
def test_a_merged_link_keeps_the_shorter_way_and_what_befell_it(frontier, score):
    old = joined("http://a/1", 0.5, 1.0, depth=2, found_at=1.0, tries=1, payload="own")
    new = joined("http://a/1", score, 2.0, depth=7, found_at=9.0, parent="http://b/", anchor="x")
    frontier.push(old, 0)
    frontier.push(new, 0, joined=True)
    found = take(frontier).link
    assert (found.depth, found.found_at, found.tries, found.payload) == (2, 1.0, 1, "own")
    assert (found.score, found.features) == (score, (2.0,))
    assert (found.parent, found.anchor) == ("http://b/", "x")


def test_a_merged_link_keeps_its_place_in_the_order_of_discovery(frontier):
    for name in "xyz":
        frontier.push(joined(f"http://a/{name}", 0.5, 1.0), 0)
    frontier.push(joined("http://a/x", 0.4, 2.0), 0, joined=True)
    frontier.push(joined("http://a/x", 0.5, 3.0), 0, joined=True)
    assert [url_of_next(frontier)[-1] for _ in range(3)] == ["x", "y", "z"]
    assert frontier.found == 3


def test_a_page_that_links_to_a_waiting_seed_takes_nothing_from_it(frontier):
    frontier.push(link("http://a/seed", 1.0), 0)
    frontier.push(joined("http://a/seed", 0.2, 1.0, depth=3), 0, joined=True)
    assert take(frontier).link == link("http://a/seed", 1.0)


def test_merged_features_leave_a_link_in_flight_alone(frontier):
    frontier.push(joined("http://a/1", 0.5, 1.0), 0)
    offer = take(frontier)
    frontier.push(joined("http://a/1", 0.1, 2.0), 0, joined=True)
    frontier.put_back(offer, HostPace(), 0)
    assert take(frontier).link == joined("http://a/1", 0.5, 1.0)


def test_the_links_queued_are_reported_as_they_wait(frontier):
    for name in ("done", "waiting", "moved", "dropped"):
        frontier.push(joined(f"http://{name}/1", 0.5, 1.0), 0)
    finish(frontier, take(frontier), 0)
    frontier.push(joined("http://moved/1", 0.2, 2.0), 0, joined=True)
    frontier.drop(link("http://dropped/1"), 0)
    names = ("done", "waiting", "moved", "dropped", "unknown")
    keys = {name: link_key(f"http://{name}/1") for name in names}
    known = frontier.lookup_links(list(keys.items()))
    assert known.waiting == {
        keys["waiting"]: joined("http://waiting/1", 0.5, 1.0),
        keys["moved"]: joined("http://moved/1", 0.2, 2.0),
    }
    assert known.settled == {keys["done"], keys["dropped"]}
    assert frontier.lookup_links([]) == Known(set(), {})


def test_a_link_in_flight_does_not_wait_until_it_comes_back(frontier):
    frontier.push(link("http://a/1"), 0)
    key = link_key("http://a/1")
    offer = take(frontier)
    assert frontier.lookup_links([("a", key)]) == Known(set(), {})
    frontier.retry(offer, HostPace(), 0)
    assert frontier.lookup_links([("a", key)]).waiting[key].tries == 1


def test_an_offered_link_can_go_back_for_less(frontier):
    frontier.push(link("http://a/1", 0.9), 0)
    frontier.push(link("http://b/1", 0.5), 0)
    frontier.requeue(take(frontier), link("http://a/1", 0.2), 0)
    assert [url_of_next(frontier) for _ in range(2)] == ["http://b/1", "http://a/1"]


def test_a_hosts_best_links_are_moved_to_where_they_belong_now(frontier):
    for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6)):
        frontier.push(link(f"http://one.test/{name}", score), now=0)
    frontier.push(link("http://other.test/", 0.85), now=0)
    in_flight = take(frontier)
    assert in_flight.link.url == "http://one.test/a"
    now_worth = {"b": 0.1, "c": 0.95, "d": 2.0}
    asked: list[str] = []

    def again(waiting: Sequence[QueuedLink], found: Sequence[int]) -> Sequence[QueuedLink]:
        asked.extend(each.url[-1] for each in waiting)
        return [
            replace(each, priority=now_worth[each.url[-1]], features=(1.0, float(number)))
            for each, number in zip(waiting, found, strict=True)
        ]

    frontier.rescore_best(in_flight.host, again, range(3), now=0)
    assert asked == ["b", "c"]  # the one under way is the host's best, and left alone
    finish(frontier, in_flight, now=0, delay_s=0)
    best = take(frontier)
    assert best.link.url == "http://one.test/c"
    assert best.link.features == (1.0, 2.0)
    assert take(frontier).link.url == "http://other.test/"
    finish(frontier, best, now=0, delay_s=0)
    assert [url_of_next(frontier) for _ in "db"] == ["http://one.test/d", "http://one.test/b"]


def test_a_failed_link_stays_one_try_older(frontier):
    frontier.push(link("http://a/1"), 0)
    frontier.retry(take(frontier), HostPace(3), 0)
    assert take(frontier, 3).link.tries == 1


def test_dropped_links_are_never_offered_nor_taken_again(frontier):
    frontier.push(link("http://a/1"), 0)
    frontier.drop(link("http://a/1"), 0)
    assert frontier.offer(0) is None
    assert not frontier.push(link("http://a/1"), 0)


def test_the_links_of_a_host_are_reported_best_first_but_for_the_one_in_flight(frontier):
    for page, score in enumerate((0.1, 0.9, 0.5)):
        frontier.push(link(f"http://a/{page}", score), 0)
    frontier.push(link("http://b/1", 0.2), 0)
    host = frontier.hosts.get("a")
    assert [each.url for each in frontier.waiting(host)] == [
        "http://a/1",
        "http://a/2",
        "http://a/0",
    ]
    take(frontier)
    assert [each.url for each in frontier.waiting(host)] == ["http://a/2", "http://a/0"]
    assert frontier.count(host) == 3
    assert {each.name for each in frontier.hosts} == {"a", "b"}


def test_a_host_is_dropped_with_its_links_but_for_the_one_in_flight(frontier):
    for page in range(3):
        frontier.push(link(f"http://a/{page}"), 0)
    frontier.push(link("http://b/1", 0.1), 0)
    in_flight = take(frontier)
    assert drop_host(frontier, "a", 0) == 2
    assert drop_host(frontier, "unknown", 0) == 0
    finish(frontier, in_flight, 0)
    assert url_of_next(frontier, 1) == "http://b/1"
    assert not frontier.push(link("http://a/2"), 1)


def test_a_link_that_is_forgotten_may_come_in_again(frontier):
    frontier.push(link("http://a/1"), 0)
    assert not frontier.forget("a", link_key("http://a/1"))  # it waits
    url_of_next(frontier)
    assert not frontier.push(link("http://a/1"), 1)
    assert frontier.forget("a", link_key("http://a/1"))
    assert not frontier.forget("a", link_key("http://a/1"))
    assert frontier.push(link("http://a/1"), 2)


def test_links_that_come_together_come_in_as_one_by_one(frontier):
    frontier.push(joined("http://a/waits", 0.3, 1.0), 0)
    frontier.push(link("http://b/under-way", 0.9), 0)
    in_flight = take(frontier)
    together = [
        joined("http://a/new", 0.5, 1.0),
        joined("http://a/waits", 0.6, 2.0),
        joined("http://b/under-way", 0.1, 2.0),
        joined("http://a/new", 0.7, 2.0),
        joined("http://c/1", 0.4, 1.0),
        joined("http://a/new", 0.5, 3.0),
    ]
    assert frontier.push_all(together, 0, joined=True) == 2
    assert len(frontier) == 4
    finish(frontier, in_flight, 0)
    order = [url_of_next(frontier) for _ in range(3)]
    assert order == ["http://a/waits", "http://a/new", "http://c/1"]


def test_the_order_of_discovery_goes_on_among_links_that_come_together(frontier):
    names = ("x", "y", "x", "z")
    numbered = (link(f"http://{name}/1", -float(frontier.found)) for name in names)
    assert frontier.push_all(numbered, 0) == 3
    order = [take(frontier).link for _ in range(3)]
    assert [(each.host, each.priority) for each in order] == [("x", 0.0), ("y", -1.0), ("z", -2.0)]
