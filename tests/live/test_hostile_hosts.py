"""More than two hundred hosts, most of them hostile: the crawl ends and fetches all good pages."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.live.hostile_faults import (
    FAULTS,
    MAX_PAGE_BYTES,
    MIRRORED,
    PRIVATE,
    PRIVATE_LINKS,
    SLOW,
    TRAPS,
    behaviour,
    pack_bodies,
)
from tests.support.access_rules import ROBOTS, Access
from tests.support.crawl_folders import report_as_dict
from tests.support.crawling import ROOT, Finished, command, write_topic
from tests.support.hostile_hosts import Behaviour, HostileHosts, pages, serve_hosts
from tests.support.name_server import FAILS, NO_SUCH_NAME, Zone, at, serve_names
from tests.support.recorded_web import html

LOOPBACK_IS_PUBLIC = """
from ipaddress import IPv4Network
from focused.scrapy_addon import name_resolver
from focused.web import host_names
name_resolver.MIN_TTL_S = 0.0  # a name may change its address with each question
kept = [net for net in host_names._PRIVATE_V4 if net != IPv4Network("127.0.0.0/8")]
host_names._PRIVATE_V4 = (*kept, IPv4Network("127.9.0.0/16"))
from scrapy.cmdline import execute
execute()
"""
OF_EACH = 3
COPIES = ("mirror", "near")
HOSTS = 230
TROUBLED_NAMES: Mapping[str, str] = {
    "no-name": "no-such-host",
    "no-answer": "dns",
    "to-private-name": "private-address",
}
GOOD_PAGES = 3
TRAP_PAGES = 30
MORE_MEMORY_MB = 300.0
ENDS = "only hosts are left that are not due before the time budget is spent: 3 hosts, 3 links"
LONGEST_S = 600.0


def named(kinds: Iterable[str]) -> list[str]:
    return [f"{kind}-{n}.test" for kind in kinds for n in range(OF_EACH)]


HOSTILE = [
    *(host for kinds in (FAULTS, TRAPS, SLOW, TROUBLED_NAMES) for host in named(kinds)),
    *("tls-0.test", "refuses-0.test"),
]
HUB = "hub-0.test"
GOOD = [f"good-{n}.test" for n in range(HOSTS - len(HOSTILE) - 1)]


def kind_of(host: str) -> str:
    return host.removesuffix(".test").rpartition("-")[0]


def site(host: str, port: int) -> Behaviour:
    """What a host does; a good one has pages of its own words, and links to the next good ones."""
    if kind_of(host) in FAULTS:
        return behaviour(FAULTS[kind_of(host)])
    if kind_of(host) in TRAPS:
        return TRAPS[kind_of(host)]
    if kind_of(host) in SLOW:
        return SLOW[kind_of(host)]
    rng = random.Random(host)
    number = GOOD.index(host)
    near = [f"http://{each}:{port}/0" for each in GOOD[number + 1 : number + 3]]

    own = [f"/{n}" for n in range(GOOD_PAGES)]

    def text() -> str:
        return "whale " + " ".join(f"w{rng.randrange(50_000)}" for _ in range(60))

    return pages(
        {
            f"/{n}": (200, html(f"{host} {n}", *near, *own, text=text()), {})
            for n in range(GOOD_PAGES)
        }
    )


def web(port: int) -> dict[str, Behaviour]:
    absent = {"tls-0.test", "refuses-0.test", *named(TROUBLED_NAMES)}
    sites = {host: site(host, port) for host in (*GOOD, *HOSTILE) if host not in absent}
    links = [front_page(host, port) for host in (*GOOD, *HOSTILE)][1::2]
    hub = html("Hub", *links, f"http://{PRIVATE}/linked", text="whales are everywhere")
    return {**sites, HUB: pages({"/": (200, hub, {})})}


def zone() -> Zone:
    groups: dict[str, Any] = {
        host: at(f"127.1.{number // 250}.{number % 250 + 1}")
        for number, host in enumerate((HUB, *GOOD, *HOSTILE))
    }
    for host in named(["rebinds"]):
        groups[host] = [replace(groups[host], ttl_s=0), at(PRIVATE, ttl_s=0)]
    for host in named(TROUBLED_NAMES):
        troubles = {"no-name": NO_SUCH_NAME, "no-answer": FAILS, "to-private-name": at(PRIVATE)}
        groups[host] = troubles[kind_of(host)]
    return groups


def front_page(host: str, port: int) -> str:
    if host == "tls-0.test":
        return f"https://{host}:{port}/"
    if host == "refuses-0.test":
        return f"http://{host}:1/"
    return f"http://{host}:{port}/{'0' if host in GOOD else ''}"


@dataclass(frozen=True)
class Crawled:
    done: Finished
    stats: Mapping[str, Any]
    report: Mapping[str, Any]
    port: int
    more_memory_mb: float
    accesses: Sequence[Access]

    def front(self, host: str) -> Any:
        """The row of a host's front page."""
        return self.done.pages.loc[front_page(host, self.port)]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    folder = tmp_path_factory.mktemp("hostile")
    pack_bodies()
    with serve_hosts(web) as served, serve_names(zone()) as names:
        topic = topic_of(folder, served)
        _, _, _, *arguments = command(topic, "", FOCUSED_DNS_SERVERS=names.address, DNS_TIMEOUT=8)
        process = subprocess.Popen(
            [sys.executable, "-c", LOOPBACK_IS_PUBLIC, *arguments],
            cwd=ROOT,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=(output_file := (folder / "output").open("w")),
        )
        more_mb = watch(process, folder / "out" / "crawl.log")
        output_file.close()
    done = Finished(process.returncode, (folder / "output").read_text(), folder / "out")
    assert done.status == 0, done.output[-2000:]
    return Crawled(
        done, done.stats, report_as_dict(done.folder), served.port, more_mb, served.accesses
    )


def topic_of(folder: Path, served: HostileHosts) -> Path:
    """Half of the hosts are seeds; a page links to the rest.

    Of copies all are seeds: a trusted site would take over from another, if that came first.
    """
    hosts = (*GOOD, *HOSTILE)
    seeds = [
        front_page(host, served.port)
        for place, host in enumerate(hosts)
        if place % 2 == 0 or kind_of(host) in COPIES
    ]
    return write_topic(
        folder,
        served.url(HUB),
        *seeds,
        delay_s=0.01,
        timeout_s=3.0,
        politeness="max_tries = 2\nsuspend_s = 0\nconcurrency = 64\nfetch_time_factor = 0\n",
        budget="hours = 1",
        scope=f"max_page_bytes = {MAX_PAGE_BYTES}\nmax_pages_per_host = {TRAP_PAGES}",
    )


def rss_mb(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def watch(process: subprocess.Popen[str], log: Path) -> float:
    """Wait for the end; return by how many MB memory grew since the crawl began, at its peak."""
    began, peak, until = 0.0, 0.0, time.monotonic() + LONGEST_S
    while process.poll() is None:
        if time.monotonic() > until:
            process.kill()
            raise AssertionError("the crawl does not end")
        try:
            if not began and log.exists() and "Spider opened" in log.read_text():
                began = rss_mb(process.pid, "VmRSS")
            peak = rss_mb(process.pid, "VmHWM")
        except (OSError, StopIteration):  # it has just ended
            break
        time.sleep(0.05)
    process.wait()
    assert began
    return peak - began


def test_there_are_as_many_hosts_as_documented():
    assert len({HUB, *GOOD, *HOSTILE}) == HOSTS


def test_the_crawl_ends_by_itself(crawled):
    assert crawled.stats["end_reason"] == ENDS
    assert crawled.stats["hosts_in_back_off"] == 0


def test_no_host_is_asked_more_often_than_it_may(crawled):
    fronts = Counter(access.host for access in crawled.accesses if access.path == "/")
    limited = FAULTS.keys() - {"cookie-loop"}  # redirects are no tries
    assert max(fronts[host] for host in named(limited)) <= 2


def test_memory_stays_within_its_bound(crawled):
    assert crawled.more_memory_mb < MORE_MEMORY_MB


def test_every_good_page_is_harvested(crawled):
    pages = crawled.done.pages
    harvested = set(pages[pages["on_topic"]]["url"])
    good = {f"http://{host}:{crawled.port}/{n}" for host in GOOD for n in range(GOOD_PAGES)}
    assert good - harvested == set()


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_reported_by_its_name(crawled, kind):
    rows = [crawled.front(host) for host in named([kind])]
    outcomes = [row["failure"] if row["outcome"] == "failed" else row["outcome"] for row in rows]
    assert outcomes == [FAULTS[kind].expected] * OF_EACH


@pytest.mark.parametrize("kind", TROUBLED_NAMES)
def test_so_is_what_the_name_service_says(crawled, kind):
    failures = [crawled.front(host)["failure"] for host in named([kind])]
    assert failures == [TROUBLED_NAMES[kind]] * OF_EACH


@pytest.mark.parametrize(
    ("host", "failure"), [("tls-0.test", "tls"), ("refuses-0.test", "connect")]
)
def test_so_are_connections_that_come_to_nothing(crawled, host, failure):
    assert crawled.front(host)["failure"] == failure


def test_the_report_counts_each_failure(crawled):
    rows = crawled.done.pages["failure"].value_counts().to_dict()
    rows.pop("")
    counted = {**crawled.report["failures"], "robots": crawled.report["robots_excluded"]}
    assert {kind: counted[kind] for kind in rows} == rows


@pytest.mark.parametrize("kind", TRAPS)
def test_a_trap_costs_no_more_than_its_bound(crawled, kind):
    pages = crawled.done.pages
    for host in named([kind]):
        assert (pages["host"] == f"{host}:{crawled.port}").sum() <= TRAP_PAGES + 1, host


def test_traps_are_reported_by_their_names(crawled):
    kinds = {line["kind"].removeprefix("trap: ") for line in crawled.stats["traps"]}
    assert kinds >= {"session id", "redirect loop", "repeated segments", "repeated parameters"}


def test_private_addresses_are_refused_and_counted(crawled):
    assert crawled.stats["out_of_scope"]["private address"] >= len(PRIVATE_LINKS) + 2


def test_nothing_was_asked_of_a_private_address(crawled):
    assert [access for access in crawled.accesses if access.address == PRIVATE] == []
    rebound = {access.path for access in crawled.accesses if kind_of(access.host) == "rebinds"}
    assert rebound == {ROBOTS}


def test_hosts_that_want_years_between_requests_are_reported(crawled):
    slow = {f"{host}:{crawled.port}": 43_200.0 for host in named(SLOW)}
    assert crawled.stats["long_crawl_delays"] == slow
    asked = [access.path for access in crawled.accesses if kind_of(access.host) in SLOW]
    assert asked == [ROBOTS] * OF_EACH


def test_links_too_long_are_none_and_those_above_the_bound_are_counted(crawled):
    assert crawled.stats["links_over_limit"] > OF_EACH * 70_000
    asked = [access.path for access in crawled.accesses if kind_of(access.host) == "long-urls"]
    assert sorted(asked) == ["/"] * OF_EACH + [ROBOTS] * OF_EACH


def test_each_page_of_mirrors_counts_once(crawled):
    pages = crawled.done.pages
    mirrors = {f"{host}:{crawled.port}" for host in named(["mirror"])}
    fetched = pages[pages["host"].isin(mirrors) & (pages["outcome"] == "fetched")]
    assert fetched["duplicate_of"].isna().sum() == len(MIRRORED) + 1
    assert fetched["duplicate_of"].notna().sum() == OF_EACH - 1  # whose links are not followed


def test_copies_and_what_asks_to_be_left_alone_are_counted(crawled):
    stats = crawled.stats
    assert stats["noindex"] == OF_EACH
    assert stats["nofollow"] >= OF_EACH
    assert stats["near_duplicates"] >= OF_EACH - 1
    assert stats["duplicates"] - stats["near_duplicates"] >= OF_EACH - 1
