"""Thirty hosts with a delay of a second each: no time is lost."""

from collections import defaultdict
from collections.abc import Sequence

from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.recorded_web.replay_server import AccessLogEntry
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served

HOSTS, PAGES_PER_HOST = 30, 14
DELAY_S = 1.0
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


def ideal_s(asked: Sequence[AccessLogEntry]) -> float:
    """The least time for one host: its answers, and a delay between each two of them."""
    answering_s = sum(access.end - access.start for access in asked)
    return answering_s + DELAY_S * (len(asked) - 1)


def test_hosts_do_not_wait_for_each_other(tmp_path):
    topic = write_topic(tmp_path, *map(front_page, range(HOSTS)), delay_s=DELAY_S)
    with served(web(), SOMEWHAT_SLOWLY) as site:
        crawled = crawl(topic, site.address)
    assert crawled.status == 0, crawled.output
    by_host = defaultdict(list)
    for access in site.accesses:
        by_host[access.host].append(access)
    assert {len(asked) for asked in by_host.values()} == {1 + PAGES_PER_HOST}
    began = min(access.start for access in site.accesses)
    ended = max(access.end for access in site.accesses)
    one_after_the_other_s = sum(map(ideal_s, by_host.values()))
    assert ended - began <= one_after_the_other_s / 8
