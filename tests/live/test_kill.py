"""Repeated ``kill -9``: no harvest is lost, nothing settled is requested again."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from focused.web.warc_reader import WarcResponse, read_responses
from focused_lab.recorded_web.replay_server import AccessLogEntry
from tests.live.killing import DELAY_S, Left, Moment, Session, Survivor, url_of
from tests.live.webs import (
    MOTLEY_SEEDS,
    UNHURRIED,
    UNHURRIED_DELAY_S,
    UNHURRIED_PAGES,
    motley_urls,
    motley_web,
)

IN_PEACE = -1
AT_ONCE = 3
CLOCKS_DIFFER_S = 0.02
ON_ITS_WAY_S = 0.9  # a request's, at most, from its lease to the server
LAST_PAGE = f"http://{UNHURRIED}/{UNHURRIED_PAGES - 1}"


@dataclass(frozen=True)
class Storm:
    """So many crawls, killed so many times in all."""

    crawls: int
    kills: int


FEW = Storm(crawls=1, kills=12)
MANY = Storm(crawls=4, kills=50)


def moments_of(storm: Storm, crawl: int, rng: random.Random) -> list[Moment]:
    """The moments at which the crawl is killed: all kinds, each crawl in an order of its own."""
    kills = storm.kills // storm.crawls + (crawl < storm.kills % storm.crawls)
    first, last = [Moment.MAKING_ITS_FOLDER, Moment.BEGINNING], [Moment.ENDING] * 3
    between = [Moment.STARTING] * 2 + [Moment.BEGINNING]
    between += [Moment.CRAWLING] * (kills - len(first) - len(between) - len(last))
    rng.shuffle(between)
    return [*first, *between, *last]


@dataclass(frozen=True)
class Crawls:
    storm: Storm
    killed: list[Survivor]
    in_peace: Survivor


@pytest.fixture(scope="module")
def crawls_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Storm], Crawls]:
    """The crawls of a storm, which is made once."""

    @cache
    def crawls_of(storm: Storm) -> Crawls:
        def crawl(number: int) -> Survivor:
            rng = random.Random(50 + number)
            moments = [] if number == IN_PEACE else moments_of(storm, number, rng)
            return Survivor(tmp_path_factory.mktemp("crawl"), moments, rng)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            in_peace, *killed = pool.map(crawl, [IN_PEACE, *range(storm.crawls)])
        return Crawls(storm, killed, in_peace)

    return crawls_of


def survivors(storm: Storm, *marks: pytest.MarkDecorator) -> list[Any]:
    return [
        pytest.param((storm, number), id=f"{storm.kills}-{number}", marks=marks)
        for number in range(storm.crawls)
    ]


@pytest.fixture(params=[*survivors(FEW), *survivors(MANY, pytest.mark.long)])
def which(request: pytest.FixtureRequest) -> tuple[Storm, int]:
    """A storm, and the number of one of its crawls."""
    return request.param


@pytest.fixture
def crawls(which: tuple[Storm, int], crawls_of: Callable[[Storm], Crawls]) -> Crawls:
    return crawls_of(which[0])


@pytest.fixture
def survivor(which: tuple[Storm, int], crawls: Crawls) -> Survivor:
    return crawls.killed[which[1]]


def pages_of(survivor: Survivor) -> dict[str, tuple[Any, ...]]:
    """What became of each URL, but for when, in which order and from where it was found."""
    columns = ["outcome", "status", "failure", "title", "relevance", "on_topic", "bytes"]
    pages = survivor.end.pages.astype(object)
    pages = pages.where(pages.notna(), None)
    return {url: tuple(row) for url, row in zip(pages.index, pages[columns].values, strict=True)}


def links_of(survivor: Survivor) -> Counter[tuple[str, str, str]]:
    links = pd.read_parquet(survivor.end.folder / "links.parquet")
    return Counter(zip(links["source"], links["target"], links["anchor"], strict=True))


def pages_asked(session: Session) -> list[str]:
    return [url_of(access) for access in session.asked if access.path != "/robots.txt"]


def test_the_process_was_killed_at_moments_of_all_kinds(crawls):
    kills = [kill for survivor in crawls.killed for kill in survivor.kills]
    assert len(kills) == crawls.storm.kills
    assert {kill.moment for kill in kills} == set(Moment)


def test_the_same_command_continues_to_the_same_end(survivor):
    assert survivor.end.status == 0, survivor.end.output
    assert "Traceback" not in survivor.end.output


def test_what_was_harvested_in_all_is_what_a_crawl_in_peace_harvests(survivor, crawls):
    assert set(crawls.in_peace.end.pages["outcome"]) == {"fetched", "redirected", "failed"}
    assert pages_of(survivor) == pages_of(crawls.in_peace)
    assert links_of(survivor) == links_of(crawls.in_peace)


def test_no_row_is_lost_or_changed_by_a_kill(survivor):
    for before, after in pairwise(session.left.rows for session in survivor.sessions):
        assert after[: len(before)] == before


def test_every_link_that_was_found_is_settled_or_waits(survivor):
    assert any(session.left.queued for session in survivor.sessions)
    for left in (session.left for session in survivor.sessions if session.left != Left()):
        begun = left.linked | set(MOTLEY_SEEDS) if left.rows else left.linked
        assert begun <= left.settled | left.queued
    assert not survivor.sessions[-1].left.queued


def test_what_was_settled_before_a_kill_is_never_requested_again(survivor):
    for before, after in pairwise(survivor.sessions):
        assert not before.left.settled & set(pages_asked(after))


def test_only_the_one_request_of_a_host_in_flight_is_made_again(survivor):
    for number, session in enumerate(survivor.sessions):
        later = {
            url_of(access) for each in survivor.sessions[number + 1 :] for access in each.asked
        }
        last_of_host = {access.host: access for access in session.asked}
        again = [access for access in session.asked if url_of(access) in later]
        assert all(access is last_of_host[access.host] for access in again)


def test_no_process_asks_for_anything_twice(survivor):
    for session in survivor.sessions:
        assert max(Counter(map(url_of, session.asked)).values(), default=1) == 1
    assert {url_of(access) for each in survivor.sessions for access in each.asked} == motley_urls()


def test_robots_txt_that_was_read_is_not_requested_again(survivor):
    hosts = sum(url.endswith("/robots.txt") for url in motley_urls())
    assert survivor.sessions[-1].left.robots_fetched == hosts


def test_a_host_is_not_asked_before_its_delay_is_over_whoever_asked_last(survivor):
    """When an answer came to a dead process, the delay counts from when it was asked for."""
    earliest: dict[str, float] = {}
    for session in survivor.sessions:
        for access in session.asked:
            assert access.start >= earliest.get(access.host, 0.0)
            settled = url_of(access) in session.left.settled
            since = access.end - CLOCKS_DIFFER_S if settled else access.start - ON_ITS_WAY_S
            earliest[access.host] = since + delay_after(access)


def delay_after(access: AccessLogEntry) -> float:
    is_page = access.path != "/robots.txt"  # before that was read its crawl-delay is not known
    return UNHURRIED_DELAY_S if access.host == UNHURRIED and is_page else DELAY_S


def test_the_rows_are_numbered_without_gaps_and_each_page_has_one(survivor):
    pages = survivor.end.pages
    assert list(pages["seq"]) == list(range(len(pages)))
    assert pages["url"].is_unique


def test_the_warc_holds_one_whole_record_per_response_at_its_offset(survivor):
    records = list(read_responses(survivor.end.folder / "pages.warc.gz"))
    assert all(isinstance(record, WarcResponse) for record in records)
    pages = survivor.end.pages
    answered = pages[pages["status"] > 0]
    assert set(answered["warc_file"]) == {"pages.warc.gz"}
    assert {
        record.offset: record.url for record in records if not record.url.endswith("/robots.txt")
    } == dict(zip(answered["warc_offset"], answered["url"], strict=True))
    web = motley_web()
    recorded = [(web.get(record.url), record.body) for record in records]
    assert all(answer is None or answer.body == body for answer, body in recorded)
    assert sum(answer is not None for answer, _ in recorded) > len(records) // 2


def test_the_links_of_every_page_are_there_once(survivor):
    pages = survivor.end.pages
    links = pd.read_parquet(survivor.end.folder / "links.parquet")
    with_links = set(pages[pages["outcome"] == "fetched"]["url"]) - {LAST_PAGE}
    assert set(links["source"]) == with_links
    assert not links.duplicated(["source", "target"]).any()
