"""Sites of the same pages: how they are found, and what is asked of which."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from focused.crawl.mirrors import Mirrors
from focused.frontier.frontier import Known
from focused.frontier.queued import link_key
from focused.frontier.store import StateStore
from tests.support.simulated import page, politely, site, topic

A, B, C = "http://a.test", "http://b.test", "http://c.test"


@dataclass
class Frontier:
    """What :class:`Mirrors` asks of a frontier: which URLs are settled."""

    settled: set[str] = field(default_factory=set)

    def known_among(self, links: Sequence[tuple[str, bytes]]) -> Known:
        keys = {link_key(url) for url in self.settled}
        return Known({key for _, key in links} & keys, {})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore.open(tmp_path / "state", {"crawl": "test"})
    yield opened
    opened.close()


def mirrors(store: StateStore, frontier: Frontier, *given_up: str) -> Mirrors:
    return Mirrors(store, frontier.known_among, set(given_up).__contains__)


def copies(found: Mirrors, frontier: Frontier, copy: str, of: str, count: int = 5) -> None:
    """So many pages come from both sites; the second site's repeat the first's."""
    for number in range(count):
        frontier.settled |= {f"{of}/{number}", f"{copy}/{number}"}
        found.fetched(f"{copy}/{number}", f"{of}/{number}")


def test_five_copies_at_their_originals_paths_make_a_mirror(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier)
    copies(found, frontier, B, A, 4)
    assert found.pairs == {}
    found.fetched(B + "/4?q=1", A + "/4?q=1")
    assert found.pairs == {B: A}


def test_copies_at_other_paths_make_none(store: StateStore) -> None:
    found = mirrors(store, Frontier())
    for number in range(20):
        found.fetched(f"{B}/{number}", f"{A}/{number}/")
        found.fetched(f"{B}/x{number}", f"{B}/y{number}")
    assert found.pairs == {}


def test_one_other_page_in_six_is_forgiven_and_two_are_not(store: StateStore) -> None:
    frontier = Frontier({f"{A}/{number}" for number in range(99)})
    found = mirrors(store, frontier)
    for number in range(60):
        found.fetched(f"{B}/{number}", None if number % 3 == 2 else f"{A}/{number}")
        found.fetched(f"{C}/{number}", None if number == 3 else f"{A}/{number}")
    assert found.pairs == {C: A}


def test_pages_whose_counterpart_was_not_fetched_say_nothing(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier)
    for number in range(5):
        found.fetched(f"{B}/{number}", f"{A}/{number}")
        found.fetched(f"{B}/new-{number}", None)
    assert found.pairs == {B: A}


def test_copies_in_either_direction_count_together(store: StateStore) -> None:
    found = mirrors(store, Frontier())
    for number in range(5):
        one, other = (B, A) if number % 2 == 0 else (A, B)
        found.fetched(f"{one}/{number}", f"{other}/{number}")
    assert found.pairs == {B: A}


@pytest.mark.parametrize("first", ["http:", "https:"])
def test_of_one_host_https_is_preferred(store: StateStore, first: str) -> None:
    second = {"http:": "https:", "https:": "http:"}[first]
    found = mirrors(store, Frontier())
    copies(found, Frontier(), f"{second}//a.test", f"{first}//a.test")
    assert found.pairs == {"http://a.test": "https://a.test"}


def test_a_mirrors_mirror_is_one_of_the_preferred_site(store: StateStore) -> None:
    found, frontier = mirrors(store, Frontier()), Frontier()
    copies(found, frontier, B, A)
    copies(found, frontier, C, B)
    assert found.pairs == {B: A, C: A}


def test_no_site_is_in_the_end_its_own_mirror(store: StateStore) -> None:
    found, frontier = mirrors(store, Frontier()), Frontier()
    for copy, of in ((B, A), (A, C), (C, B), (B, C), (C, A)):
        copies(found, frontier, copy, of, 8)
    for start in found.pairs:
        way = [start]
        while way[-1] in found.pairs:
            way.append(found.pairs[way[-1]])
            assert len(way) <= 3


def test_a_mirrors_page_is_not_asked_for_when_the_preferred_site_has_it(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier)
    copies(found, frontier, B, A)
    frontier.settled.add(A + "/more")
    assert found.instead_of(B + "/more") == A + "/more"
    assert found.instead_of(B + "/elsewhere") is None
    assert found.instead_of(A + "/0") is None


def test_a_link_is_not_queued_when_either_site_has_the_page(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier)
    copies(found, frontier, B, A)
    frontier.settled |= {A + "/of-a", B + "/of-b"}
    assert [found.has(url) for url in (B + "/of-a", A + "/of-b", A + "/x", C + "/0")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_site_that_was_given_up_stands_for_no_other(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier, "a.test")
    copies(found, frontier, B, A)
    assert found.instead_of(B + "/0") is None
    assert not found.has(B + "/0")


def test_mirrors_and_half_a_mirror_are_known_after_a_restart(store: StateStore) -> None:
    frontier = Frontier()
    found = mirrors(store, frontier)
    copies(found, frontier, B, A)
    copies(found, frontier, C, A, 4)
    again = mirrors(store, frontier)
    assert again.pairs == {B: A}
    again.fetched(C + "/x", A + "/x")
    assert again.pairs == {B: A, C: A}


def prose(number: int) -> str:
    return " ".join(random.Random(number).choices([f"w{n}" for n in range(999)], k=60))


PAGES = 40
LISTING = "http://c.test/"


def mirrored_web() -> dict:
    """Two hosts of the same pages, and a listing of all pages of both."""
    paths = [f"/{number}" for number in range(PAGES)]
    return site(
        page(LISTING, *(host + path for path in paths for host in (A, B))),
        *(page(f"{A}{path}", *paths, text=prose(n)) for n, path in enumerate(paths)),
        *(page(f"{B}{path}", *paths, text=prose(n)) for n, path in enumerate(paths)),
    )


class TestInACrawl:
    def test_a_mirror_costs_a_handful_of_pages(self, simulate, tmp_path):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(A) for url in done.urls) == PAGES
        assert sum(url.startswith(B) for url in done.urls) == 5

    def test_links_that_waited_when_the_mirror_was_found_are_counted_without_a_row(
        self, simulate, tmp_path
    ):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.counters.failures == {"mirror": PAGES - 5}
        assert all(row["failure"] == "" for row in done.rows.values())

    def test_a_restarted_crawl_knows_its_mirrors(self, simulate, tmp_path):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run(pages=46)
        assert done.crawl.mirrors == {B: A}
        done.restart().run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(B) for url in done.urls) == 5
