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
from tests.live.killing import DELAY_S, KilledCrawl, Left, Moment, Session, url_of
from tests.live.webs import (
    MIXED_SEEDS,
    SLOW_HOST,
    SLOW_HOST_DELAY_S,
    SLOW_HOST_PAGES,
    mixed_urls,
    mixed_web,
)

NOT_KILLED = -1
CONCURRENT_CRAWLS = 3
MAX_CLOCK_SKEW_S = 0.02
MAX_SENDING_S = 0.9  # from the lease of a request to its arrival
LAST_PAGE = f"http://{SLOW_HOST}/{SLOW_HOST_PAGES - 1}"


@dataclass(frozen=True)
class KillPlan:
    """Number of crawls, and of kills in all of them."""

    crawls: int
    kills: int


FEW = KillPlan(crawls=1, kills=12)
MANY = KillPlan(crawls=4, kills=50)


def moments_of(plan: KillPlan, crawl: int, rng: random.Random) -> list[Moment]:
    """Return when the crawl is killed: all kinds of moments, in a random order."""
    kills = plan.kills // plan.crawls + (crawl < plan.kills % plan.crawls)
    first, last = [Moment.CREATING_FOLDER, Moment.BEGINNING], [Moment.ENDING] * 3
    between = [Moment.STARTING] * 2 + [Moment.BEGINNING]
    between += [Moment.CRAWLING] * (kills - len(first) - len(between) - len(last))
    rng.shuffle(between)
    return [*first, *between, *last]


@dataclass(frozen=True)
class Crawls:
    plan: KillPlan
    killed: list[KilledCrawl]
    undisturbed: KilledCrawl


@pytest.fixture(scope="module")
def crawls_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[KillPlan], Crawls]:
    """Run the crawls of a plan, once per module."""

    @cache
    def crawls_of(plan: KillPlan) -> Crawls:
        def crawl(number: int) -> KilledCrawl:
            rng = random.Random(50 + number)
            moments = [] if number == NOT_KILLED else moments_of(plan, number, rng)
            return KilledCrawl(tmp_path_factory.mktemp("crawl"), moments, rng)

        with ThreadPoolExecutor(CONCURRENT_CRAWLS) as pool:
            undisturbed, *killed = pool.map(crawl, [NOT_KILLED, *range(plan.crawls)])
        return Crawls(plan, killed, undisturbed)

    return crawls_of


def killed_crawls(plan: KillPlan, *marks: pytest.MarkDecorator) -> list[Any]:
    return [
        pytest.param((plan, number), id=f"{plan.kills}-{number}", marks=marks)
        for number in range(plan.crawls)
    ]


@pytest.fixture(params=[*killed_crawls(FEW), *killed_crawls(MANY, pytest.mark.long)])
def which(request: pytest.FixtureRequest) -> tuple[KillPlan, int]:
    """A plan, and the number of one of its crawls."""
    return request.param


@pytest.fixture
def crawls(which: tuple[KillPlan, int], crawls_of: Callable[[KillPlan], Crawls]) -> Crawls:
    return crawls_of(which[0])


@pytest.fixture
def killed_crawl(which: tuple[KillPlan, int], crawls: Crawls) -> KilledCrawl:
    return crawls.killed[which[1]]


def pages_of(killed_crawl: KilledCrawl) -> dict[str, tuple[Any, ...]]:
    """Return each URL's outcome, without times, order and source."""
    columns = ["outcome", "status", "failure", "title", "relevance", "on_topic", "bytes"]
    pages = killed_crawl.end.pages.astype(object)
    pages = pages.where(pages.notna(), None)
    return {url: tuple(row) for url, row in zip(pages.index, pages[columns].values, strict=True)}


def links_of(killed_crawl: KilledCrawl) -> Counter[tuple[str, str, str]]:
    links = pd.read_parquet(killed_crawl.end.folder / "links.parquet")
    return Counter(zip(links["source"], links["target"], links["anchor"], strict=True))


def pages_asked(session: Session) -> list[str]:
    return [url_of(access) for access in session.asked if access.path != "/robots.txt"]


def test_the_process_was_killed_at_moments_of_all_kinds(crawls):
    kills = [kill for killed_crawl in crawls.killed for kill in killed_crawl.kills]
    assert len(kills) == crawls.plan.kills
    assert {kill.moment for kill in kills} == set(Moment)


def test_the_same_command_continues_to_the_same_end(killed_crawl):
    assert killed_crawl.end.status == 0, killed_crawl.end.output
    assert "Traceback" not in killed_crawl.end.output


def test_the_harvest_is_that_of_a_crawl_that_is_not_killed(killed_crawl, crawls):
    assert set(crawls.undisturbed.end.pages["outcome"]) == {"fetched", "redirected", "failed"}
    assert pages_of(killed_crawl) == pages_of(crawls.undisturbed)
    assert links_of(killed_crawl) == links_of(crawls.undisturbed)


def test_no_row_is_lost_or_changed_by_a_kill(killed_crawl):
    for before, after in pairwise(session.left.rows for session in killed_crawl.sessions):
        assert after[: len(before)] == before


def test_every_link_that_was_found_is_settled_or_waits(killed_crawl):
    assert any(session.left.queued for session in killed_crawl.sessions)
    for left in (session.left for session in killed_crawl.sessions if session.left != Left()):
        begun = left.linked | set(MIXED_SEEDS) if left.rows else left.linked
        assert begun <= left.settled | left.queued
    assert not killed_crawl.sessions[-1].left.queued


def test_what_was_settled_before_a_kill_is_never_requested_again(killed_crawl):
    for before, after in pairwise(killed_crawl.sessions):
        assert not before.left.settled & set(pages_asked(after))


def test_only_the_one_request_of_a_host_in_flight_is_made_again(killed_crawl):
    for number, session in enumerate(killed_crawl.sessions):
        later = {
            url_of(access) for each in killed_crawl.sessions[number + 1 :] for access in each.asked
        }
        last_of_host = {access.host: access for access in session.asked}
        again = [access for access in session.asked if url_of(access) in later]
        assert all(access is last_of_host[access.host] for access in again)


def test_no_process_requests_a_url_twice(killed_crawl):
    for session in killed_crawl.sessions:
        assert max(Counter(map(url_of, session.asked)).values(), default=1) == 1
    assert {
        url_of(access) for each in killed_crawl.sessions for access in each.asked
    } == mixed_urls()


def test_robots_txt_that_was_read_is_not_requested_again(killed_crawl):
    hosts = sum(url.endswith("/robots.txt") for url in mixed_urls())
    assert killed_crawl.sessions[-1].left.robots_fetched == hosts


def test_a_host_is_not_requested_before_its_delay_is_over_also_after_a_kill(killed_crawl):
    """If the process died before the response, the delay counts from the request."""
    earliest: dict[str, float] = {}
    for session in killed_crawl.sessions:
        for access in session.asked:
            assert access.start >= earliest.get(access.host, 0.0)
            settled = url_of(access) in session.left.settled
            since = access.end - MAX_CLOCK_SKEW_S if settled else access.start - MAX_SENDING_S
            earliest[access.host] = since + delay_after(access)


def delay_after(access: AccessLogEntry) -> float:
    is_page = access.path != "/robots.txt"  # its own request comes before its Crawl-delay is known
    return SLOW_HOST_DELAY_S if access.host == SLOW_HOST and is_page else DELAY_S


def test_the_rows_are_numbered_without_gaps_and_each_page_has_one(killed_crawl):
    pages = killed_crawl.end.pages
    assert list(pages["seq"]) == list(range(len(pages)))
    assert pages["url"].is_unique


def test_the_warc_holds_one_whole_record_per_response_at_its_offset(killed_crawl):
    records = list(read_responses(killed_crawl.end.folder / "pages.warc.gz"))
    assert all(isinstance(record, WarcResponse) for record in records)
    pages = killed_crawl.end.pages
    answered = pages[pages["status"] > 0]
    assert set(answered["warc_file"]) == {"pages.warc.gz"}
    assert {
        record.offset: record.url for record in records if not record.url.endswith("/robots.txt")
    } == dict(zip(answered["warc_offset"], answered["url"], strict=True))
    web = mixed_web()
    recorded = [(web.get(record.url), record.body) for record in records]
    assert all(answer is None or answer.body == body for answer, body in recorded)
    assert sum(answer is not None for answer, _ in recorded) > len(records) // 2


def test_the_links_of_every_page_are_there_once(killed_crawl):
    pages = killed_crawl.end.pages
    links = pd.read_parquet(killed_crawl.end.folder / "links.parquet")
    with_links = set(pages[pages["outcome"] == "fetched"]["url"]) - {LAST_PAGE}
    assert set(links["source"]) == with_links
    assert not links.duplicated(["source", "target"]).any()
