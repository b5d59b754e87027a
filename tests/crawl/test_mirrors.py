"""Mirrors: how pairs are found, which links are skipped, and that none is lost."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.crawl.dedup import mirrors as mirrors_module
from focused.crawl.dedup.mirrors import MirrorFilter
from focused.frontier.disk_frontier import Known
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.web.page import FailureKind
from focused.web.url_patterns import prefixes_and_suffixes
from focused.web.urls import host_of
from tests.support.examples import examples
from tests.support.simulated import failed, page, site, topic, with_politeness

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


class CrawledPrefixes:
    """Pages that come from under several prefixes, and what a mirror filter learns from them."""

    def __init__(self, tables: Tables) -> None:
        self.frontier = Frontier()
        self.filter = mirrors(tables, self.frontier)

    @property
    def pairs(self) -> Mapping[str, str]:
        return self.filter.pairs

    def copies(
        self, copy: str, of: str, count: int = 5, *, exactly: bool = True, name: str = ""
    ) -> None:
        """So many pages come from under both prefixes; the first prefix's repeat the second's."""
        for number in range(count):
            if f"{of}/{name}{number}" not in self.frontier.settled:
                self.came(f"{of}/{name}{number}")
            self.came(f"{copy}/{name}{number}", f"{of}/{name}{number}", exactly=exactly)

    def came(self, url: str, of: str | None = None, *, exactly: bool = True) -> None:
        self.filter.fetched(url, of, exact_duplicate_of=of if exactly else None)
        self.frontier.settled.add(url)

    def refuses(self, url: str) -> bool:
        return self.filter.refuses(queued(url))


@pytest.fixture
def crawl(tables: Tables) -> CrawledPrefixes:
    return CrawledPrefixes(tables)


class TestPairsAreFound:
    @pytest.mark.parametrize(("copy", "of"), [(B, A), (MANUAL, NEW), (OLD, NEW), (A + "/m", B)])
    def test_by_five_exact_duplicates_whose_urls_end_equal(self, crawl, copy, of):
        crawl.copies(copy, of, 4)
        assert crawl.pairs == {}
        crawl.came(copy + "/4?q=1", of + "/4?q=1")
        assert crawl.pairs == {copy: of}

    def test_by_five_near_duplicates_at_the_same_path_of_two_sites(self, crawl):
        crawl.copies(B, A, 5, exactly=False)
        assert crawl.pairs == {B: A}

    @pytest.mark.parametrize("copy", [OLD, MANUAL])
    def test_by_twenty_near_duplicates_under_different_prefixes(self, crawl, copy):
        crawl.copies(copy, NEW, 19, exactly=False)
        assert crawl.pairs == {}
        crawl.came(copy + "/x", NEW + "/x", exactly=False)
        assert crawl.pairs == {copy: NEW}

    def test_by_duplicates_of_pages_that_are_near_an_older_version_themselves(self, crawl):
        for number in range(5):
            crawl.came(f"{OLD}/{number}")
            crawl.came(f"{NEW}/{number}", f"{OLD}/{number}", exactly=False)
            crawl.filter.fetched(
                f"{MANUAL}/{number}", f"{OLD}/{number}", exact_duplicate_of=f"{NEW}/{number}"
            )
        assert crawl.pairs == {MANUAL: NEW}
        crawl.came(f"{OLD}/more")
        crawl.came(f"{NEW}/more", f"{OLD}/more", exactly=False)
        assert crawl.refuses(f"{MANUAL}/more")

    def test_never_by_duplicates_whose_urls_end_differently(self, crawl):
        for number in range(30):
            crawl.came(f"{B}/{number}", f"{A}/{number}/")
            crawl.came(f"{B}/x{number}", f"{B}/y{number}")
        assert crawl.pairs == {}

    def test_never_while_one_page_in_five_is_another(self, crawl):
        crawl.frontier.settled.update(f"{NEW}/{number}" for number in range(99))
        for number in range(99):
            crawl.came(f"{OLD}/{number}", f"{NEW}/{number}" if number % 5 else None)
            assert crawl.pairs == {}

    def test_whatever_pages_say_whose_counterpart_brought_none(self, crawl):
        for number in range(5):
            crawl.frontier.settled.add(f"{A}/gone-{number}")
            crawl.filter.failed(f"{A}/gone-{number}")
            crawl.came(f"{B}/{number}", f"{A}/{number}")
            crawl.came(f"{B}/gone-{number}")
            crawl.came(f"{B}/new-{number}")
        assert crawl.pairs == {B: A}

    def test_by_duplicates_in_either_direction_together(self, crawl):
        for number in range(5):
            one, other = (B, A) if number % 2 == 0 else (A, B)
            crawl.came(f"{one}/{number}", f"{other}/{number}")
        assert crawl.pairs == {B: A}


class TestWhichIsPreferred:
    @pytest.mark.parametrize("first", ["http:", "https:"])
    def test_of_one_host_https(self, crawl, first):
        second = {"http:": "https:", "https:": "http:"}[first]
        crawl.copies(f"{second}//a.test", f"{first}//a.test")
        assert crawl.pairs == {"http://a.test": "https://a.test"}

    @pytest.mark.parametrize(("copy", "of"), [(A, A + "/a"), (A + "/a", A)])
    def test_of_two_nested_prefixes_the_shorter(self, crawl, copy, of):
        crawl.copies(copy, of)
        assert crawl.pairs == {A + "/a": A}

    def test_a_mirrors_mirror_is_one_of_the_preferred(self, crawl):
        crawl.copies(B, A)
        crawl.copies(C, B)
        assert crawl.pairs == {B: A, C: A}

    def test_what_is_found_to_be_lesser_takes_its_own_mirrors_along(self, crawl):
        crawl.copies(C, B)
        crawl.copies(B, A, name="more-")
        assert crawl.pairs == {B: A, C: A}

    def test_none_is_in_the_end_its_own_mirror(self, crawl):
        for copy, of in ((B, A), (A, C), (C, B), (B, C), (C, A)):
            crawl.copies(copy, of, 8)
        assert not set(crawl.pairs) & set(crawl.pairs.values())


class TestRefusal:
    @pytest.mark.parametrize(("copy", "of"), [(B, A), (MANUAL, NEW), (OLD, NEW)])
    def test_of_what_the_preferred_prefix_brought_or_will(self, crawl, copy, of):
        crawl.copies(copy, of)
        crawl.came(of + "/more")
        crawl.frontier.waiting.add(of + "/waits")
        crawl.frontier.in_flight.add(of + "/asked")
        names = ("more", "waits", "asked", "only-here")
        assert [crawl.refuses(f"{copy}/{name}") for name in names] == [True, True, True, False]

    def test_of_the_preferred_when_the_lesser_came_first_but_not_when_it_waits(self, crawl):
        crawl.copies(B, A)
        crawl.came(B + "/first")
        crawl.frontier.waiting.add(B + "/waits")
        assert crawl.refuses(A + "/first")
        assert not crawl.refuses(A + "/waits")

    def test_not_for_the_sake_of_a_page_that_is_a_duplicate_of_another(self, crawl):
        crawl.copies(B, A)
        crawl.came(A + "/soft", A + "/0")
        assert not crawl.refuses(B + "/soft")

    def test_ends_when_the_counterpart_that_waited_fails(self, crawl):
        crawl.copies(B, A)
        crawl.frontier.waiting.add(A + "/gone")
        assert crawl.refuses(B + "/gone")
        crawl.filter.failed(A + "/gone")
        freed = crawl.filter.take_released()
        assert [link.url for link in freed] == [B + "/gone"]
        assert freed[0].key != link_key(B + "/gone")
        assert freed[0].score == queued(B + "/gone").score
        crawl.frontier.waiting.clear()
        crawl.frontier.settled.add(A + "/gone")
        assert not crawl.filter.refuses(freed[0])
        assert crawl.filter.take_released() == []


class TestDoubt:
    def test_pages_are_tried_now_and_then_and_more_seldom_when_all_goes_well(self, crawl):
        crawl.copies(OLD, NEW)
        tried = 0
        for number in range(400):
            crawl.came(f"{NEW}/more/{number}")
            if not crawl.refuses(f"{OLD}/more/{number}"):
                crawl.came(f"{OLD}/more/{number}", f"{NEW}/more/{number}")
                tried += 1
        assert crawl.pairs == {OLD: NEW}
        assert 16 + 4 <= tried <= 16 + 5

    def test_two_tries_that_fail_dissolve_a_pair_and_free_all_that_was_refused(self, crawl):
        crawl.copies(OLD, NEW)
        refused, seen = set(), 0
        while crawl.pairs:
            crawl.came(f"{NEW}/other/{seen}")
            if crawl.refuses(f"{OLD}/other/{seen}"):
                refused.add(f"{OLD}/other/{seen}")
            else:
                crawl.came(f"{OLD}/other/{seen}")
            seen += 1
            assert seen <= 16
        assert {link.url for link in crawl.filter.take_released()} == refused

    def test_a_dissolved_pair_needs_four_times_as_many_duplicates(self, crawl):
        crawl.copies(OLD, NEW)
        for name in ("x", "y"):
            crawl.came(f"{NEW}/{name}")
            crawl.came(f"{OLD}/{name}")
        assert crawl.pairs == {}
        crawl.copies(OLD, NEW, 19)
        assert crawl.pairs == {}
        crawl.copies(OLD, NEW, 1)
        assert crawl.pairs == {OLD: NEW}

    def test_a_site_that_copied_five_pages_and_differs_later_closes_no_other(self, crawl):
        liar, honest = B, A
        crawl.copies(honest, liar)
        lost = set()
        for number in range(200):
            crawl.came(f"{liar}/page/{number}")
            if crawl.refuses(f"{honest}/page/{number}"):
                lost.add(f"{honest}/page/{number}")
            else:
                crawl.came(f"{honest}/page/{number}")
        assert crawl.pairs == {}
        assert lost == {link.url for link in crawl.filter.take_released()}


def test_pairs_candidates_and_refused_links_are_restored_after_a_restart(tables, crawl):
    crawl.copies(B, A)
    crawl.copies(C, A, 4)
    crawl.frontier.waiting.add(A + "/gone")
    assert crawl.refuses(B + "/gone")
    again = mirrors(tables, crawl.frontier)
    assert again.pairs == {B: A}
    again.fetched(C + "/x", A + "/x", exact_duplicate_of=A + "/x")
    assert again.pairs == {B: A, C: A}
    again.failed(A + "/gone")
    assert [link.url for link in again.take_released()] == [B + "/gone"]


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    alike=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    fails=st.sampled_from([0.0, 0.3]),
)
def test_what_is_not_fetched_has_a_counterpart_that_was(seed, alike, fails):
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
        mine = with_politeness(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(A) for url in done.urls) == PAGES
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_links_that_waited_when_the_mirror_was_found_are_counted_without_a_row(
        self, simulate, tmp_path
    ):
        mine = with_politeness(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run()
        assert done.crawl.counters.failures == {"mirror": PAGES - 5 - TRIED}
        assert all(row["failure"] == "" for row in done.rows.values())

    def test_a_restarted_crawl_knows_its_mirrors(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(), policy="bfs").run(pages=46)
        assert done.crawl.mirrors == {B: A}
        done.restart().run()
        assert done.crawl.mirrors == {B: A}
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_a_renamed_manual_is_fetched_once(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, mirrored_web(B + "/en/3.1"), policy="bfs").run()
        assert done.crawl.mirrors == {B + "/en/3.1": A}
        assert sum(url.startswith(B) for url in done.urls) == 5 + TRIED

    def test_what_only_the_mirror_has_left_is_fetched_there(self, simulate, tmp_path):
        gone = {f"{A}/{number}" for number in range(20, 30)}
        web = mirrored_web() | {url: failed(url, FailureKind.CLIENT_ERROR) for url in gone}
        mine = with_politeness(topic(tmp_path, A + "/0", LISTING), delay_s=0.0)
        done = simulate(mine, web, policy="focused").run()
        assert done.crawl.mirrors == {B: A}
        assert {url.replace(A, B) for url in gone} <= set(done.urls)


class TestBounds:
    def test_a_link_that_cannot_be_kept_is_not_skipped_for_one_that_waits(self, crawl, monkeypatch):
        monkeypatch.setattr(mirrors_module, "MAX_SKIPPED_LINKS", 2)
        crawl.copies(B, A)
        crawl.frontier.waiting = {f"{A}/w{number}" for number in range(3)}
        assert [crawl.refuses(f"{B}/w{number}") for number in range(3)] == [True, True, False]

    def test_a_link_that_is_released_makes_room_for_another(self, crawl, monkeypatch):
        monkeypatch.setattr(mirrors_module, "MAX_SKIPPED_LINKS", 1)
        crawl.copies(B, A)
        crawl.frontier.waiting = {f"{A}/w0", f"{A}/w1"}
        assert crawl.refuses(f"{B}/w0")
        crawl.filter.failed(f"{A}/w0")
        assert [link.url for link in crawl.filter.take_released()] == [f"{B}/w0"]
        assert crawl.refuses(f"{B}/w1")

    def test_beyond_the_most_pairs_none_is_added(self, crawl, monkeypatch):
        monkeypatch.setattr(mirrors_module, "MAX_PAIRS", 1)
        crawl.copies(B, A)
        crawl.copies(C, "http://d.test", 10)
        assert crawl.pairs == {B: A}
