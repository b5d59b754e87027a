"""Hosts at one address share a connection and a delay."""

from dataclasses import replace
from itertools import pairwise

import pytest

from focused.crawl import Crawl, Fetch, Wait
from focused.storage.tables import Tables
from focused.web.page import FailureKind
from tests.support.counting import count_method
from tests.support.simulated import (
    FETCH_S,
    Crashed,
    failed,
    moved,
    page,
    raw,
    site,
    topic,
    with_politeness,
)

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"
HOSTS = (A, B, C)
HERE = "192.0.2.1"


def neighbours(address: str = HERE) -> dict:
    """Three hosts at one address, with five pages each and a robots.txt that forbids more."""
    answers = []
    for host in HOSTS:
        links = [f"{host}{n}" for n in range(1, 5)]
        closed = [f"{host}closed/{n}" for n in range(50)]
        answers += [page(host, *closed, *links), *map(page, links)]
        rules = "User-agent: *\nDisallow: /closed/\n"
        answers.append(raw(f"{host}robots.txt", rules, "text/plain"))
    return {each.url: replace(each, address=address) for each in answers}


def pauses(crawl) -> list[float]:
    times = [at for at, _ in crawl.asked]
    return [later - sooner for sooner, later in pairwise(times)]


def test_hosts_at_one_address_share_its_delay(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours()).run()
    known_after = len(HOSTS)  # each host's first answer tells where it stands
    assert crawl.crawl.counters.fetched == 15
    assert all(pause >= 1.0 for pause in pauses(crawl)[known_after:])


def test_an_address_waits_the_delay_of_the_host_that_was_asked(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, *HOSTS), delays={"a.test": 7.0, "b.test": 0.2})
    crawl = simulate(mine, neighbours()).run()
    asked = [(at, url.split("/")[2]) for at, url in crawl.asked][len(HOSTS) :]
    least = {"a.test": 7.0, "b.test": 0.2, "c.test": 1.0}
    waited = [(host, round(after - at - FETCH_S, 6)) for (at, host), (after, _) in pairwise(asked)]
    assert all(pause >= least[host] for host, pause in waited)
    assert ("b.test", 0.2) in waited


def test_hosts_at_addresses_of_their_own_do_not_wait_for_each_other(simulate, tmp_path):
    web = neighbours() | {
        url: replace(each, address=f"192.0.2.{HOSTS.index(url[:14]) + 1}")
        for url, each in neighbours().items()
    }
    crawl = simulate(topic(tmp_path, *HOSTS), web).run()
    assert min(pauses(crawl)[3:]) < 0.5


def test_the_topic_may_ask_each_host_for_itself(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, *HOSTS), per_address=False)
    crawl = simulate(mine, neighbours()).run()
    assert min(pauses(crawl)[3:]) < 0.5


@pytest.mark.parametrize("pages", range(1, 8))
def test_an_address_has_its_delay_across_a_restart_too(simulate, tmp_path, pages):
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours()).run(pages=pages)
    before = len(crawl.asked)
    crawl.restart(later_s=0.2).run()
    assert pauses(crawl)[before - 1] >= 1.0


def test_it_has_when_the_process_died_while_it_asked(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours()).run(pages=4)
    crawl.now += 60.0
    asked_at = crawl.now
    assert isinstance(crawl.crawl.next(asked_at), Fetch)
    crawl.die()
    assert crawl.crawl.next(asked_at + 0.2) == Wait(asked_at + 1.0)


def test_links_that_are_not_requested_cost_their_neighbours_no_delay(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours()).run()
    assert crawl.crawl.counters.robots_excluded == 150
    asked = len(crawl.asked)
    assert crawl.asked[-1][0] - crawl.asked[0][0] <= asked * (1.0 + FETCH_S)


def test_counters_of_links_that_are_not_requested_are_written_once_a_step(
    simulate, tmp_path, monkeypatch
):
    written = count_method(monkeypatch, Tables, "put_meta", lambda _, key, value: key == "counters")
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours()).run()
    assert crawl.crawl.counters.robots_excluded == 150
    assert written.amount <= len(crawl.asked) + 10


def test_links_that_are_not_requested_stay_counted_when_the_process_dies(
    simulate, tmp_path, monkeypatch
):
    crawl = simulate(topic(tmp_path, *HOSTS), neighbours())
    settle = Crawl.settle

    def die_after_a_refusal(self, *given):
        if self.counters.robots_excluded:
            raise Crashed
        return settle(self, *given)

    monkeypatch.setattr(Crawl, "settle", die_after_a_refusal)
    with pytest.raises(Crashed):
        crawl.run()
    excluded = crawl.crawl.counters.robots_excluded
    crawl.die()
    assert crawl.crawl.counters.robots_excluded == excluded > 0


def test_a_failure_tells_the_address_as_well_as_a_page(simulate, tmp_path):
    web = {
        url: replace(failed(url, FailureKind.GONE), address=HERE)
        for host in HOSTS
        for url in (host, f"{host}robots.txt")
    }
    crawl = simulate(topic(tmp_path, *HOSTS), web).run()
    assert all(pause >= 1.0 for pause in pauses(crawl)[3:])


def test_a_robots_txt_kept_elsewhere_tells_the_address_of_that_host(simulate, tmp_path):
    web = site(
        replace(moved(f"{A}robots.txt", f"{B}rules.txt"), address="192.0.2.7"),
        replace(raw(f"{B}rules.txt", "", "text/plain"), address="192.0.2.8"),
    )
    crawl = simulate(topic(tmp_path, A), web).run()
    standing = {host.name: host.address for host in crawl.crawl.frontier.hosts}
    assert standing == {"a.test": "192.0.2.7", "b.test": "192.0.2.8"}
