"""Delays by host (``politeness.delays``)."""

from dataclasses import replace
from itertools import pairwise

import pytest

from focused.crawl.stop_conditions import long_crawl_delays_s
from focused.topic import Budget
from focused.web.page import FailureKind
from tests.support.simulated import (
    FETCH_S,
    START,
    failed,
    moved,
    page,
    raw,
    site,
    topic,
    with_politeness,
)

A, SUB, OTHER = "http://slow.test/", "http://www.slow.test/", "http://quick.test/"
DELAYS = {"slow.test": 8.0}


def pauses(crawl, host: str) -> list[float]:
    """Seconds from the end of each answer of the host to its next request."""
    times = [at for at, url in crawl.asked if url.startswith(host)]
    return [round(later - sooner - FETCH_S, 6) for sooner, later in pairwise(times)]


def web(rules: str = "") -> dict:
    answers = [
        each
        for host in (A, SUB, OTHER)
        for each in (
            page(host, f"{host}1", f"{host}2"),
            page(f"{host}1"),
            page(f"{host}2"),
            raw(f"{host}robots.txt", rules, "text/plain"),
        )
    ]
    return site(*answers)


@pytest.mark.parametrize(("host", "delay_s"), [(A, 8.0), (SUB, 8.0), (OTHER, 1.0)])
def test_hosts_have_them_with_their_subdomains_and_no_others(simulate, tmp_path, host, delay_s):
    mine = with_politeness(topic(tmp_path, A, SUB, OTHER), delays=DELAYS)
    assert pauses(simulate(mine, web()).run(), host) == [delay_s] * 3


def test_they_may_be_shorter_for_hosts_of_ones_own(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), delays={"slow.test": 0.25})
    assert pauses(simulate(mine, web()).run(), A) == [0.25] * 3


def test_a_longer_crawl_delay_is_kept_all_the_same(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), delays={"slow.test": 0.25})
    assert pauses(simulate(mine, web("User-agent: *\nCrawl-delay: 3")).run(), A) == [3.0] * 3


def test_back_off_begins_at_them(simulate, tmp_path):
    down = {A: failed(A, FailureKind.SERVER_ERROR)}
    crawl = simulate(with_politeness(topic(tmp_path, A), delays=DELAYS), web() | down).run()
    assert pauses(crawl, A) == [8.0, 8.0, 16.0]


def test_they_survive_a_restart(simulate, tmp_path):
    crawl = simulate(with_politeness(topic(tmp_path, A), delays=DELAYS), web()).run(pages=1)
    crawl.restart().run()
    assert min(pauses(crawl, A)) >= 8.0 - FETCH_S


@pytest.mark.parametrize(
    "answer",
    [
        replace(moved(A, OTHER), retry_after_s=50.0),
        failed(A, FailureKind.BAD_REDIRECT, 50.0),
        failed(A, FailureKind.CLIENT_ERROR, 50.0),
    ],
)
def test_retry_after_is_heard_of_an_answer_that_is_no_failure(simulate, tmp_path, answer):
    mine = topic(tmp_path, A, f"{A}1")
    crawl = simulate(mine, web() | {A: answer}).run()
    assert pauses(crawl, A) == [1.0, 50.0]
    assert crawl.crawl.counters.retries == 0


def test_nobody_pauses_for_more_than_an_hour_because_of_it(simulate, tmp_path):
    mine = topic(tmp_path, A, f"{A}1")
    answer = replace(moved(A, OTHER), retry_after_s=1e9)
    assert pauses(simulate(mine, web() | {A: answer}).run(), A) == [1.0, 3600.0]


def test_it_is_heard_of_a_robots_txt_that_moved(simulate, tmp_path):
    answer = replace(moved(f"{A}robots.txt", f"{SUB}rules.txt"), retry_after_s=50.0)
    mine = topic(tmp_path, A)
    assert pauses(simulate(mine, web() | {answer.url: answer}).run(), A)[0] == 50.0


def test_a_crawl_ends_when_none_is_due_in_its_time_and_tells_long_crawl_delays(simulate, tmp_path):
    half_a_day = "User-agent: *\nCrawl-delay: 43200"
    mine = topic(tmp_path, A, OTHER, budget=Budget(hours=20))
    rules = {f"{A}robots.txt": raw(f"{A}robots.txt", half_a_day, "text/plain")}
    crawl = simulate(mine, web() | rules).run()
    assert [url for url in crawl.urls if url.startswith(A)] == [A]
    message = "only hosts are left that are not due before the time budget is spent"
    assert crawl.ended == f"{message}: 1 host, 2 links"
    assert crawl.now - START == pytest.approx(43_200, abs=2)
    assert crawl.crawl.is_finished(crawl.now)
    assert long_crawl_delays_s(crawl.crawl.frontier.hosts) == {"slow.test": 43_200.0}
    assert {wait.hosts_backing_off for at, wait in crawl.waited if wait.until - at > 3_600} == {1}
