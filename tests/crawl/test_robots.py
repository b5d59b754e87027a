"""robots.txt: fetched before a site's first page, obeyed, renewed."""

from dataclasses import replace
from itertools import pairwise

import pytest

from focused.crawl import Wait
from focused.crawl.hosts.robots_cache import RobotsCache
from focused.frontier.host import Host
from focused.storage.rows import pack
from focused.web.page import Failed, FailureKind
from tests.support.simulated import START, failed, moved, page, raw, site, topic, with_politeness

DAY_S = 86_400.0


def robots(url: str, text: str):
    return raw(url, text, "text/plain")


def denying(path: str, url: str = "http://a.test/robots.txt"):
    return robots(url, f"User-agent: *\nDisallow: {path}\n")


def test_robots_txt_is_asked_once_before_the_hosts_first_page(simulate, tmp_path):
    web = site(page("http://a.test/", "/b"), page("http://a.test/b"))
    done = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert [url for _, url in done.asked] == [
        "http://a.test/robots.txt",
        "http://a.test/",
        "http://a.test/b",
    ]


def test_http_and_https_of_a_host_have_rules_of_their_own(simulate, tmp_path):
    web = site(
        page("http://a.test/", "https://a.test/x", "/x"),
        page("http://a.test/x"),
        page("https://a.test/x"),
        denying("/x", "https://a.test/robots.txt"),
    )
    done = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert done.asked[0][1] == "http://a.test/robots.txt"
    assert [url for _, url in done.asked].index("https://a.test/robots.txt") > 1
    assert sorted(done.urls) == ["http://a.test/", "http://a.test/x"]
    assert done.rows["https://a.test/x"]["failure"] == "robots"


def test_what_robots_txt_denies_is_counted_and_never_requested(simulate, tmp_path):
    web = site(page("http://a.test/", "/secret/1", "/secret/2", "/open"), denying("/secret"))
    done = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert done.urls == ["http://a.test/", "http://a.test/open"]
    assert done.crawl.counters.robots_excluded == 2
    assert done.rows["http://a.test/secret/1"]["failure"] == "robots"


def test_with_robots_switched_off_robots_txt_is_not_requested(simulate, tmp_path):
    mine = topic(tmp_path, "http://a.test/secret")
    mine = replace(mine, politeness=replace(mine.politeness, robots=False))
    done = simulate(mine, site(page("http://a.test/secret"), denying("/secret"))).run()
    assert [url for _, url in done.asked] == ["http://a.test/secret"]


@pytest.mark.parametrize(
    "trouble",
    [FailureKind.SERVER_ERROR, FailureKind.TIMEOUT, FailureKind.THROTTLED, FailureKind.DNS],
)
def test_an_unreachable_robots_txt_is_backed_off_then_the_host_suspended(
    simulate, tmp_path, trouble
):
    web = site(page("http://a.test/", "http://b.test/1"), page("http://b.test/1"))
    web["http://b.test/robots.txt"] = failed("http://b.test/robots.txt", trouble)
    done = simulate(topic(tmp_path, "http://a.test/", "http://b.test/2"), web).run()
    first, second, third, an_hour_later, *_ = done.times("http://b.test/robots.txt")
    assert second - first >= 1
    assert third - second >= 2
    assert an_hour_later - third >= 3_600
    assert done.urls == ["http://a.test/"]
    assert {done.rows[f"http://b.test/{n}"]["failure"] for n in (1, 2)} == {trouble.value}
    assert done.crawl.counters.failures == {trouble.value: 2}
    assert done.crawl.counters.robots_excluded == 0


def test_a_robots_txt_that_comes_back_lets_the_host_in(simulate, tmp_path):
    web = site(page("http://a.test/"))
    url = "http://a.test/robots.txt"
    web[url] = [failed(url, FailureKind.SERVER_ERROR), denying("/x")]
    done = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert done.urls == ["http://a.test/"]
    assert done.times(url) == [0.0, 1.1]


def test_a_robots_txt_that_is_not_there_allows_all(simulate, tmp_path):
    missing = failed("http://a.test/robots.txt", FailureKind.GONE)
    web = site(page("http://a.test/"), missing)
    done = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert done.rows["http://a.test/"]["outcome"] == "fetched"
    assert len(done.asked) == 2


def chain(hops: int):
    urls = ["http://a.test/robots.txt", *(f"http://a.test/r{n}" for n in range(1, hops + 1))]
    answers = [moved(here, there) for here, there in pairwise(urls)]
    return [*answers, denying("/x", urls[-1])]


def test_five_redirects_of_robots_txt_are_followed_each_after_the_hosts_delay(simulate, tmp_path):
    web = site(page("http://a.test/x"), *chain(5))
    done = simulate(topic(tmp_path, "http://a.test/x"), web).run()
    assert [url.rsplit("/", 1)[1] for _, url in done.asked] == [
        "robots.txt", "r1", "r2", "r3", "r4", "r5",
    ]  # fmt: skip
    times = [at for at, _ in done.asked]
    assert all(later - sooner >= 1.0 for sooner, later in pairwise(times))
    assert done.rows["http://a.test/x"]["failure"] == "robots"


def test_a_longer_chain_counts_as_no_rules_at_all(simulate, tmp_path):
    web = site(page("http://a.test/x"), *chain(6))
    done = simulate(topic(tmp_path, "http://a.test/x"), web).run()
    assert done.asked[-1][1] == "http://a.test/x"
    assert "http://a.test/r6" not in [url for _, url in done.asked]


def test_rules_are_requested_again_when_they_are_out_of_date(simulate, tmp_path):
    url = "http://a.test/robots.txt"
    web = site(page("http://a.test/", "/x", "/y"), page("http://a.test/x"), page("http://a.test/y"))
    web[url] = [robots(url, ""), denying("/")]
    crawl = simulate(topic(tmp_path, "http://a.test/"), web).run(pages=1)
    crawl.now += DAY_S + 1
    crawl.run()
    assert crawl.urls == ["http://a.test/"]
    assert len(crawl.times(url)) == 2


def after_a_day(simulate, tmp_path, *answers):
    """A crawl that has a page, and after a day gets ``answers`` to robots.txt; /x and /y wait."""
    url = "http://a.test/robots.txt"
    web = site(page("http://a.test/", "/x", "/y"), page("http://a.test/x"), page("http://a.test/y"))
    web[url] = [denying("/x"), *answers]
    crawl = simulate(topic(tmp_path, "http://a.test/"), web).run(pages=1)
    crawl.now += DAY_S + 1
    return crawl


def test_while_robots_txt_fails_its_copy_is_obeyed_when_all_tries_are_spent(simulate, tmp_path):
    gone = failed("http://a.test/robots.txt", FailureKind.SERVER_ERROR)
    crawl = after_a_day(simulate, tmp_path, gone).run()
    assert crawl.urls == ["http://a.test/", "http://a.test/y"]
    assert crawl.rows["http://a.test/x"]["failure"] == "robots"
    assert len(crawl.times("http://a.test/robots.txt")) == 4


def test_a_copy_is_renewed_as_soon_as_a_try_succeeds(simulate, tmp_path):
    gone = failed("http://a.test/robots.txt", FailureKind.TIMEOUT)
    crawl = after_a_day(simulate, tmp_path, gone, denying("/y")).run()
    assert crawl.urls == ["http://a.test/", "http://a.test/x"]
    assert crawl.rows["http://a.test/y"]["failure"] == "robots"


def test_a_copy_is_tried_to_be_renewed_within_the_hour(simulate, tmp_path):
    gone = failed("http://a.test/robots.txt", FailureKind.SERVER_ERROR)
    crawl = after_a_day(simulate, tmp_path, gone, gone, gone, denying("/")).run(pages=2)
    crawl.now += 3_601
    crawl.crawl.seed(["http://a.test/late"], crawl.now)
    crawl.run()
    assert crawl.rows["http://a.test/late"]["failure"] == "robots"


@pytest.mark.parametrize(("days", "brought"), [(29, []), (31, ["http://a.test/"])])
def test_a_robots_txt_that_was_never_had_allows_all_after_30_days(
    simulate, tmp_path, days, brought
):
    url = "http://a.test/robots.txt"
    web = site(page("http://a.test/"))
    web[url] = failed(url, FailureKind.SERVER_ERROR)
    crawl = simulate(topic(tmp_path, "http://a.test/"), web)
    crawl.step()
    crawl.now += days * DAY_S
    crawl.restart().run()
    assert crawl.urls == brought


def test_a_restarted_crawl_keeps_the_rules_it_has(simulate, tmp_path):
    web = site(page("http://a.test/", "/x"), denying("/x"))
    crawl = simulate(topic(tmp_path, "http://a.test/"), web).run(pages=1)
    crawl.restart().run()
    assert len(crawl.times("http://a.test/robots.txt")) == 1
    assert crawl.rows["http://a.test/x"]["failure"] == "robots"


def test_rules_outlast_a_crawl_delay_that_is_longer_than_they_may_be_kept(simulate, tmp_path):
    rules = robots("http://a.test/robots.txt", "User-agent: *\nCrawl-delay: 900\n")
    rules = replace(rules, headers={**rules.headers, "cache-control": "no-store"})
    links = [f"http://a.test/{n}" for n in range(5)]
    web = site(page("http://a.test/", *links), *map(page, links), rules)
    crawl = simulate(topic(tmp_path, "http://a.test/"), web).run()
    assert crawl.crawl.counters.fetched == 6


def test_a_copy_is_used_when_renewal_is_put_off_for_as_long_as_a_copy_lasts(simulate, tmp_path):
    rules = denying("/x")
    asks_for_an_hour = failed(rules.url, FailureKind.SERVER_ERROR, retry_after_s=3_600.0)
    web = site(page("http://a.test/", "/x"), page("http://a.test/later"))
    web |= {rules.url: [rules, asks_for_an_hour]}
    crawl = simulate(topic(tmp_path, "http://a.test/"), web).run(pages=1)
    crawl.now += DAY_S
    crawl.crawl.enqueue_url("http://a.test/later", 1.0, crawl.now)
    assert crawl.run(most_steps=100).urls[-1] == "http://a.test/later"


class FileOfHosts:
    """Hosts' durable rows, of which robots.txt rules are read: each time is noted."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self._kept: dict[str, dict[str, object]] = {}

    def robots(self, host):
        self.read.append(host.name)
        return self._kept.get(host.name, {})

    def keep_robots(self, host, scheme, state):
        self._kept.setdefault(host.name, {})[scheme] = state


def test_large_files_push_parsed_ones_out_of_memory_and_are_read_again():
    hosts = FileOfHosts()
    gate = RobotsCache(hosts, "FocusedTest/0.1", obey=True)
    hosts_of = {f"h{n}.test": Host(f"h{n}.test", n) for n in range(40)}
    for name, host in hosts_of.items():
        rules = "".join(f"Disallow: /{n}*\n" for n in range(6_000))
        text = f"User-agent: *\nDisallow: /{name}\n{rules}"
        gate.learn(host, f"http://{name}/", robots(f"http://{name}/robots.txt", text), START)
    denied = [
        gate.allows(host, f"http://{name}/{name}") for name, host in reversed(hosts_of.items())
    ]
    assert denied == [False] * 40
    assert "h39.test" not in hosts.read
    assert 0 < len(hosts.read) < 40


def test_a_long_file_is_stored_as_the_rules_for_our_user_agent_alone():
    hosts = FileOfHosts()
    others = "".join(f"User-agent: a{n}\nDisallow: /{n}\n" for n in range(5_000))
    text = f"{others}User-agent: FocusedTest\nDisallow: /x\nCrawl-delay: 7"
    host = Host("a.test", 1)
    RobotsCache(hosts, "FocusedTest/0.1", obey=True).learn(
        host, "http://a.test/", robots("http://a.test/robots.txt", text), START
    )
    (state,) = hosts.robots(host).values()
    assert len(pack(state)) < 300
    again = RobotsCache(hosts, "FocusedTest/0.2", obey=True)
    assert [again.allows(host, f"http://a.test/{path}") for path in "xy"] == [False, True]
    assert not again.needs_fetch(host, "http://a.test/", START)
    other = RobotsCache(hosts, "OtherTest/0.1", obey=True)
    assert other.needs_fetch(host, "http://a.test/", START)
    assert not other.allows(host, "http://a.test/y")


def test_a_file_that_could_not_be_parsed_counts_as_unreachable(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, "http://a.test/"), {}).crawl
    rules = denying("/y", "http://x.test/robots.txt")
    stopped = Failed(rules.url, FailureKind.PARSE_TIMEOUT, 200)
    crawl.record_robots("http://x.test/z", rules, START, stopped)
    assert crawl.hosts.robots.may_fetch("http://x.test/z", START) is None
    assert crawl.hosts.due_at("http://x.test/z") > START


class TestRequestsOutsideOfTheFrontier:
    """``robots.may_fetch`` and ``record_robots``: what a driver asks for requests of its own."""

    @pytest.fixture
    def crawl(self, simulate, tmp_path):
        return simulate(topic(tmp_path, "http://a.test/"), {}).crawl

    def test_it_is_not_known_before_the_rules_were_requested(self, crawl):
        assert crawl.hosts.robots.may_fetch("http://x.test/y", START) is None

    def test_learned_rules_decide(self, crawl):
        crawl.record_robots("http://x.test/y", denying("/y", "http://x.test/robots.txt"), START)
        assert crawl.hosts.robots.may_fetch("http://x.test/y", START) is False
        assert crawl.hosts.robots.may_fetch("http://x.test/z", START) is True

    def test_rules_of_one_scheme_say_nothing_about_the_other(self, crawl):
        crawl.record_robots("http://x.test/y", denying("/y", "http://x.test/robots.txt"), START)
        assert crawl.hosts.robots.may_fetch("https://x.test/y", START) is None

    def test_an_unreachable_robots_txt_leaves_it_open(self, crawl):
        url = "http://x.test/robots.txt"
        crawl.record_robots("http://x.test/y", failed(url, FailureKind.SERVER_ERROR), START)
        assert crawl.hosts.robots.may_fetch("http://x.test/y", START) is None
        assert crawl.hosts.due_at("http://x.test/y") > START

    def test_the_hosts_own_links_wait_for_its_delay_after_such_a_request(self, crawl):
        crawl.record_robots("http://a.test/own", denying("/x"), START)
        assert crawl.next(START) == Wait(START + 1.0)

    def test_rules_end_with_their_time(self, crawl):
        crawl.record_robots("http://x.test/y", denying("/", "http://x.test/robots.txt"), START)
        assert crawl.hosts.robots.may_fetch("http://x.test/y", START + DAY_S + 1) is None

    def test_such_a_request_starts_the_hosts_delay_again(self, crawl):
        crawl.hosts.direct_requests.mark_sent(
            crawl.hosts.direct_requests.add("http://a.test/own", START), START
        )
        assert crawl.hosts.due_at("http://a.test/") == START + 1.0


def test_a_robots_txt_that_is_kept_on_another_host_waits_for_that_host_to_be_due(
    simulate, tmp_path
):
    web = site(
        moved("http://a.test/robots.txt", "http://b.test/shared.txt"),
        denying("/never", "http://b.test/shared.txt"),
        page("http://a.test/"),
        page("http://b.test/", "/2", "/3"),
        page("http://b.test/2"),
        page("http://b.test/3"),
    )
    subject = topic(tmp_path, "http://b.test/", "http://a.test/", delay_s=10.0)
    done = simulate(subject, web).run()
    at_b = [at for at, url in done.asked if url.startswith("http://b.test/")]
    assert len(at_b) == 5
    assert all(later - earlier >= 10.0 for earlier, later in pairwise(at_b))


def test_a_robots_txt_that_moved_to_a_private_address_is_out_of_reach(simulate, tmp_path):
    inside = "http://inside.test/robots.txt"
    web = site(
        moved("http://a.test/robots.txt", inside),
        failed(inside, FailureKind.PRIVATE_ADDRESS),
        page("http://a.test/"),
    )
    subject = with_politeness(topic(tmp_path, "http://a.test/"), suspend_s=0.0)
    crawl = simulate(subject, web).run()
    assert len(crawl.times("http://a.test/robots.txt")) == 3
    assert crawl.times("http://a.test/") == []
    assert crawl.crawl.counters.failures == {"connect": 1}
