"""Scheduling: the best link of the due hosts, one request per host and address."""

import pytest

from focused.frontier.disk_frontier import DiskFrontier, NotYet, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from tests.frontier.steps import drop_host, finish, link, take, url_of_next


def test_the_best_link_of_all_hosts_comes_first(frontier):
    frontier.push(link("http://a/1", 0.2), 0)
    frontier.push(link("http://b/1", 0.9), 0)
    frontier.push(link("http://a/2", 0.6), 0)
    assert [take(frontier).link.url for _ in range(2)] == ["http://b/1", "http://a/2"]


def test_a_host_is_asked_by_one_fetch_at_a_time(frontier):
    frontier.push(link("http://a/1"), 0)
    frontier.push(link("http://a/2"), 0)
    take(frontier)
    assert frontier.offer(100) == NotYet(None)


def test_a_host_is_not_requested_before_it_is_due(frontier):
    frontier.push(link("http://a/1"), 0)
    frontier.push(link("http://a/2"), 0)
    finish(frontier, take(frontier), now=5, delay_s=2)
    assert frontier.offer(6.9) == NotYet(7)
    assert isinstance(frontier.offer(7), Offer)


def test_with_patience_a_worse_link_waits_for_a_better_host(frontier):
    frontier.push(link("http://good/1", 0.9), 0)
    frontier.push(link("http://good/2", 0.9), 0)
    frontier.push(link("http://poor/1", 0.1), 0)
    finish(frontier, take(frontier), now=0, delay_s=1)
    assert frontier.offer(0.5, patience_s=2) == NotYet(1)
    assert take(frontier, 0.5).link.url == "http://poor/1"


def test_with_patience_a_last_link_in_flight_holds_up_nobody(frontier):
    frontier.push(link("http://good/1", 0.9), 0)
    frontier.push(link("http://poor/1", 0.1), 0)
    take(frontier)
    assert take(frontier, patience_s=5).link.url == "http://poor/1"


def test_only_links_in_flight_leave_nothing_to_wait_for_but_their_end(frontier):
    frontier.push(link("http://a/1"), 0)
    offer = take(frontier)
    assert frontier.offer(0) == NotYet(None)
    finish(frontier, offer, 0)
    assert frontier.offer(0) is None


def test_of_hosts_that_are_due_the_best_comes_first_however_long_others_are(frontier):
    for number, score in enumerate((0.2, 0.9, 0.5)):
        frontier.push(link(f"http://h{number}/1", 0.95), 0)
        frontier.push(link(f"http://h{number}/2", score), 0)
    for number in range(3):
        finish(frontier, take(frontier), 0, delay_s=1.0 + number)
    assert frontier.offer(0.5) == NotYet(1.0)
    assert [url_of_next(frontier, 3)[7:] for _ in range(3)] == ["h1/2", "h2/2", "h0/2"]


def test_whoever_changes_a_hosts_pace_is_heeded_from_then_on(frontier):
    frontier.push(link("http://a/1"), 0)
    host = frontier.hosts.get("a")
    for due_at in (9.0, 5.0):
        host.pace = HostPace(due_at)
        frontier.hosts.refresh(host, 0)
        assert frontier.offer(1.0) == NotYet(due_at)
    assert take(frontier, 5.0).host is host


def test_it_wakes_for_the_first_host_that_falls_due(frontier):
    for number in range(20):
        frontier.push(link(f"http://h{number}/1", 0.9), 0)
        frontier.push(link(f"http://h{number}/2", 0.5), 0)
    for number in range(20):
        finish(frontier, take(frontier), 0, delay_s=1.0 + (7 * number) % 20)
    for due_at in range(1, 21):
        assert frontier.offer(due_at - 0.5) == NotYet(due_at)
        finish(frontier, take(frontier, due_at), due_at)
    assert frontier.offer(99) is None


# Hosts at one address


def neighbours(frontier: DiskFrontier, names: str, address: str = "192.0.2.1") -> None:
    """Hosts at one address, the first the best, each with two links."""
    for place, name in enumerate(names):
        for page in "12":
            frontier.push(link(f"http://{name}/{page}", 0.9 - place / 10), 0)
        frontier.hosts.assign_address(frontier.hosts.get(name), address)


def test_hosts_at_one_address_are_asked_one_after_the_other(frontier):
    neighbours(frontier, "abc")
    offer = take(frontier)
    assert frontier.offer(5) == NotYet(None)
    finish(frontier, offer, 5)
    assert take(frontier, 5).link.url == "http://b/1"


def test_an_address_has_its_pause_after_each_fetch(process):
    frontier = process.open(address_delay_s=2.0)
    neighbours(frontier, "abc")
    finish(frontier, take(frontier), 1.0)
    assert frontier.offer(2.9) == NotYet(3.0)
    finish(frontier, take(frontier, 3.0), 4.0)
    assert frontier.offer(5.0) == NotYet(6.0)


def test_an_address_has_its_pause_even_where_its_hosts_need_less(process):
    frontier = process.open(address_delay_s=5.0)
    neighbours(frontier, "ab")
    finish(frontier, take(frontier), 1.0, delay_s=1.0)
    assert frontier.offer(2.5) == NotYet(6.0)


def test_a_reserved_host_is_offered_to_nobody_nor_are_those_at_its_address(process):
    frontier = process.open(address_delay_s=2.0)
    neighbours(frontier, "ab")
    host = frontier.hosts.get("a")
    frontier.hosts.reserve(host, 0)
    assert frontier.offer(100) == NotYet(None)
    host.pace = HostPace(105)
    frontier.hosts.release_reservation(host, 101)
    assert frontier.offer(101) == NotYet(103)
    assert take(frontier, 103).link.url == "http://b/1"


def test_a_host_may_be_reserved_while_it_is_asked_and_stays_so(frontier):
    neighbours(frontier, "a")
    offer = take(frontier)
    frontier.hosts.reserve(offer.host, 0)
    finish(frontier, offer, 5)
    assert frontier.offer(100) == NotYet(None)
    frontier.hosts.release_reservation(offer.host, 100)
    assert url_of_next(frontier, 100) == "http://a/2"


def test_a_host_that_is_released_while_it_is_asked_is_still_asked_once(frontier):
    neighbours(frontier, "ab")
    offer = take(frontier)
    frontier.hosts.reserve(offer.host, 0)
    frontier.hosts.release_reservation(offer.host, 1)
    assert frontier.offer(100) == NotYet(None)
    finish(frontier, offer, 100)
    assert url_of_next(frontier, 200) == "http://a/2"


def test_an_address_that_was_not_requested_needs_no_pause(process):
    frontier = process.open(address_delay_s=5.0)
    neighbours(frontier, "ab")
    offer = take(frontier)
    frontier.requeue(offer, link("http://a/1", 0.1), 0)
    assert url_of_next(frontier) == "http://a/2"
    assert url_of_next(frontier) == "http://b/1"


def test_hosts_elsewhere_do_not_wait_for_a_busy_address(frontier):
    neighbours(frontier, "abc")
    frontier.push(link("http://else/1", 0.1), 0)
    take(frontier)
    assert take(frontier).link.url == "http://else/1"


def test_among_neighbours_the_best_host_is_asked_first_whatever_came_meanwhile(frontier):
    neighbours(frontier, "abc")
    offer = take(frontier)
    assert frontier.offer(0) == NotYet(None)
    frontier.push(link("http://c/better", 0.95), 0)
    drop_host(frontier, "b", 0)
    finish(frontier, offer, 0, delay_s=9.0)
    assert [url_of_next(frontier, 1) for _ in range(3)] == [
        "http://c/better",
        "http://c/1",
        "http://c/2",
    ]


def test_who_waits_at_an_address_is_offered_though_the_best_of_them_moved_away(process):
    frontier = process.open(address_delay_s=1.0)
    neighbours(frontier, "abc")
    finish(frontier, take(frontier), 0, delay_s=50.0)
    assert frontier.offer(0.5) == NotYet(1.0)  # b and c wait for their address
    frontier.hosts.assign_address(frontier.hosts.get("b"), "192.0.2.2")
    assert url_of_next(frontier, 0.5) == "http://b/1"
    assert frontier.offer(0.5).host.name == "b"
    assert take(frontier, 1.0).link.url == "http://c/1"


def test_who_waits_at_an_address_is_offered_though_the_best_of_them_lost_its_links(process):
    frontier = process.open(address_delay_s=1.0)
    neighbours(frontier, "abc")
    finish(frontier, take(frontier), 0, delay_s=50.0)
    assert frontier.offer(0.5) == NotYet(1.0)
    frontier.push(link("http://else/1", 0.99), 0.5)
    assert take(frontier, 1.0).host.name == "else"
    drop_host(frontier, "b", 1.0)
    assert take(frontier, 1.0).link.url == "http://c/1"


def test_who_waits_at_an_address_is_offered_though_the_one_in_flight_moved_away(frontier):
    neighbours(frontier, "ab")
    in_flight = take(frontier)
    assert frontier.offer(1) == NotYet(None)
    frontier.hosts.assign_address(in_flight.host, "192.0.2.2")
    assert take(frontier, 1).link.url == "http://b/1"


def test_a_host_that_moves_to_a_busy_address_waits_there(frontier):
    neighbours(frontier, "a")
    frontier.push(link("http://b/1", 0.1), 0)
    offer = take(frontier)
    frontier.hosts.assign_address(frontier.hosts.get("b"), "192.0.2.1")
    assert frontier.offer(1) == NotYet(None)
    finish(frontier, offer, 1, delay_s=9.0)
    assert take(frontier, 1).link.url == "http://b/1"


def test_a_fetch_in_flight_goes_with_its_host_to_the_new_address(frontier):
    neighbours(frontier, "a")
    neighbours(frontier, "b", "192.0.2.2")
    offer = take(frontier)
    frontier.hosts.assign_address(offer.host, "192.0.2.2")
    assert frontier.offer(1) == NotYet(None)
    finish(frontier, offer, 1, delay_s=9.0)
    assert take(frontier, 1).link.url == "http://b/1"


# Budgets


def fetch(frontier: DiskFrontier, now: float) -> str:
    offer = take(frontier, now)
    frontier.hosts.count_fetched(offer.host)
    finish(frontier, offer, now, delay_s=0.0)
    return offer.link.url


def test_exempt_links_come_first_and_from_hosts_without_budget_too(process):
    frontier = process.open(limits=HostLimits(pages_per_host=1))
    frontier.push(link("http://a/1", 0.9), 0)
    finish(frontier, take(frontier), 0)
    frontier.hosts.count_fetched(frontier.hosts.get("a"))
    frontier.push(link("http://a/2", 0.9), 0)
    frontier.push(link("http://a/again", 0.1, is_exempt=True), 0)
    frontier.push(link("http://b/1", 0.8), 0)
    assert [url_of_next(frontier, now=10) for _ in range(2)] == ["http://a/again", "http://b/1"]
    assert frontier.offer(20) is None
    assert [each.url for each in frontier.waiting(frontier.hosts.get("a"))] == ["http://a/2"]


def test_an_exempt_link_of_a_negative_priority_still_comes_from_hosts_without_budget(process):
    frontier = process.open(limits=HostLimits(pages_per_host=1))
    frontier.push(link("http://a/1", 0.9), 0)
    finish(frontier, take(frontier), 0)
    frontier.hosts.count_fetched(frontier.hosts.get("a"))
    frontier.push(link("http://a/again", -1.0, is_exempt=True), 0)
    assert url_of_next(frontier, now=10) == "http://a/again"


def test_no_priority_makes_a_link_exempt(process):
    frontier = process.open(limits=HostLimits(pages_per_host=1))
    frontier.push(link("http://a/1", 3e6), 0)
    frontier.hosts.count_fetched(frontier.hosts.get("a"))
    frontier.push(link("http://b/1", 2e6), 0)
    frontier.push(link("http://b/again", 0.1, is_exempt=True), 0)
    assert [url_of_next(frontier, now=10 * n) for n in range(2)] == ["http://b/again", "http://b/1"]
    assert frontier.offer(30) is None


def test_an_exempt_link_that_is_tried_again_stays_so(process):
    frontier = process.open()
    frontier.push(link("http://a/again", 0.1, is_exempt=True), 0)
    frontier.push(link("http://b/1", 0.8), 0)
    offer = take(frontier)
    frontier.retry(offer, HostPace(), 0)
    again = take(frontier, now=1)
    assert (again.link.url, again.link.priority, again.link.is_exempt) == (
        "http://a/again",
        pytest.approx(0.1),
        True,
    )


def test_a_host_gives_no_more_pages_than_its_budget(process):
    frontier = process.open(limits=HostLimits(pages_per_host=2))
    for page in range(4):
        frontier.push(link(f"http://a/{page}"), 0)
    frontier.push(link("http://b/1", 0.1), 0)
    assert [fetch(frontier, 0) for _ in range(3)] == ["http://a/0", "http://a/1", "http://b/1"]
    assert frontier.offer(0) is None
    assert [host.name for host in frontier.hosts.full()] == ["a"]
    assert frontier.hosts.with_links == 0
    assert len(frontier) == 2


@pytest.mark.parametrize("busy_meanwhile", [False, True])
def test_the_hosts_at_an_address_give_no_more_pages_than_its_budget(process, busy_meanwhile):
    frontier = process.open(limits=HostLimits(pages_per_address=2))
    neighbours(frontier, "abcde")
    for now in range(2):
        offer = take(frontier, now)
        if busy_meanwhile:
            assert frontier.offer(now) == NotYet(None)  # the others are put aside
        frontier.hosts.count_fetched(offer.host)
        finish(frontier, offer, now, delay_s=0.0)
    assert frontier.offer(9) is None
    assert {host.name for host in frontier.hosts.full()} == set("bcde")


def test_nobody_waits_for_a_host_whose_budget_is_spent(process):
    frontier = process.open(limits=HostLimits(pages_per_address=1))
    neighbours(frontier, "ab")
    host = frontier.hosts.get("b")
    host.pace = HostPace(3_600.0)
    frontier.hosts.refresh(host, 0)
    fetch(frontier, 0)
    assert frontier.offer(0) is None


def test_a_host_that_moves_brings_its_pages_along(process):
    frontier = process.open(limits=HostLimits(pages_per_address=2))
    neighbours(frontier, "ab")
    frontier.push(link("http://c/1", 0.1), 0)
    assert [fetch(frontier, 0) for _ in range(2)] == ["http://a/1", "http://a/2"]
    assert take(frontier).host.name == "c"
    frontier.hosts.assign_address(frontier.hosts.get("a"), "192.0.2.3")
    assert take(frontier).link.url == "http://b/1"
    assert not [*frontier.hosts.full()]


# Best priorities, and a floor


def test_no_host_below_the_floor_is_offered(frontier):
    frontier.push(link("http://a/1", 0.6), 0)
    frontier.push(link("http://b/1", 0.4), 0)
    finish(frontier, take(frontier, floor=0.5), 0)
    assert isinstance(frontier.offer(0, floor=0.5), NotYet)
    assert take(frontier, floor=0.4).link.url == "http://b/1"


def test_the_best_priorities_are_those_of_hosts_that_are_due_or_worth_waiting_for(frontier):
    for name, priority in (("soon", 0.9), ("late", 0.8), ("now", 0.7)):
        frontier.push(link(f"http://{name}/1", priority), 0)
        frontier.push(link(f"http://{name}/2", priority - 0.5), 0)
    finish(frontier, take(frontier, 0), 0, delay_s=2)
    finish(frontier, take(frontier, 0), 0, delay_s=9)
    assert frontier.best_priorities(9, 0) == pytest.approx([0.7, 0.2])
    assert frontier.best_priorities(9, 0, patience_s=2) == pytest.approx([0.7, 0.4, 0.2])
    assert frontier.best_priorities(2, 0, patience_s=2) == pytest.approx([0.7, 0.4])
    assert frontier.best_priorities(9, 9) == pytest.approx([0.7, 0.4, 0.3, 0.2])


def test_a_link_in_flight_is_none_of_the_best_but_the_next_of_its_host_is_for_a_moment(frontier):
    frontier.push(link("http://a/1", 0.9), 0)
    frontier.push(link("http://a/2", 0.8), 0)
    take(frontier, 0)
    assert frontier.best_priorities(9, 1, patience_s=2) == pytest.approx([0.8])
    assert frontier.best_priorities(9, 3, patience_s=2) == []


def test_hosts_that_fail_are_not_worth_waiting_for(frontier):
    frontier.push(link("http://a/1", 0.9), 0)
    frontier.retry(take(frontier, 0), HostPace(1.0, failures=1), 0)
    assert frontier.best_priorities(9, 0, patience_s=2) == []
    assert frontier.best_priorities(9, 1, patience_s=2) == pytest.approx([0.9])
