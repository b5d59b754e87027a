"""Thirty hosts with a delay of a second each: all are obeyed, and no time is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from focused.recorded_web.replay_faults import FaultPlan, parse_fault
from focused.recorded_web.replay_server import AccessLogEntry
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served
from tests.support.warm import crawl_warm

HOSTS, PAGES_PER_HOST = 30, 14
DELAY_S = 1.0
CLOCKS_DIFFER_S = 0.02
SOMEWHAT_SLOWLY = FaultPlan((parse_fault("*:kind=latency,latency_s=0.02-0.08"),))


def front_page(host: int) -> str:
    return f"http://h{host}.test/0"


def web() -> MemoryWeb:
    """Each host's front page links to all its others."""
    others = [f"/{number}" for number in range(1, PAGES_PER_HOST)]
    return MemoryWeb(
        *[
            page(
                f"http://h{host}.test/{number}",
                html(f"{host} {number}", *(others if number == 0 else [])),
            )
            for host in range(HOSTS)
            for number in range(PAGES_PER_HOST)
        ]
    )


@pytest.fixture(scope="module")
def accesses(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[AccessLogEntry]]:
    """What was asked of each host, in order, robots.txt first."""
    seeds = [front_page(host) for host in range(HOSTS)]
    topic = write_topic(tmp_path_factory.mktemp("polite"), *seeds, delay_s=DELAY_S)
    with served(web(), SOMEWHAT_SLOWLY) as site:
        crawled = crawl_warm(topic, site.address)
    assert crawled.status == 0, crawled.output
    by_host: dict[str, list[AccessLogEntry]] = {}
    for access in sorted(site.accesses, key=lambda access: access.start):
        by_host.setdefault(access.host, []).append(access)
    return by_host


def ideal_s(asked: Sequence[AccessLogEntry]) -> float:
    """The least time for one host: its answers, and a delay between each two of them."""
    answering_s = sum(access.end - access.start for access in asked)
    return answering_s + DELAY_S * (len(asked) - 1)


def test_everything_was_requested_once(accesses: Mapping[str, Sequence[AccessLogEntry]]) -> None:
    wanted = {"/robots.txt", *(f"/{number}" for number in range(PAGES_PER_HOST))}
    assert len(accesses) == HOSTS
    for asked in accesses.values():
        assert sorted(access.path for access in asked) == sorted(wanted)


def test_a_host_is_asked_over_one_connection_at_a_time(
    accesses: Mapping[str, Sequence[AccessLogEntry]],
) -> None:
    for asked in accesses.values():
        assert all(after.start >= before.end for before, after in pairwise(asked))


def test_from_the_end_of_an_answer_a_host_has_its_delay(
    accesses: Mapping[str, Sequence[AccessLogEntry]],
) -> None:
    gaps_s = [
        after.start - before.end for asked in accesses.values() for before, after in pairwise(asked)
    ]
    assert min(gaps_s) >= DELAY_S - CLOCKS_DIFFER_S


def test_hosts_do_not_wait_for_each_other(
    accesses: Mapping[str, Sequence[AccessLogEntry]],
) -> None:
    everything = [access for asked in accesses.values() for access in asked]
    began = min(access.start for access in everything)
    ended = max(access.end for access in everything)
    one_after_the_other_s = sum(map(ideal_s, accesses.values()))
    assert ended - began <= one_after_the_other_s / 8
