"""Hosts that only fail: suspended, tried again, finally dead."""

from dataclasses import replace
from itertools import pairwise

import pytest

from focused.crawl import Done, Wait
from focused.crawl.stop_conditions import count_hosts_backing_off
from focused.topic import Budget
from focused.web.page import FailureKind
from tests.support.simulated import START, failed, moved, page, site, topic, with_politeness

A, B = "http://a.test/", "http://b.test/"
HOUR_S = 3_600.0
UP_AGAIN = START + 2 * HOUR_S


def down(url: str, kind: FailureKind = FailureKind.TIMEOUT, until: float = float("inf")):
    """A page of a host that fails until then."""
    return lambda now: failed(url, kind) if now < until else page(url)


def web_with_a_dead_host(links: int, until: float = float("inf")) -> dict:
    urls = [f"{B}{n}" for n in range(links)]
    return site(page(A, *urls)) | {url: down(url, until=until) for url in urls}


def asked(crawl, host: str) -> list[float]:
    """When the host was asked, in seconds since the start, robots.txt included."""
    return [round(at - START, 6) for at, url in crawl.asked if url.startswith(host)]


def pauses(times: list[float]) -> list[float]:
    return [later - sooner for sooner, later in pairwise(times)]


def test_after_eight_failures_in_a_row_a_host_is_left_alone_for_an_hour(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40)).run()
    _robots, *times = asked(crawl, B)
    assert times[7] - times[0] < HOUR_S <= times[8] - times[7] < HOUR_S + 1


def test_its_links_stay_queued_meanwhile(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40))
    while not crawl.waited or crawl.waited[-1][1].until < START + HOUR_S:
        crawl.step()
    assert len(crawl.crawl.frontier) == 38  # two were tried three times each
    assert crawl.crawl.counters.failures == {"timeout": 2}


def test_a_host_that_comes_back_is_harvested_after_all(simulate, tmp_path):
    web = web_with_a_dead_host(links=40, until=UP_AGAIN)
    crawl = simulate(topic(tmp_path, A), web).run()
    assert crawl.ended == "frontier is empty"
    fetched = [url for url, row in crawl.rows.items() if row["outcome"] == "fetched"]
    assert len(fetched) == 1 + 40 - 3  # three were tried three times each before


def test_each_time_it_is_left_alone_for_twice_as_long_and_dead_after_the_third(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40)).run()
    long_ones = [pause for pause in pauses(asked(crawl, B)) if pause > 600]
    assert long_ones == pytest.approx([HOUR_S, 2 * HOUR_S, 4 * HOUR_S], abs=1)
    assert len(asked(crawl, B)) == 1 + 8 + 3
    assert crawl.ended == "frontier is empty"


def test_what_it_was_suspended_for_survives_a_restart(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40))
    while not (crawl.waited and crawl.waited[-1][1].until - crawl.waited[-1][0] > HOUR_S + 600):
        crawl.step()  # it was set aside for the second time
    crawl.restart(later_s=60.0).run()
    long_ones = [pause for pause in pauses(asked(crawl, B)) if pause > 600]
    assert long_ones == pytest.approx([HOUR_S, 2 * HOUR_S, 4 * HOUR_S], abs=61)


def test_a_page_in_order_between_makes_it_a_host_like_any_other(simulate, tmp_path):
    web = web_with_a_dead_host(links=40)
    for n in range(40):
        answers = [page(f"{B}{n}")] if n == 3 else [failed(f"{B}{n}", FailureKind.TIMEOUT)]
        web[f"{B}{n}"] = answers
    crawl = simulate(topic(tmp_path, A), web).run()
    long_ones = [pause for pause in pauses(asked(crawl, B)) if pause > 600]
    assert long_ones == pytest.approx([HOUR_S, 2 * HOUR_S, HOUR_S, 2 * HOUR_S, 4 * HOUR_S], abs=1)


def test_that_its_robots_txt_comes_does_not_make_it_well(simulate, tmp_path):
    """Rules last a day: within the seven hours of a host's chances they are asked for again."""
    web = web_with_a_dead_host(links=4_000)
    rules = f"{B}robots.txt"
    web[rules] = replace(page(rules), headers={"cache-control": "max-age=600"})
    crawl = simulate(topic(tmp_path, A), web).run(most_steps=6_000)
    assert len(crawl.times(rules)) >= 4
    long_ones = [pause for pause in pauses(asked(crawl, B)) if pause > 600]
    assert long_ones == pytest.approx([HOUR_S, 2 * HOUR_S, 4 * HOUR_S], abs=1)


def test_how_long_is_the_topics_choice(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), suspend_s=1_000.0)
    crawl = simulate(mine, web_with_a_dead_host(links=40)).run()
    long_ones = [pause for pause in pauses(asked(crawl, B)) if pause > 600]
    assert long_ones == pytest.approx([1_000, 2_000, 4_000], abs=1)


def test_with_no_time_to_suspend_it_is_dead_at_once(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), suspend_s=0.0)
    crawl = simulate(mine, web_with_a_dead_host(links=40)).run()
    assert len(asked(crawl, B)) == 1 + 8
    assert crawl.now - START < HOUR_S


def test_a_host_longer_requested_with_retry_after_is_not_requested_sooner(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), suspend_s=10.0)
    web = {A: failed(A, FailureKind.THROTTLED, retry_after_s=900)}
    web[f"{A}robots.txt"] = failed(f"{A}robots.txt", FailureKind.THROTTLED, retry_after_s=900)
    crawl = simulate(mine, web).run()
    assert min(pauses(asked(crawl, A))) >= 900


class TestLinksOfAHostGivenUp:
    def test_are_counted_and_only_the_first_have_a_row(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A), suspend_s=0.0)
        crawl = simulate(mine, web_with_a_dead_host(links=400)).run()
        assert crawl.crawl.counters.failures == {"timeout": 400}
        asked_for = {url for url in crawl.urls if url.startswith(B)}
        report = {url for url in crawl.rows if url.startswith(B)}
        assert len(report) == 2 + 10 and len(report - asked_for) == 10 - 1

    def test_are_settled_over_several_turns_when_they_are_many(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A, "http://c.test/"), suspend_s=0.0)
        web = web_with_a_dead_host(links=900) | site(page("http://c.test/"))
        crawl = simulate(mine, web)
        while not crawl.crawl.counters.failures.get("timeout", 0) > 2:
            crawl.step()
        assert 0 < len(crawl.crawl.frontier) < 900

    def test_found_later_are_refused_at_the_door(self, simulate, tmp_path):
        c = "http://c.test/"
        mine = with_politeness(topic(tmp_path, A, delay_s=500.0), suspend_s=0.0, patience=0.0)
        web = web_with_a_dead_host(links=1)
        web[A] = page(A, f"{B}0", c)
        web[f"{B}robots.txt"] = failed(f"{B}robots.txt", FailureKind.CONNECT)
        chain = [page(c, f"{c}1"), *(page(f"{c}{n}", f"{c}{n + 1}") for n in range(1, 20))]
        web |= site(*chain, page(f"{c}20", f"{B}late", f"{B}later"))
        crawl = simulate(mine, web).run()
        assert crawl.crawl.counters.out_of_scope == {"dead host": 2}
        assert f"{B}late" not in crawl.rows

    def test_stay_settled_and_refused_after_a_restart(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A), suspend_s=0.0)
        crawl = simulate(mine, web_with_a_dead_host(links=40)).run()
        before = len(crawl.asked)
        crawl.restart().crawl.enqueue_url(f"{B}new", 1.0, crawl.now)
        assert crawl.run().crawl.counters.out_of_scope == {"dead host": 1}
        assert len(crawl.asked) == before


class TestAHostThatDoesNotExist:
    """No such name is not the same as a name service that does not answer."""

    def web(self, kind: FailureKind = FailureKind.NO_HOST) -> dict:
        urls = [f"{B}{n}" for n in range(40)]
        dead = {url: failed(url, kind) for url in [*urls, f"{B}robots.txt"]}
        return site(page(A, *urls)) | dead

    def test_is_requested_once_more_a_minute_later_and_dead(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), self.web()).run()
        (pause,) = pauses(asked(crawl, B))
        assert 60 <= pause < 61
        assert crawl.crawl.counters.failures == {"no-such-host": 40}

    def test_is_dead_equal_when_its_robots_txt_is_not_requested(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A), robots=False)
        crawl = simulate(mine, self.web()).run()
        assert len(asked(crawl, B)) == 2
        assert crawl.crawl.counters.failures == {"no-such-host": 40}

    def test_is_a_failure_like_any_other_where_no_host_is_suspended(self, simulate, tmp_path):
        mine = with_politeness(topic(tmp_path, A), suspend_s=0.0)
        crawl = simulate(mine, self.web()).run()
        assert len(asked(crawl, B)) == mine.politeness.max_tries
        assert crawl.now - START < 10
        assert crawl.crawl.counters.failures == {"no-such-host": 40}

    def test_that_is_there_the_second_time_is_a_host_like_any_other(self, simulate, tmp_path):
        web = self.web()
        web |= {url: page(url) for url in web if url.startswith(B)}
        web[f"{B}robots.txt"] = [
            failed(f"{B}robots.txt", FailureKind.NO_HOST),
            failed(f"{B}robots.txt", FailureKind.GONE),
        ]
        crawl = simulate(topic(tmp_path, A), web).run()
        assert crawl.crawl.counters.failures == {}

    def test_cannot_be_one_that_answered_before(self, simulate, tmp_path):
        web = self.web()
        web[f"{B}robots.txt"] = failed(f"{B}robots.txt", FailureKind.GONE)
        crawl = simulate(topic(tmp_path, A), web).run()
        assert crawl.crawl.counters.failures == {"no-such-host": 3, "dns": 37}
        assert max(pauses(asked(crawl, B))) >= HOUR_S

    def test_is_suspended_when_only_the_name_service_is_silent(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), self.web(FailureKind.DNS)).run()
        assert crawl.crawl.counters.failures == {"dns": 40}
        assert max(pauses(asked(crawl, B))) >= HOUR_S

    def test_does_not_undo_the_host_whose_robots_txt_points_there(self, simulate, tmp_path):
        web = self.web()
        web |= {url: page(url) for url in web if url.startswith(B)}
        web[f"{B}robots.txt"] = moved(f"{B}robots.txt", "http://nowhere.test/robots.txt")
        lost = "http://nowhere.test/robots.txt"
        web[lost] = failed(lost, FailureKind.NO_HOST)
        crawl = simulate(topic(tmp_path, A), web).run()
        assert crawl.crawl.counters.failures == {"dns": 40}


class TestAFrontierThatOnlyHoldsHostsInBackOff:
    def test_says_so_and_when_the_next_may_be_asked(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40, until=UP_AGAIN)).run()
        report = [(at, wait) for at, wait in crawl.waited if wait.hosts_backing_off]
        assert {wait.hosts_backing_off for _, wait in report} == {1}
        hour_long = [wait for at, wait in report if wait.until - at > 3_000]
        assert hour_long[0].until in {at for at, _ in crawl.asked}

    def test_counts_the_hosts_that_have_links(self, simulate, tmp_path):
        seeds = [f"http://h{n}.test/" for n in range(3)]
        web = {seed: down(seed, until=UP_AGAIN) for seed in seeds}
        web |= {
            f"{seed}robots.txt": failed(f"{seed}robots.txt", FailureKind.GONE) for seed in seeds
        }
        mine = with_politeness(topic(tmp_path, *seeds), max_tries=20)
        crawl = simulate(mine, web).run()
        assert max(wait.hosts_backing_off for _, wait in crawl.waited) == 3
        assert crawl.crawl.counters.fetched == 3

    def test_says_nothing_while_a_host_waits_for_no_more_than_its_delay(self, simulate, tmp_path):
        web = web_with_a_dead_host(links=4)
        web[A] = page(A, *(f"{B}{n}" for n in range(4)), *(f"/{n}" for n in range(9)))
        web |= site(*(page(f"{A}{n}") for n in range(9)))
        crawl = simulate(topic(tmp_path, A, delay_s=60.0), web)
        while len(asked(crawl, A)) < 10:
            crawl.step()
        assert not any(wait.hosts_backing_off for _, wait in crawl.waited)

    def test_is_not_the_end_of_the_crawl(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), web_with_a_dead_host(links=40))
        while not (crawl.waited and crawl.waited[-1][1].hosts_backing_off):
            crawl.step()
        assert not crawl.crawl.is_finished(crawl.now)
        assert isinstance(crawl.crawl.next(crawl.now - 1), Wait)
        assert count_hosts_backing_off(crawl.crawl.frontier.hosts) == 1

    def test_ends_when_the_time_is_over(self, simulate, tmp_path):
        mine = topic(tmp_path, A, budget=Budget(hours=0.5))
        crawl = simulate(mine, web_with_a_dead_host(links=40)).run()
        left = "1 host, 38 links"
        message = "only hosts are left that are not due before the time budget is spent"
        assert crawl.ended == f"{message}: {left}"
        assert crawl.crawl.is_finished(crawl.now)
        assert crawl.now - START < 1_800.0
        assert isinstance(crawl.crawl.next(crawl.now), Done)
