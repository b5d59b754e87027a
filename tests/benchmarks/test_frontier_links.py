"""Pages sampled from a recording, as many as needed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from frontier_links import PAGE_LINKS, DrawnPage, LinkSource
from msgspec.structs import replace

from focused.frontier.queued_link import link_key
from focused.web.urls import host_of, normalize_url
from tests.support.frontier_recordings import FEATURES, recording

pytestmark = pytest.mark.long


def source(hosts: int = 50, links_a_host: int = 20, seed: int = 0) -> LinkSource:
    return LinkSource(recording(), hosts, links_a_host, seed)


def urls(page: DrawnPage) -> list[str]:
    return [link.url for link in page.links]


def test_a_page_has_fifty_links_all_different() -> None:
    drawn = source()
    for _ in range(100):
        assert len(set(urls(drawn.page()))) == PAGE_LINKS


def test_links_are_normalised_and_told_by_their_key_and_host() -> None:
    drawn = source()
    for link in [link for _ in range(20) for link in drawn.page().links]:
        assert normalize_url(link.url) == link.url
        assert (link.key, link.host) == (link_key(link.url), host_of(link.url))


def test_the_same_seed_draws_the_same_pages_and_another_one_others() -> None:
    one, same, other = source(), source(), source(seed=1)
    pages = [urls(one.page()) for _ in range(20)]
    assert pages == [urls(same.page()) for _ in range(20)]
    assert pages != [urls(other.page()) for _ in range(20)]


def test_a_source_goes_on_where_another_stopped() -> None:
    first = source()
    before = {url for _ in range(50) for url in urls(first.page())}
    stopped = first.drawn()
    later, same = (LinkSource(recording(), 50, 20, 0, stopped) for _ in range(2))
    page = urls(later.page())
    assert page == urls(same.page())
    assert before & set(page)
    assert later.drawn().links - stopped.links == len(set(page) - before)


def test_most_links_repeat_as_in_the_recording() -> None:
    drawn, found, links = source(), set(), 0
    for _ in range(200):
        found.update(urls(drawn.page()))
        links += PAGE_LINKS
    assert 0.5 < 1 - len(found) / links < 0.8  # recorded: 0.74


def test_hosts_are_met_as_links_are_found() -> None:
    drawn = source(hosts=50, links_a_host=20)
    met = []
    for _ in range(200):
        drawn.page()
        met.append(drawn.hosts_met)
    assert all(before <= after for before, after in pairwise(met))
    assert met[-1] == 50
    assert met[2] < 15


def test_a_pushed_link_takes_score_evidence_and_anchor_from_the_recording() -> None:
    drawn = source()
    page = drawn.page()
    for link in drawn.queued(page, {}, now=3.0):
        assert link.features == (0.25,) * FEATURES
        assert link.anchor.startswith("to https://")
        assert (link.score, link.parent, link.found_at) == (0.5, page.url, 3.0)


def test_a_link_that_waits_keeps_the_anchor_that_told_more() -> None:
    drawn = source()
    page = drawn.page()
    first, second, *_ = drawn.queued(page, {}, now=0.0)
    waiting = {first.key: replace(first, anchor="before", parent="https://earlier.test/")}
    again, fresh, *_ = drawn.queued(page, waiting, now=9.0)
    assert (again.anchor, again.parent) == ("before", "https://earlier.test/")
    assert (fresh.anchor, fresh.parent) == (second.anchor, page.url)
