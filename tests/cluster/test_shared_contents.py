"""Contents known across partitions, in memory and in Redis."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_connection import RedisConnection
from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.shared_contents import ContentRegistry, ContentStore, MemoryContentStore
from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateKind, DuplicateMatch
from focused.crawl.page_parser import MAX_SHINGLES, ParsedPage
from focused.errors import ExchangeError
from focused.storage.state_store import StateStore
from focused.text.content_signatures import shingles
from focused.web.content_hash import content_fingerprint
from focused.web.page import Classification, Outcome, Page
from tests.support.engines import Engine, RedisEngine, needs_redis
from tests.support.keyword_guide import WhaleScorer
from tests.support.partitions import DrivenPartition, partition_of_host
from tests.support.simulated import page as answer
from tests.support.simulated import site

NewStore = Callable[[], ContentStore]
WORDS = [f"word{number}" for number in range(5_000)]
TEXT = " ".join(random.Random(1).choices(WORDS, k=800))
OTHER_TEXT = " ".join(random.Random(2).choices(WORDS, k=800))


@pytest.fixture
def new_store(engine: Engine) -> NewStore:
    """Returns the store that another worker has of the same crawl."""
    return engine.contents


@dataclass
class Owner:
    """A partition's detector, with the tables of its own."""

    detector: DuplicateDetector
    registry: ContentRegistry

    def meets(self, page: Page, *, on_topic: bool = True, is_kept: bool = True) -> DuplicateMatch:
        classification = Classification(0.9 if on_topic else 0.1, on_topic)
        parsed = ParsedPage(
            page,
            classification,
            "",
            content_fingerprint(page),
            shingles(page.text)[:MAX_SHINGLES],
        )
        match = self.detector.find_duplicate(parsed, is_kept=is_kept)
        if is_kept:
            self.detector.keep(page, match)
        return match


@pytest.fixture
def new_owner(tmp_path: Path) -> Iterator[Callable[..., Owner]]:
    opened: list[StateStore] = []

    def begin(store: ContentStore, number: int = 0, **options: Any) -> Owner:
        state = StateStore.open(tmp_path / str(len(opened)), {"partition": str(number)})
        opened.append(state)
        registry = ContentRegistry(store, number, partition_of_host(3))
        options = {"near": True, "shared": registry, **options}
        return Owner(DuplicateDetector(state.tables, **options), registry)

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def owners(new_store: NewStore, new_owner: Callable[..., Owner]) -> list[Owner]:
    """Three partitions: a, b and c."""
    return [new_owner(new_store(), number) for number in range(3)]


def of_text(host: str, text: str = TEXT, path: str = "") -> Page:
    return Page(f"http://{host}.test/{path}", title="Whales", text=text)


# Exact duplicates


def test_a_page_that_another_partition_has_is_its_duplicate(owners):
    a, b, _ = owners
    assert a.meets(of_text("a")).of is None
    match = b.meets(of_text("b"))
    assert (match.of, match.kind) == ("http://a.test/", DuplicateKind.EXACT)
    assert match.exact_duplicate_of == "http://a.test/"
    assert b.registry.counts.duplicates == 1


def test_other_content_is_new(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    assert b.meets(of_text("b", OTHER_TEXT)).of is None


def test_a_page_that_is_fetched_again_after_a_takeover_is_no_duplicate(
    new_store: NewStore, new_owner: Callable[..., Owner]
):
    before, successor = new_owner(new_store(), 0), new_owner(new_store(), 0)
    before.meets(of_text("a"))
    assert successor.meets(of_text("a")).of is None


def test_a_partition_asks_for_no_page_that_is_its_own_duplicate(owners):
    a, _, _ = owners
    a.meets(of_text("a"))
    assert a.meets(of_text("a", path="again")).of == "http://a.test/"
    assert a.registry.counts.claims == 1


def test_a_copy_of_a_duplicate_is_found_without_asking(owners):
    a, b, _ = owners
    a.meets(of_text("a"))
    b.meets(of_text("b"))
    match = b.meets(of_text("b", path="again"))
    assert (match.of, match.exact_duplicate_of) == ("http://a.test/", "http://b.test/")
    assert b.registry.counts.claims == 1


def test_pages_off_topic_claim_nothing(owners):
    a, b, _ = owners
    a.meets(of_text("a"), on_topic=False)
    assert b.meets(of_text("b")).of is None
    assert a.registry.counts.claims == 0


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
    assert b.registry.counts.near_duplicates == 1


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
    assert not a.registry.is_original("http://b.test/")


def test_most_pairs_above_the_threshold_are_found(new_store, new_owner):
    store = new_store()
    a, b = new_owner(store, 0), new_owner(store, 1)
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


def test_without_near_duplicates_only_exact_ones_are_detected(new_store, new_owner):
    a, b = (new_owner(new_store(), number, near=False) for number in range(2))
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
    assert b.registry.is_original("http://a.test/")
    assert not b.registry.is_original("http://a.test/other")


def test_a_duplicate_is_no_original(owners):
    a, b, c = owners
    a.meets(of_text("a"))
    b.meets(of_text("b"))
    c.meets(of_text("c", OTHER_TEXT))
    assert not c.registry.is_original("http://b.test/")


def test_a_partition_knows_its_own_pages_by_itself(owners):
    a, _, _ = owners
    a.meets(of_text("a"))
    assert not a.registry.is_original("http://a.test/")


# Failures


class Unreachable(MemoryContentStore):
    asked = 0
    is_down = True

    def claim(self, *args):
        self.asked += 1
        if self.is_down:
            raise ExchangeError("Redis: connection refused")
        return super().claim(*args)

    def has_url(self, url_key):
        self.asked += 1
        raise ExchangeError("Redis: connection refused")


def test_while_the_store_is_unreachable_no_duplicate_is_known(new_owner, caplog):
    a = new_owner(Unreachable())
    for number in range(20):
        text = " ".join(random.Random(number).choices(WORDS, k=100))
        assert a.meets(of_text("a", text, str(number))).of is None
    assert a.registry.counts.unanswered == a.registry.counts.claims > 0
    assert "duplicates of other partitions are not detected" in caplog.text


def test_an_unreachable_store_is_asked_more_and_more_rarely(new_owner):
    """Each question waits for a timeout, and the crawl waits with it."""
    store = Unreachable()
    registry = ContentRegistry(store, 0, partition_of_host(3))
    for number in range(1_000):
        registry.claim(bytes(15) + bytes([number % 256]), f"http://a.test/{number}", None)
    assert store.asked < 15


def test_duplicates_are_detected_again_when_the_store_is_back():
    store = Unreachable()
    registry = ContentRegistry(store, 0, partition_of_host(3))
    registry.claim(b"one", "http://a.test/1", None)
    store.is_down = False
    for number in range(3):
        registry.claim(b"same", f"http://{number}.test/", None)
    assert registry.counts.unanswered == 2
    assert registry.counts.duplicates == 1


def test_an_unreachable_store_has_no_urls():
    assert not ContentRegistry(Unreachable(), 0, partition_of_host(3)).is_original("http://b.test/")


@needs_redis
def test_a_redis_that_was_killed_makes_no_error(tmp_path: Path):
    with LocalRedis(tmp_path) as servers:
        engine = RedisEngine(servers)
        registry = ContentRegistry(engine.contents(), 0, partition_of_host(3))
        registry.claim(b"one", "http://a.test/", None)
        servers.kill_master()
        assert registry.claim(b"one", "http://b.test/", None) is None
        engine.close()
    assert registry.counts.unanswered == 1


@given(st.binary(max_size=60), st.lists(st.binary(max_size=8), max_size=4))
def test_no_content_of_the_store_makes_an_error(record, similar):
    class Hostile(MemoryContentStore):
        def claim(self, *args):
            return replace(super().claim(*args), record=record, similar=similar)

        def records(self, keys):
            return [record for _ in keys]

    ContentRegistry(Hostile(), 0, partition_of_host(3)).claim(b"key", "http://a.test/", None)


# In Redis


def test_all_that_a_crawl_leaves_in_redis_expires(redis_engine: RedisEngine, new_owner):
    a = new_owner(redis_engine.contents())
    a.meets(of_text("a"))
    a.meets(of_text("a", OTHER_TEXT, "other"))
    connection = redis_engine.connect()
    keys = redis_engine.all_keys()
    assert len(keys) >= 4
    assert all(0 < connection.execute("TTL", key) <= 30 * 86_400 for key in keys)


def test_a_key_of_another_type_is_deleted(redis_engine: RedisEngine, caplog):
    store, connection = redis_engine.contents(), redis_engine.connect()
    registry = ContentRegistry(store, 0, partition_of_host(3))
    registry.claim(b"one", "http://a.test/", None)
    found = redis_engine.all_keys()
    for key in found:
        connection.execute("DEL", key)
        connection.execute("LPUSH", key, "hostile")
    assert registry.claim(b"one", "http://b.test/", None) is None
    assert registry.counts.unanswered == 0
    assert "which no crawl writes: deleted" in caplog.text


@needs_redis
def test_a_new_page_takes_one_round_trip(single_redis: LocalRedis, new_owner, monkeypatch):
    engine = RedisEngine(single_redis)
    a = new_owner(engine.contents())
    round_trips = []
    execute_many = RedisConnection.execute_many

    def counted(connection, commands):
        round_trips.append(len(commands))
        return execute_many(connection, commands)

    monkeypatch.setattr(RedisConnection, "execute_many", counted)
    monkeypatch.delattr(RedisConnection, "execute")
    for seed in range(20):
        a.meets(of_text("a", " ".join(random.Random(seed).choices(WORDS, k=800)), str(seed)))
    assert len(round_trips) == 20
    engine.close()


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


def test_a_partition_skips_what_another_has_once_it_knows_the_mirror(tmp_path, new_store):
    web = mirrored(40)
    a, b = (
        DrivenPartition(
            tmp_path,
            number,
            2,
            WhaleScorer(),
            contents=new_store(),
        )
        for number in range(2)
    )
    for each in (a, b):
        each.seed("http://a.test/", "http://b.test/")
        each.run(web)
    assert len(a.urls) == 41
    assert b.crawl.mirrors == {"http://b.test": "http://a.test"}
    assert len(b.urls) < 20
    assert b.crawl.counters.duplicates == len(b.urls) - 1
    for each in (a, b):
        each.close()


def test_a_page_that_the_other_partition_has_not_fetched_is_never_skipped(tmp_path, new_store):
    web = mirrored(40)
    missing = [f"http://a.test/{number}" for number in range(30, 40)]
    at_a = {url: outcome for url, outcome in web.items() if url not in missing}
    a, b = (
        DrivenPartition(
            tmp_path,
            number,
            2,
            WhaleScorer(),
            contents=new_store(),
        )
        for number in range(2)
    )
    a.seed("http://a.test/")
    a.run(at_a)
    b.seed("http://b.test/")
    b.run(web)
    assert {url.replace("a.test", "b.test") for url in missing} <= set(b.urls)
    for each in (a, b):
        each.close()
