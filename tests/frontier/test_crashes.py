"""Crashes: committed changes survive, others don't."""

from msgspec.structs import replace

from focused.frontier.disk_frontier import Known, NotYet
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.queued_link import Exploration, link_key
from tests.frontier.steps import finish, link, take, url_of_next


def test_what_was_committed_outlives_a_crash_and_nothing_later(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    process.commit()
    frontier.push(link("http://a/2"), 0)
    process.crash()
    frontier = process.open()
    assert (len(frontier), frontier.found) == (1, 1)
    assert not frontier.push(link("http://a/1"), 0)
    assert frontier.push(link("http://a/2"), 0)


def test_a_sync_makes_nothing_true_that_was_not_committed(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    process.commit()
    frontier.push(link("http://b/1"), 0)
    frontier.push(link("http://b/2"), 0)
    for _ in range(50):
        process.sync()
    process.crash()
    frontier = process.open()
    assert frontier.push(link("http://c/1", 0.9), 0)
    assert [url_of_next(frontier) for _ in "ca"] == ["http://c/1", "http://a/1"]
    assert frontier.offer(0) is None


def test_what_was_in_flight_is_queued_again(process):
    frontier = process.open()
    for name in "123":
        frontier.push(link(f"http://a/{name}"), 0)
    finish(frontier, take(frontier), 0)
    take(frontier, 5)
    process.close()
    frontier = process.open()
    assert (len(frontier), frontier.found) == (2, 3)
    assert frontier.offer(0.5) == NotYet(1.0)
    assert take(frontier, 1.0).link.url == "http://a/2"


def test_tries_of_a_link_in_flight_are_counted_though_it_was_never_settled(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    frontier.save_tries(take(frontier), 2)
    process.commit()
    process.crash()
    assert take(process.open(), 10).link == replace(link("http://a/1"), tries=2)


def test_a_settled_link_never_comes_again(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    finish(frontier, take(frontier), 0)
    process.commit()
    process.crash()
    frontier = process.open()
    assert frontier.lookup_links([("a", link_key("http://a/1"))]) == Known(
        {link_key("http://a/1")}, {}
    )
    assert not frontier.push(link("http://a/1"), 0)
    assert frontier.offer(9) is None


def test_a_fetch_whose_end_was_not_committed_is_repeated(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    offer = take(frontier)
    process.commit()
    frontier.retry(offer, HostPace(), 0)
    process.crash()
    assert take(process.open()).link == link("http://a/1")


def test_links_keep_their_order_their_tries_and_their_payload(process):
    frontier = process.open()
    for name in "xyz":
        frontier.push(link(f"http://a/{name}", payload=name), 0)
    frontier.retry(take(frontier), HostPace(), 0)
    frontier.reprioritise({"http://a/z": 0.75}, 0)
    process.close()
    frontier = process.open()
    host = frontier.hosts.get("a")
    assert [*frontier.waiting(host)] == [
        replace(link("http://a/z", 0.5, payload="z"), priority=0.75),
        link("http://a/x", payload="x", tries=1),
        link("http://a/y", payload="y"),
    ]


def test_hosts_keep_their_clock_their_counts_their_address_and_their_rules(process):
    frontier = process.open()
    host = frontier.hosts.get("a")
    host.pace = HostPace(7.0, 2, 0.5, 1)
    host.asked, host.unproductive = 3, 1.5
    frontier.hosts.refresh(host, 0)
    frontier.hosts.count_fetched(host)
    frontier.hosts.assign_address(host, "192.0.2.1")
    frontier.hosts.keep_robots(host, "https", {"allow": ["/"]})
    process.commit()
    process.crash()
    frontier = process.open()
    host = frontier.hosts.get("a")
    assert (host.pace, host.asked, host.unproductive) == (HostPace(7.0, 2, 0.5, 1), 3, 1.5)
    assert (host.fetched, host.address) == (1, "192.0.2.1")
    assert frontier.hosts.robots(host) == {"https": {"allow": ["/"]}}


def test_hosts_that_were_being_requested_are_reported_to_the_next_process_alone(process):
    frontier = process.open()
    frontier.push(link("http://a/1"), 0)
    frontier.push(link("http://b/1"), 0)
    finish(frontier, take(frontier), 0)
    take(frontier, 4)
    process.commit()
    assert not frontier.interrupted
    process.crash()
    frontier = process.open()
    assert [(host.name, since) for host, since in frontier.interrupted] == [("b", 4)]
    process.commit()
    process.crash()
    assert not process.open().interrupted


def test_hosts_at_one_address_share_their_delay_and_their_budget_after_a_crash(process):
    settings = {
        "limits": HostLimits(pages_per_address=2),
        "exploration": Exploration(new_host_bonus=1.0),
    }
    frontier = process.open(**settings)
    for name in "abc":
        frontier.push(link(f"http://{name}/1"), 0)
        frontier.hosts.assign_address(frontier.hosts.get(name), "192.0.2.1")
    frontier.hosts.count_fetched(frontier.hosts.get("a"))
    process.commit()
    process.crash()
    frontier = process.open(**settings)
    offer = take(frontier)
    assert frontier.offer(0) == NotYet(None)
    frontier.hosts.count_fetched(offer.host)
    finish(frontier, offer, 0)
    assert frontier.offer(9) is None
    assert len(frontier) == 2
