"""Selecting queued links by URL, host and pattern."""

import re

import pytest

from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.inspection import find_links, links_matching
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.tables import Tables


@pytest.fixture
def frontier(tables: Tables) -> DiskFrontier:
    frontier = DiskFrontier(tables)
    for host in "ab":
        for number in range(5):
            url = f"http://{host}.test/{number}"
            frontier.push(QueuedLink(link_key(url), url, f"{host}.test", number, 0.5), 0.0)
    return frontier


def test_urls_are_shown_with_their_links_and_those_that_do_not_wait_without(frontier):
    named = dict(find_links(frontier, ["http://a.test/3", "http://a.test/9"]))
    assert named["http://a.test/3"].priority == 3.0
    assert named["http://a.test/9"] is None


def test_a_hosts_links_come_best_first(frontier):
    found = links_matching(frontier, [frontier.hosts.get("b.test")])
    assert [link.url for link in found] == [f"http://b.test/{number}" for number in (4, 3, 2, 1, 0)]


def test_a_pattern_is_found_anywhere_in_the_url_on_any_host(frontier):
    found = links_matching(frontier, frontier.hosts, re.compile("test/[34]$"))
    assert [link.url[7:] for link in found] == ["a.test/4", "a.test/3", "b.test/4", "b.test/3"]


def test_links_may_be_written_while_they_are_gone_through(frontier):
    for number in range(10, 2_500):
        url = f"http://a.test/{number}"
        frontier.push(QueuedLink(link_key(url), url, "a.test", number, 0.5), 0.0)
    dropped = 0
    for link in links_matching(frontier, frontier.hosts):
        frontier.drop(link, 0.0)
        dropped += 1
    assert (dropped, len(frontier)) == (2_500, 0)
