"""Requests go to the checked address of a host with several or changing addresses."""

from pathlib import Path

from tests.support.access_rules import ROBOTS, Access, Rules, violations
from tests.support.crawling import Finished
from tests.support.hostile_hosts import Behaviour, crawl_hosts, pages
from tests.support.name_server import Zone, at
from tests.support.recorded_web import html

HOST, NEIGHBOUR = "a.test", "b.test"
FIRST, SECOND = "127.0.0.31", "127.0.0.32"
UNREACHABLE = "255.255.255.255"
PATHS = ["/", "/1", "/2"]
DELAY_S = 0.2


def crawl(folder: Path, zone: Zone, **settings: object) -> tuple[Finished, list[Access]]:
    def site(host: str) -> Behaviour:
        return pages({path: (200, html(f"{host} {path}", *PATHS), {}) for path in PATHS})

    done, hosts = crawl_hosts(
        folder,
        lambda _: {host: site(host) for host in (HOST, NEIGHBOUR)},
        zone,
        seeds=(HOST, NEIGHBOUR),
        settings=lambda _: settings,
        delay_s=DELAY_S,
        politeness="fetch_time_factor = 0",
        scope="traps = false\nnear_duplicates = false",
    )
    return done, hosts.accesses


def test_where_the_first_address_does_not_answer_the_second_waits_for_its_turn(tmp_path):
    zone = {HOST: at(UNREACHABLE, SECOND), NEIGHBOUR: at(SECOND)}
    done, accesses = crawl(tmp_path, zone)
    assert len(done.fetched()) == 6
    assert violations(accesses, Rules(DELAY_S)) == []


def test_a_name_whose_address_has_changed_is_asked_at_the_new_one_not_over_an_idle_connection(
    tmp_path,
):
    there = [FIRST, SECOND, FIRST, SECOND]
    zone = {HOST: [at(address, ttl_s=0) for address in there], NEIGHBOUR: at("127.0.0.33")}
    _, accesses = crawl(tmp_path, zone, DNSCACHE_ENABLED=False)
    asked = sorted((each.start, each.path, each.address) for each in accesses if each.host == HOST)
    assert [path for _, path, _ in asked] == [ROBOTS, *PATHS]
    assert [address for _, _, address in asked] == there
