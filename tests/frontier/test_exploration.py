"""The exploration bonus: higher for new hosts, lower for unproductive ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.disk_frontier import DiskFrontier, NotYet, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import NO_EXPLORATION, Exploration, unproductive_after
from tests.frontier.steps import FrontierProcess, link

UNKNOWN = 4.0
EXPLORATION = Exploration(new_host_bonus=UNKNOWN)


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_with_each_page_the_bonus_falls_and_with_each_unproductive_one_less_again(
    asked, unproductive
):
    exploration = Exploration(new_host_bonus=3.0, unproductive_penalty=1.0)
    bonus = exploration.bonus(asked, unproductive)
    assert exploration.bonus(asked + 1, unproductive) < bonus <= 3.0
    assert exploration.bonus(asked, unproductive + 1.0) < bonus
    assert NO_EXPLORATION.bonus(asked, unproductive) == 0.0


@given(st.floats(0, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_the_more_relevant_a_page_the_fewer_its_host_is_unproductive_by(unproductive, one, other):
    low, high = sorted((one, other))
    assert (
        0.0
        <= unproductive_after(unproductive, high)
        <= unproductive_after(unproductive, low)
        <= unproductive + 1.0
    )


@pytest.fixture
def exploring(process: FrontierProcess) -> DiskFrontier:
    return process.open(worth_waiting_for=0.5, exploration=EXPLORATION)


def fetch(
    frontier: DiskFrontier, now: float = 0.0, delay_s: float = 0.0, relevance: float = 1.0
) -> str:
    """Fetch the best link, as the crawl does; its URL."""
    offer = frontier.offer(now)
    assert isinstance(offer, Offer)
    offer.host.asked += 1
    offer.host.unproductive = unproductive_after(offer.host.unproductive, relevance)
    frontier.settle(offer, HostPace(now + delay_s), now)
    return offer.link.url


def asked_before(frontier: DiskFrontier, host: str, pages: int) -> None:
    """The host has been asked for so many pages; nothing else was queued meanwhile."""
    for number in range(pages):
        frontier.push(link(f"http://{host}/before-{number}", 0.0), 0)
        assert fetch(frontier) == f"http://{host}/before-{number}"


@pytest.mark.parametrize("pages", [0, 1, 3, 10])
def test_the_bonus_falls_with_the_root_of_the_pages_asked(exploring, pages):
    asked_before(exploring, "a", pages)
    exploring.push(link("http://a/1", 1.5), 0)
    host = exploring.hosts.get("a")
    assert exploring.hosts.worth(host) == 1.5 + UNKNOWN / math.sqrt(1 + pages)


def test_a_host_without_links_has_no_priority_however_new(exploring):
    assert exploring.hosts.worth(exploring.hosts.get("a")) == -math.inf


def test_a_new_host_is_tried_before_a_known_one_with_better_links(exploring):
    asked_before(exploring, "known", 3)  # is hoped 2 of
    exploring.push(link("http://known/1", 1.0), 0)
    exploring.push(link("http://new/1", -0.9), 0)
    assert fetch(exploring) == "http://new/1"


def test_a_clearly_better_link_of_a_known_host_comes_first_all_the_same(exploring):
    asked_before(exploring, "known", 3)
    exploring.push(link("http://known/1", 1.0), 0)
    exploring.push(link("http://new/1", -1.1), 0)
    assert fetch(exploring) == "http://known/1"


def test_a_host_that_disappoints_loses_its_bonus_page_by_page(exploring):
    for number in range(20):
        exploring.push(link(f"http://poor/{number}", -1.0), 0)
        exploring.push(link(f"http://good/{number}", 1.0), 0)
    first = [fetch(exploring) for _ in range(20)]
    tried = sum("poor" in url for url in first)
    # A difference of 2 is outweighed for at most (4 / 2)^2 pages.
    assert 1 <= tried <= 4
    assert all("good" in url for url in first[10:])


def test_links_of_one_host_are_in_no_need_of_a_bonus(exploring):
    for number in (2, 9, 4):
        exploring.push(link(f"http://a/{number}", number), 0)
    assert [fetch(exploring) for _ in range(3)] == ["http://a/9", "http://a/4", "http://a/2"]


def test_without_exploration_a_host_has_the_priority_of_its_best_link(process):
    frontier = process.open()
    frontier.push(link("http://a/1", 0.25), 0)
    assert frontier.hosts.worth(frontier.hosts.get("a")) == 0.25


def test_the_bonus_of_a_host_survives_a_restart(process):
    worths = []
    for pages in (3, 0):
        frontier = process.open(exploration=EXPLORATION)
        asked_before(frontier, "a", pages)
        frontier.push(link("http://a/1", 1.0), 0)
        worths.append(frontier.hosts.worth(frontier.hosts.get("a")))
        process.close()
    assert worths == [3.0, 3.0]


def test_with_patience_a_link_waits_for_a_host_that_has_a_higher_bonus(exploring):
    asked_before(exploring, "known", 3)
    exploring.push(link("http://new/1", -0.5), 0)
    exploring.push(link("http://new/2", -0.5), 0)
    assert fetch(exploring, delay_s=1.0) == "http://new/1"  # hoped of: 4 / sqrt(2), 2.83
    exploring.push(link("http://known/1", -0.5), 0)  # hoped of: 2
    assert exploring.offer(0.5, patience_s=2.0) == NotYet(1.0)
    exploring.push(link("http://known/2", 0.0), 0)  # no longer worse by half a nat
    offer = exploring.offer(0.5, patience_s=2.0)
    assert isinstance(offer, Offer)
    assert offer.link.url == "http://known/2"


# Dry hosts


def test_links_of_a_host_that_brings_nothing_wait_for_others(process):
    frontier = process.open(exploration=Exploration(unproductive_penalty=1.0))
    for number in range(6):
        frontier.push(link(f"http://dry/{number}", 2.0), 0)
        frontier.push(link(f"http://else/{number}", 1.0), 0)
    hosts = []
    for _ in range(6):
        offer = frontier.offer(0)
        assert isinstance(offer, Offer)
        hosts.append(offer.host.name)
        offer.host.unproductive = unproductive_after(
            offer.host.unproductive, float(offer.host.name == "else")
        )
        frontier.settle(offer, HostPace(), 0)
    # After one unproductive page it is worth ln 2 less, after two ln 3, which is more than 1.
    assert hosts == ["dry", "dry", "else", "else", "else", "else"]


def test_a_page_on_topic_makes_up_for_all_unproductive_ones_before_it(process):
    frontier = process.open(exploration=Exploration(unproductive_penalty=1.0))
    for number, relevance in enumerate((0.0, 0.0, 0.0, 1.0)):
        frontier.push(link(f"http://a/{number}", 1.0), 0)
        fetch(frontier, relevance=relevance)
    frontier.push(link("http://a/next", 1.0), 0)
    assert frontier.hosts.worth(frontier.hosts.get("a")) == 1.0


def test_how_unproductive_a_host_is_survives_a_restart(process):
    worths = []
    for _ in range(2):
        frontier = process.open(exploration=Exploration(unproductive_penalty=2.0))
        if not worths:
            fetch_one_barren(frontier)
        worths.append(frontier.hosts.worth(frontier.hosts.get("a")))
        process.close()
    assert worths == [1.0 - 2.0 * math.log(1.75)] * 2


def fetch_one_barren(exploring: DiskFrontier) -> None:
    exploring.push(link("http://a/1", 1.0), 0)
    exploring.push(link("http://a/2", 1.0), 0)
    fetch(exploring, relevance=0.25)


def test_the_best_priorities_include_the_bonus_that_falls_with_each_page(process):
    frontier = process.open(exploration=EXPLORATION)
    for name in ("1", "2"):
        frontier.push(link(f"http://a/{name}", 0.5), 0)
    expected = [0.5 + UNKNOWN, 0.5 + UNKNOWN / math.sqrt(2)]
    assert frontier.best_priorities(9, 0) == pytest.approx(expected)
