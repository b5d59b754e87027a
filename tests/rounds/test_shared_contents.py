"""Contents known across partitions, after a round for each page."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateKind, DuplicateMatch
from focused.crawl.page_parser import MAX_SHINGLES, ParsedPage
from focused.rounds.shared_contents import RoundContents
from focused.storage.state_store import StateStore
from focused.text.content_signatures import content_fingerprint
from focused.text.shingles import shingles
from focused.web.page import Classification, Outcome, Page
from tests.rounds.partitions import DrivenPartition, partition_of_host, send_claims
from tests.support.simulated import page as answer
from tests.support.simulated import site
from tests.support.whale_models import WhaleScorer

WORDS = [f"word{number}" for number in range(5_000)]
TEXT = " ".join(random.Random(1).choices(WORDS, k=800))
OTHER_TEXT = " ".join(random.Random(2).choices(WORDS, k=800))


class Owner:
    """A partition's detector with its own tables; each page is a round of its own."""

    def __init__(self, folder: Path, number: int, others: list[Owner], *, near: bool = True):
        self.state = StateStore.open(folder, {"partition": str(number)})
        self.contents = RoundContents(self.state.tables, number, partition_of_host(3))
        self.detector = DuplicateDetector(self.state.tables, near=near, shared=self.contents)
        self.others = others

    def meets(self, page: Page, *, on_topic: bool = True, is_kept: bool = True) -> DuplicateMatch:
        classification = Classification(0.9 if on_topic else 0.1, on_topic)
        parsed = ParsedPage(
            page, classification, "", content_fingerprint(page), shingles(page.text)[:MAX_SHINGLES]
        )
        match = self.detector.find_duplicate(parsed, is_kept=is_kept)
        if is_kept:
            self.detector.keep(page, match)
        claims = send_claims(self.contents)
        for other in self.others:
            if other is not self:
                other.contents.deliver(claims)
        self.claimed = len(claims)
        return match


@pytest.fixture
def new_owners(tmp_path: Path) -> Iterator[Callable[..., list[Owner]]]:
    opened: list[Owner] = []

    def begin(count: int, **options: Any) -> list[Owner]:
        opened.extend(
            Owner(tmp_path / str(number), number, opened, **options) for number in range(count)
        )
        return opened

    yield begin
    for each in opened:
        each.state.close()


@pytest.fixture
def owners(new_owners: Callable[..., list[Owner]]) -> list[Owner]:
    """Three partitions: a, b and c."""
    return new_owners(3)


def of_text(host: str, text: str = TEXT, path: str = "") -> Page:
    return Page(f"http://{host}.test/{path}", title="Whales", text=text)


# Exact duplicates


def test_a_page_that_another_partition_has_is_its_duplicate(owners):
    a, b, _ = owners
    assert a.meets(of_text("a")).of is None
    match = b.meets(of_text("b"))
    assert (match.of, match.kind) == ("http://a.test/", DuplicateKind.EXACT)
    assert match.exact_duplicate_of == "http://a.test/"


def test_other_content_is_new(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    assert b.meets(of_text("b", OTHER_TEXT)).of is None


def test_a_partition_claims_no_page_that_is_its_own_duplicate(owners):
    a, _, _ = owners
    a.meets(of_text("a"))
    assert a.meets(of_text("a", path="again")).of == "http://a.test/"
    assert a.claimed == 0


def test_a_copy_of_a_duplicate_is_found_in_its_own_partition(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    b.meets(of_text("b"))
    match = b.meets(of_text("b", path="again"))
    assert (match.of, match.exact_duplicate_of) == ("http://a.test/", "http://b.test/")


def test_pages_off_topic_claim_nothing(owners):
    a, b, _ = owners
    a.meets(of_text("a"), on_topic=False)
    assert b.meets(of_text("b")).of is None
    assert a.claimed == 0


def test_a_page_that_is_left_out_claims_nothing(owners):
    a, b, _ = owners
    a.meets(of_text("a"), is_kept=False)
    assert b.meets(of_text("b")).of is None


# Near-duplicates


def changed(words: int) -> str:
    return " ".join([*TEXT.split()[words:], *OTHER_TEXT.split()[:words]])


def test_a_page_with_a_few_other_words_is_a_near_duplicate(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    a.meets(of_text("a", OTHER_TEXT + " and more", path="other"))
    match = b.meets(of_text("b", f"{TEXT} seen today"))
    assert (match.of, match.kind) == ("http://a.test/", DuplicateKind.NEAR)
    assert match.exact_duplicate_of is None


def test_a_page_of_which_half_is_new_is_another_page(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    assert b.meets(of_text("b", changed(400))).of is None


def test_a_near_duplicate_is_no_original(owners):
    """Else copies of copies would be named, each a little less like the first."""
    a, b, c = owners
    a.meets(of_text("a"))
    b.meets(of_text("b", changed(20)))
    assert c.meets(of_text("c", changed(30))).of == "http://a.test/"
    assert not a.contents.is_original("http://b.test/")


def test_most_pairs_above_the_threshold_are_found(owners):
    a, b, _ = owners
    found = 0
    for seed in range(60):
        words = random.Random(seed).choices(WORDS, k=500)
        a.meets(of_text("a", " ".join(words), f"{seed}"))
        words[100] = words[400] = "changed"
        found += b.meets(of_text("b", " ".join(words), f"{seed}")).of is not None
    assert found >= 57


def test_short_pages_are_never_near_duplicates(owners):
    a, b, _ = owners
    a.meets(of_text("a", "a whale in the sea"))
    assert b.meets(of_text("b", "a whale in the sea today")).of is None


def test_pages_of_one_host_are_left_to_its_partition(owners):
    """They look alike until the boilerplate of their host is known."""
    a, b, _ = owners
    a.meets(of_text("a"))
    assert b.meets(of_text("a", f"{TEXT} seen today", "other")).of is None


def test_without_near_duplicates_only_exact_ones_are_detected(new_owners):
    a, b = new_owners(2, near=False)
    a.meets(of_text("a"))
    assert b.meets(of_text("b", f"{TEXT} seen today")).of is None
    assert b.meets(of_text("b", path="same")).of == "http://a.test/"


def test_a_page_without_its_hosts_boilerplate_is_a_near_duplicate(owners):
    a, b, _ = owners
    template = " ".join(random.Random(3).choices(WORDS, k=1_000))
    a.meets(of_text("a"))
    for number in range(12):
        own = " ".join(random.Random(100 + number).choices(WORDS, k=60))
        b.meets(of_text("b", f"{template} {own}", f"{number}"))
    assert b.meets(of_text("b", f"{template} {TEXT}", "copy")).of == "http://a.test/"


# Originals by URL


def test_an_original_of_another_partition_is_known_by_its_url(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    b.meets(of_text("b", OTHER_TEXT))
    assert b.contents.is_original("http://a.test/")
    assert not b.contents.is_original("http://a.test/other")


def test_a_duplicate_is_no_original(owners):
    a, b, c = owners
    a.meets(of_text("a"))
    b.meets(of_text("b"))
    c.meets(of_text("c", OTHER_TEXT))
    assert not c.contents.is_original("http://b.test/")


def test_a_partition_knows_its_own_pages_by_itself(owners):
    a, _, _ = owners
    a.meets(of_text("a"))
    assert not a.contents.is_original("http://a.test/")


# In a crawl


def mirrored(count: int) -> dict[str, Outcome]:
    """Two hosts with the same pages on topic, which the seeds list."""
    answers = []
    for host in "ab":
        home = f"http://{host}.test/"
        links = [f"{home}{number}" for number in range(count)]
        answers.append(answer(home, *links, text=f"whales of {host}", title=f"home {host}"))
        answers += [
            answer(link, text=f"whale number {number}", title="whale")
            for number, link in enumerate(links)
        ]
    return site(*answers)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[DrivenPartition]]:
    """The partitions of hosts a and b."""
    partitions = [DrivenPartition(tmp_path, n, 2, WhaleScorer()) for n in range(2)]
    yield partitions
    for each in partitions:
        each.close()


def test_a_partition_skips_what_another_has_once_it_knows_the_mirror(pair):
    web, (a, b) = mirrored(40), pair
    a.seed("http://a.test/")
    a.run(web)
    b.contents.deliver(send_claims(a.contents))
    b.seed("http://b.test/")
    b.run(web)
    assert len(a.urls) == 41
    assert b.crawl.mirrors == {"http://b.test": "http://a.test"}
    assert len(b.urls) < 20
    assert b.crawl.counters.duplicates == len(b.urls) - 1


def test_a_page_that_the_other_partition_has_not_fetched_is_never_skipped(pair):
    web, (a, b) = mirrored(40), pair
    missing = [f"http://a.test/{number}" for number in range(30, 40)]
    a.seed("http://a.test/")
    a.run({url: outcome for url, outcome in web.items() if url not in missing})
    b.contents.deliver(send_claims(a.contents))
    b.seed("http://b.test/")
    b.run(web)
    assert {url.replace("a.test", "b.test") for url in missing} <= set(b.urls)
