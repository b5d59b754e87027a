"""Inspection of a frontier: totals, hosts, links; read-only."""

from dataclasses import astuple

import pytest

from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.inspection import (
    count_totals,
    hosts_backing_off,
    hosts_in_flight,
    summarise_host,
    top_hosts,
    top_links,
    top_links_overall,
)
from focused.frontier.queued_link import Exploration, QueuedLink, link_key
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables

NOW = 1_000.0


def link(url: str, priority: float, **fields) -> QueuedLink:
    return QueuedLink(link_key(url), url, url.split("/")[2], priority, 0.5, **fields)


@pytest.fixture
def frontier(tables: Tables) -> DiskFrontier:
    return DiskFrontier(tables, exploration=Exploration(new_host_bonus=1.0))


def put(frontier: DiskFrontier, host: str, *priorities: float) -> None:
    for number, priority in enumerate(priorities):
        frontier.push(link(f"http://{host}/{number}", priority), NOW)


def ask(frontier: DiskFrontier, pace: HostPace) -> str:
    """Fetch the best link; its host goes on at ``pace``."""
    offer = frontier.offer(NOW)
    assert isinstance(offer, Offer)
    offer.host.asked += 1
    frontier.settle(offer, pace, NOW)
    return offer.host.name


def test_totals_tell_links_and_which_hosts_are_due_waiting_or_failing(frontier):
    put(frontier, "fast", 0.9)
    put(frontier, "slow", 5.0, 0.1)
    put(frontier, "broken", 4.0, 0.1)
    put(frontier, "empty", 3.0)
    assert ask(frontier, HostPace(NOW + 8.0)) == "slow"
    assert ask(frontier, HostPace(NOW + 60.0, failures=3)) == "broken"
    assert ask(frontier, HostPace(NOW + 2.0)) == "empty"
    report = count_totals(frontier, NOW)
    assert (report.links, report.hosts, report.with_links) == (3, 4, 3)
    assert (report.due, report.backing_off) == (1, 1)
    assert report.next_due_in_s == 8.0


def test_a_frontier_whose_hosts_are_all_due_waits_for_none(frontier):
    put(frontier, "a", 0.1)
    assert count_totals(frontier, NOW).next_due_in_s is None


def test_an_empty_frontier_is_reported_too(frontier):
    assert astuple(count_totals(frontier, NOW)) == (0, 0, 0, 0, 0, 0, None, 0)
    assert top_hosts(frontier, 5, NOW) == hosts_backing_off(frontier, 5, NOW) == []
    assert top_links_overall(frontier, 5) == []


def test_hosts_stand_in_the_order_of_their_priority_which_new_hosts_have_more_of(frontier):
    put(frontier, "known", 9.0, 1.0)
    ask(frontier, HostPace(NOW))
    put(frontier, "new", 0.8)
    put(frontier, "poor", 0.0)
    rows = top_hosts(frontier, 2, NOW)
    assert [row.name for row in rows] == ["new", "known"]
    assert [row.worth for row in rows] == pytest.approx([1.8, 1.0 + 2**-0.5])
    assert [row.best for row in rows] == [0.8, 1.0]


def test_a_host_is_shown_with_its_queue_its_clock_and_its_failures(frontier):
    put(frontier, "a", 2.0, 1.0, 0.5)
    ask(frontier, HostPace(NOW + 30.0, failures=2, crawl_delay_s=10.0))
    report = summarise_host(frontier, frontier.hosts.get("a"), NOW + 10.0)
    assert (report.queued, report.best, report.score) == (2, 1.0, 0.5)
    assert (report.asked, report.failures) == (1, 2)
    assert (report.due_in_s, report.crawl_delay_s) == (20.0, 10.0)


def test_a_host_that_was_suspended_backs_off_though_its_failures_are_counted_again(frontier):
    put(frontier, "a", 2.0, 1.0)
    ask(frontier, HostPace(NOW + 30.0, failures=0, suspensions=2))
    (report,) = hosts_backing_off(frontier, 9, NOW)
    assert (report.name, report.suspensions) == ("a", 2)
    assert count_totals(frontier, NOW).backing_off == 1


def test_a_host_whose_budget_is_spent_is_neither_due_nor_waited_for(tables):
    frontier = DiskFrontier(tables, limits=HostLimits(pages_per_host=1))
    put(frontier, "a", 2.0, 1.0)
    ask(frontier, HostPace(NOW + 30.0, failures=1))
    frontier.hosts.count_fetched(frontier.hosts.get("a"))
    report = count_totals(frontier, NOW)
    assert (report.with_links, report.full, report.due, report.backing_off) == (1, 1, 0, 0)
    assert report.next_due_in_s is None
    assert summarise_host(frontier, frontier.hosts.get("a"), NOW).full
    assert hosts_backing_off(frontier, 9, NOW) == []


def test_a_hosts_address_is_reported_once_it_is_known(frontier):
    put(frontier, "a", 2.0)
    host = frontier.hosts.get("a")
    assert summarise_host(frontier, host, NOW).address == ""
    frontier.hosts.assign_address(host, "192.0.2.1")
    assert summarise_host(frontier, host, NOW).address == "192.0.2.1"


def test_fetches_that_were_in_flight_are_reported_longest_first(tmp_path):
    store = StateStore.open(tmp_path / "killed", {})
    frontier = DiskFrontier(store.tables)
    for later, host in enumerate(("first", "second", "third")):
        put(frontier, host, 9.0 - later)
        assert isinstance(frontier.offer(NOW + later), Offer)
    frontier.save()
    store.commit()
    store.abandon()
    store = StateStore.reopen(tmp_path / "killed")
    frontier = DiskFrontier(store.tables)
    assert count_totals(frontier, NOW + 10.0).in_flight == 3
    report = hosts_in_flight(frontier, 2, NOW + 10.0)
    assert report == [("first", 10.0), ("second", 9.0)]
    store.close()


def test_a_host_without_links_is_shown_with_nothing_best(frontier):
    put(frontier, "a", 2.0)
    ask(frontier, HostPace(NOW - 5.0))
    report = summarise_host(frontier, frontier.hosts.get("a"), NOW)
    assert (report.queued, report.best, report.worth, report.score) == (0, None, None, None)
    assert report.due_in_s == 0.0


def test_hosts_that_back_off_stand_in_the_order_in_which_they_are_due(frontier):
    for host, due_in_s, failures in (("late", 90.0, 5), ("soon", 30.0, 1), ("well", 10.0, 0)):
        put(frontier, host, 9.0, 0.1)
        assert ask(frontier, HostPace(NOW + due_in_s, failures=failures)) == host
    assert [row.name for row in hosts_backing_off(frontier, 9, NOW)] == ["soon", "late"]
    assert [row.name for row in hosts_backing_off(frontier, 1, NOW)] == ["soon"]
    assert [row.name for row in hosts_backing_off(frontier, 9, NOW + 60.0)] == ["late"]


def test_a_hosts_links_stand_best_first(frontier):
    put(frontier, "a", 0.1, 0.9, 0.5)
    links = top_links(frontier, frontier.hosts.get("a"), 2)
    assert [(row.url, row.priority) for row in links] == [("http://a/1", 0.9), ("http://a/2", 0.5)]


def test_the_best_links_of_all_hosts_are_merged_by_priority(frontier):
    put(frontier, "a", 0.9, 0.7, 0.2)
    put(frontier, "b", 0.8, 0.6)
    put(frontier, "c", 0.1)
    links = top_links_overall(frontier, 4)
    assert [row.priority for row in links] == [0.9, 0.8, 0.7, 0.6]
    assert [row.priority for row in top_links_overall(frontier, 99)][-2:] == [0.2, 0.1]
