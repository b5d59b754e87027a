"""Mirrors: how pairs are found, which links are skipped, and that none is lost."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.crawl.dedup.mirrors import MirrorFilter
from focused.frontier.disk_frontier import Known
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.web.page import FailureKind
from focused.web.url_patterns import prefixes_and_suffixes
from focused.web.urls import host_of
from tests.support.examples import examples
from tests.support.simulated import failed, page, politely, site, topic

A, B, C = "http://a.test", "http://b.test", "http://c.test"
NEW, OLD = "http://a.test/docs/3.1", "http://a.test/docs/2.4"
MANUAL = "https://x.test/manual"


@dataclass
class Frontier:
    """What :class:`MirrorFilter` asks of a frontier: which URLs are settled, and which wait."""

    settled: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)

    def lookup_links(self, links: Sequence[tuple[str, bytes]]) -> Known:
        settled = {link_key(url) for url in self.settled}
        waiting = {link_key(url): queued(url) for url in self.waiting}
        keys = {key for _, key in links}
        return Known(keys & settled, {key: waiting[key] for key in keys & waiting.keys()})

    def is_under_way(self, url: str) -> bool:
        return url in self.in_flight


def queued(url: str) -> QueuedLink:
    return QueuedLink(link_key(url), url, host_of(url), 0.5, 0.5)


def mirrors(tables: Tables, frontier: Frontier) -> MirrorFilter:
    return MirrorFilter(tables, frontier.lookup_links, frontier.is_under_way)


def copies(
    found: MirrorFilter,
    frontier: Frontier,
    copy: str,
    of: str,
    count: int = 5,
    *,
    exactly: bool = True,
    name: str = "",
) -> None:
    """So many pages come from under both prefixes; the first prefix's repeat the second's."""
    for number in range(count):
        if f"{of}/{name}{number}" not in frontier.settled:
            came(found, frontier, f"{of}/{name}{number}")
        url = f"{copy}/{name}{number}"
        came(found, frontier, url, f"{of}/{name}{number}", exactly=exactly)


def came(
    found: MirrorFilter,
    frontier: Frontier,
    url: str,
    of: str | None = None,
    *,
    exactly: bool = True,
) -> None:
    found.fetched(url, of, exact_duplicate_of=of if exactly else None)
    frontier.settled.add(url)


def refuses(found: MirrorFilter, url: str) -> bool:
    return found.refuses(queued(url))


class TestPairsAreFound:
    @pytest.mark.parametrize(("copy", "of"), [(B, A), (MANUAL, NEW), (OLD, NEW), (A + "/m", B)])
    def test_by_five_exact_duplicates_whose_urls_end_equal(
        self, tables: Tables, copy: str, of: str
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, copy, of, 4)
        assert found.pairs == {}
        came(found, frontier, copy + "/4?q=1", of + "/4?q=1")
        assert found.pairs == {copy: of}

    def test_by_five_near_duplicates_at_the_same_path_of_two_sites(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, B, A, 5, exactly=False)
        assert found.pairs == {B: A}

    @pytest.mark.parametrize("copy", [OLD, MANUAL])
    def test_by_twenty_near_duplicates_under_different_prefixes(
        self, tables: Tables, copy: str
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, copy, NEW, 19, exactly=False)
        assert found.pairs == {}
        came(found, frontier, copy + "/x", NEW + "/x", exactly=False)
        assert found.pairs == {copy: NEW}

    def test_by_duplicates_of_pages_that_are_near_an_older_version_themselves(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        for number in range(5):
            came(found, frontier, f"{OLD}/{number}")
            came(found, frontier, f"{NEW}/{number}", f"{OLD}/{number}", exactly=False)
            found.fetched(
                f"{MANUAL}/{number}", f"{OLD}/{number}", exact_duplicate_of=f"{NEW}/{number}"
            )
        assert found.pairs == {MANUAL: NEW}
        came(found, frontier, f"{OLD}/more")
        came(found, frontier, f"{NEW}/more", f"{OLD}/more", exactly=False)
        assert refuses(found, f"{MANUAL}/more")

    def test_never_by_duplicates_whose_urls_end_differently(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        for number in range(30):
            came(found, frontier, f"{B}/{number}", f"{A}/{number}/")
            came(found, frontier, f"{B}/x{number}", f"{B}/y{number}")
        assert found.pairs == {}

    def test_never_while_one_page_in_five_is_another(self, tables: Tables) -> None:
        frontier = Frontier({f"{NEW}/{number}" for number in range(99)})
        found = mirrors(tables, frontier)
        for number in range(99):
            came(found, frontier, f"{OLD}/{number}", f"{NEW}/{number}" if number % 5 else None)
        assert found.pairs == {}

    def test_whatever_pages_say_whose_counterpart_brought_none(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        for number in range(5):
            frontier.settled.add(f"{A}/gone-{number}")
            found.failed(f"{A}/gone-{number}")
            came(found, frontier, f"{B}/{number}", f"{A}/{number}")
            came(found, frontier, f"{B}/gone-{number}")
            came(found, frontier, f"{B}/new-{number}")
        assert found.pairs == {B: A}

    def test_by_duplicates_in_either_direction_together(self, tables: Tables) -> None:
        found, frontier = mirrors(tables, Frontier()), Frontier()
        for number in range(5):
            one, other = (B, A) if number % 2 == 0 else (A, B)
            came(found, frontier, f"{one}/{number}", f"{other}/{number}")
        assert found.pairs == {B: A}


class TestWhichIsPreferred:
    @pytest.mark.parametrize("first", ["http:", "https:"])
    def test_of_one_host_https(self, tables: Tables, first: str) -> None:
        second = {"http:": "https:", "https:": "http:"}[first]
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, f"{second}//a.test", f"{first}//a.test")
        assert found.pairs == {"http://a.test": "https://a.test"}

    @pytest.mark.parametrize(("copy", "of"), [(A, A + "/a"), (A + "/a", A)])
    def test_of_two_nested_prefixes_the_shorter(self, tables: Tables, copy: str, of: str) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, copy, of)
        assert found.pairs == {A + "/a": A}

    def test_a_mirrors_mirror_is_one_of_the_preferred(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, B, A)
        copies(found, frontier, C, B)
        assert found.pairs == {B: A, C: A}

    def test_what_is_found_to_be_lesser_takes_its_own_mirrors_along(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, C, B)
        copies(found, frontier, B, A, name="more-")
        assert found.pairs == {B: A, C: A}

    def test_none_is_in_the_end_its_own_mirror(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        for copy, of in ((B, A), (A, C), (C, B), (B, C), (C, A)):
            copies(found, frontier, copy, of, 8)
        assert not set(found.pairs) & set(found.pairs.values())


class TestRefusal:
    @pytest.mark.parametrize(("copy", "of"), [(B, A), (MANUAL, NEW), (OLD, NEW)])
    def test_of_what_the_preferred_prefix_brought_or_will(
        self, tables: Tables, copy: str, of: str
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, copy, of)
        came(found, frontier, of + "/more")
        frontier.waiting.add(of + "/waits")
        frontier.in_flight.add(of + "/asked")
        names = ("more", "waits", "asked", "only-here")
        assert [refuses(found, f"{copy}/{name}") for name in names] == [True, True, True, False]

    def test_of_the_preferred_when_the_lesser_came_first_but_not_when_it_waits(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, B, A)
        came(found, frontier, B + "/first")
        frontier.waiting.add(B + "/waits")
        assert refuses(found, A + "/first")
        assert not refuses(found, A + "/waits")

    def test_not_for_the_sake_of_a_page_that_is_a_duplicate_of_another(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, B, A)
        came(found, frontier, A + "/soft", A + "/0")
        assert not refuses(found, B + "/soft")

    def test_ends_when_the_counterpart_that_waited_fails(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, B, A)
        frontier.waiting.add(A + "/gone")
        assert refuses(found, B + "/gone")
        found.failed(A + "/gone")
        freed = found.take_released()
        assert [link.url for link in freed] == [B + "/gone"]
        assert freed[0].key != link_key(B + "/gone")
        assert freed[0].score == queued(B + "/gone").score
        frontier.waiting.clear()
        frontier.settled.add(A + "/gone")
        assert not found.refuses(freed[0])
        assert found.take_released() == []


def spared(found: MirrorFilter, frontier: Frontier, copy: str, of: str, pages: int) -> list[bool]:
    """Which links under ``copy`` are refused though each has a page under ``of``."""
    answers = []
    for number in range(pages):
        came(found, frontier, f"{of}/spared/{number}")
        answers.append(refuses(found, f"{copy}/spared/{number}"))
    return answers


class TestDoubt:
    def test_pages_are_tried_now_and_then_and_more_seldom_when_all_goes_well(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, OLD, NEW)
        tried = 0
        for number in range(400):
            came(found, frontier, f"{NEW}/more/{number}")
            if not refuses(found, f"{OLD}/more/{number}"):
                came(found, frontier, f"{OLD}/more/{number}", f"{NEW}/more/{number}")
                tried += 1
        assert found.pairs == {OLD: NEW}
        assert 16 + 4 <= tried <= 16 + 5

    def test_two_tries_that_fail_dissolve_a_pair_and_free_all_that_was_refused(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, OLD, NEW)
        refused, seen = set(), 0
        while found.pairs:
            came(found, frontier, f"{NEW}/other/{seen}")
            if refuses(found, f"{OLD}/other/{seen}"):
                refused.add(f"{OLD}/other/{seen}")
            else:
                came(found, frontier, f"{OLD}/other/{seen}")
            seen += 1
            assert seen <= 16
        assert {link.url for link in found.take_released()} == refused

    def test_a_dissolved_pair_needs_four_times_as_many_duplicates(self, tables: Tables) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        copies(found, frontier, OLD, NEW)
        for name in ("x", "y"):
            came(found, frontier, f"{NEW}/{name}")
            came(found, frontier, f"{OLD}/{name}")
        assert found.pairs == {}
        copies(found, frontier, OLD, NEW, 19)
        assert found.pairs == {}
        copies(found, frontier, OLD, NEW, 1)
        assert found.pairs == {OLD: NEW}

    def test_a_site_that_copied_five_pages_and_differs_later_closes_no_other(
        self, tables: Tables
    ) -> None:
        frontier = Frontier()
        found = mirrors(tables, frontier)
        liar, honest = B, A
        copies(found, frontier, honest, liar)
        lost = set()
        for number in range(200):
            came(found, frontier, f"{liar}/page/{number}")
            if refuses(found, f"{honest}/page/{number}"):
                lost.add(f"{honest}/page/{number}")
            else:
                came(found, frontier, f"{honest}/page/{number}")
        assert found.pairs == {}
        assert lost == {link.url for link in found.take_released()}


def test_pairs_candidates_and_refused_links_are_restored_after_a_restart(tables: Tables) -> None:
    frontier = Frontier()
    found = mirrors(tables, frontier)
    copies(found, frontier, B, A)
    copies(found, frontier, C, A, 4)
    frontier.waiting.add(A + "/gone")
    assert refuses(found, B + "/gone")
    again = mirrors(tables, frontier)
    assert again.pairs == {B: A}
    came(again, frontier, C + "/x", A + "/x")
    assert again.pairs == {B: A, C: A}
    again.failed(A + "/gone")
    assert [link.url for link in again.take_released()] == [B + "/gone"]


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    alike=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    fails=st.sampled_from([0.0, 0.3]),
)
def test_what_is_not_fetched_has_a_counterpart_that_was(
    seed: int, alike: float, fails: float
) -> None:
    """Any web of three prefixes, met in any order, with failures and restarts: no URL is lost."""
    rng = random.Random(seed)
    content: dict[str, str | None] = {}
    for number in range(60):
        for prefix in (A, B + "/m", B + "/n"):
            if rng.random() < 0.8:
                text = str(number) if rng.random() < alike else f"{prefix} {number}"
                content[f"{prefix}/{number}"] = None if rng.random() < fails else text
    with TemporaryDirectory() as folder:
        kept = StateStore.open(Path(folder), {"crawl": "test"})
        fetched, refused = crawled(kept.tables, content, rng)
        kept.close()
    assert fetched | refused == set(content)
    own = {url for url in fetched if content[url] is not None}
    for url in refused:
        ends = {ending for _, ending in prefixes_and_suffixes(url)}
        assert any({ending for _, ending in prefixes_and_suffixes(other)} & ends for other in own)


def crawled(
    tables: Tables, content: Mapping[str, str | None], rng: random.Random
) -> tuple[set[str], set[str]]:
    """What is fetched and what is refused when all URLs wait, and are taken in any order."""
    frontier = Frontier(waiting=set(content))
    found = mirrors(tables, frontier)
    line = [queued(url) for url in sorted(content)]
    rng.shuffle(line)
    first: dict[str, str] = {}
    fetched, refused = set(), set()
    while line:
        if rng.random() < 0.1:
            found = mirrors(tables, frontier)
        link = line.pop()
        url, text = link.url, content[link.url]
        frontier.waiting.discard(url)
        if found.refuses(link):
            refused.add(url)
        elif text is None:
            found.failed(url)
            fetched.add(url)
        else:
            of = first.setdefault(text, url)
            of = None if of == url else of
            found.fetched(url, of, exact_duplicate_of=of)
            fetched.add(url)
        frontier.settled.add(url)
        for freed in found.take_released():
            refused.discard(freed.url)
            line.insert(rng.randint(0, len(line)), freed)
    return fetched, refused


def prose(number: int) -> str:
    return " ".join(random.Random(number).choices([f"w{n}" for n in range(999)], k=60))


PAGES, TRIED = 40, 4
LISTING = "http://c.test/"


def mirrored_web(mirror: str = B) -> dict:
    """The same pages under two prefixes, and a listing of all."""
    names = [str(number) for number in range(PAGES)]
    return site(
        page(LISTING, *(f"{prefix}/{name}" for name in names for prefix in (A, mirror))),
        *(
            page(f"{prefix}/{name}", *names, text=prose(int(name)), title=f"Page {name}")
            for prefix in (A, mirror)
            for name in names
        ),
    )


class TestInACrawl:
    def test_a_mirror_costs_a_handful_of_pages(self, simulate, tmp_path):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(A) for url in done.urls) == PAGES
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_links_that_waited_when_the_mirror_was_found_are_counted_without_a_row(
        self, simulate, tmp_path
    ):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.counters.failures == {"mirror": PAGES - 5 - TRIED}
        assert all(row["failure"] == "" for row in done.rows.values())

    def test_a_restarted_crawl_knows_its_mirrors(self, simulate, tmp_path):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run(pages=46)
        assert done.crawl.mirrors == {B: A}
        done.restart().run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_a_renamed_manual_is_fetched_once(self, simulate, tmp_path):
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(B + "/en/3.1"), policy="bfs").run()
        assert done.crawl.mirrors == {B + "/en/3.1": A}
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_what_only_the_mirror_has_left_is_fetched_there(self, simulate, tmp_path):
        gone = {f"{A}/{number}" for number in range(20, 30)}
        web = mirrored_web() | {url: failed(url, FailureKind.CLIENT_ERROR) for url in gone}
        mine = politely(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, web, policy="focused").run()
        assert done.crawl.mirrors == {B: A}
        assert {url.replace(A, B) for url in gone} <= set(done.urls)
