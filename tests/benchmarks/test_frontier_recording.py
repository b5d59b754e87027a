"""The links that a crawl pushed, as columns."""

from __future__ import annotations

import pytest
from frontier_recording import Watch, facts, steepness

from focused.crawl.policy import Policy
from tests.support.frontier_recordings import PAGES, recording, settled
from tests.support.keyword_guide import WhaleScorer

pytestmark = pytest.mark.long

POLICY = Policy("test", WhaleScorer())


def test_a_link_waited_when_an_earlier_page_had_it() -> None:
    watch = Watch()
    watch(settled("https://a.test/", "https://a.test/1", "https://b.test/"))
    watch(settled("https://a.test/1", "https://a.test/2", "https://b.test/"))
    assert watch.recording("test", POLICY).waited == [False, False, False, True]


def test_hosts_of_a_page_are_numbered_from_its_own() -> None:
    watch = Watch()
    watch(settled("https://a.test/", "https://b.test/1", "https://a.test/1", "https://c.test/"))
    watch(settled("https://b.test/1", "https://c.test/", "https://b.test/2"))
    assert watch.recording("test", POLICY).ordinal == [1, 0, 2, 1, 0]


def test_the_position_of_a_waiting_link_is_among_earlier_links_of_its_host() -> None:
    watch = Watch()
    watch(settled("https://a.test/", *(f"https://a.test/{n}" for n in range(4))))
    watch(settled("https://a.test/0", "https://a.test/3", "https://a.test/1"))
    assert watch.recording("test", POLICY).place[4:] == [0.75, 0.25]


def test_a_waiting_link_keeps_its_anchor_unless_another_page_adds_more() -> None:
    watch = Watch()
    watch(settled("https://a.test/", "https://a.test/1"))
    watch(settled("https://a.test/2", "https://a.test/1"))
    watch(settled("https://a.test/3", "https://a.test/1", has_other_parents=True))
    assert watch.recording("test", POLICY).leads == [False, True, False]


def test_links_whose_turn_was_before_are_counted_and_not_pushed() -> None:
    watch = Watch()
    watch(settled("https://a.test/", "https://a.test/1", "https://a.test/2", "https://a.test/3"))
    watch(settled("https://a.test/1", gone=("https://a.test/1",)))
    assert watch.recording("test", POLICY).settled_share == 1 / 4


def test_sites_keep_what_follows_the_host_in_order_of_discovery() -> None:
    watch = Watch()
    watch(settled("https://a.test/", "https://a.test/x/y?z=1", "https://a.test/"))
    (site,) = watch.recording("test", POLICY).sites
    assert (site.name, site.tails) == ("a.test", ["/x/y?z=1", "/"])


@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.5])
def test_the_steepness_of_zipfs_law_is_found_again(exponent: float) -> None:
    counts = [round(1e6 * rank**-exponent) for rank in range(1, 2001)]
    assert steepness(counts) == pytest.approx(exponent, abs=0.02)


def test_facts_are_shares_of_pushed_links() -> None:
    figures = facts(recording())
    assert figures["pages"] == PAGES
    assert figures["share_own_host"] == 0.75
    # Of four links per page, two to its own host and one elsewhere waited already, except at first.
    assert figures["share_waited"] == pytest.approx(0.75, abs=0.03)
    assert figures["features"]["anchor"]["zeros"] == 0.0
