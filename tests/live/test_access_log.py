"""The server's log of a concurrent crawl shows that each politeness rule was obeyed."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.support.access_rules import ROBOTS, Access, Rules, violations
from tests.support.crawling import Finished, crawl, write_topic
from tests.support.hostile_hosts import Answer, Behaviour, pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.own_downloads import own_downloads
from tests.support.recorded_web import html

DELAY_S, FACTOR = 0.2, 3.0
PAGES = 5
SHARED, ALSO_SHARED = "127.0.0.21", "127.0.0.22"
ADDRESSES = {
    **dict.fromkeys(("a.test", "b.test", "c.test", "pictures.test"), SHARED),
    **dict.fromkeys(("d.test", "e.test", "f.test"), ALSO_SHARED),
    **dict.fromkeys(("calm.test", "closed.test"), "127.0.0.23"),
    **dict.fromkeys(("mine.test", "www.mine.test"), "127.0.0.24"),
    **dict.fromkeys(("slow.test", "moved.test"), "127.0.0.25"),
    "busy.test": "127.0.0.26",
}
LINKED = [host for host in ADDRESSES if host != "pictures.test"]
RULES = Rules(
    DELAY_S,
    delays={"mine.test": 0.5, "www.mine.test": 0.5},
    crawl_delays={"calm.test": 0.7},
    closed={"closed.test": ["/private"]},
    fetch_time_factor=FACTOR,
)
RETRY_AFTER_S = 2  # longer than the first back-off, which would hide it
HASTE = {
    "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
    "DOWNLOAD_DELAY": 0,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "ROBOTSTXT_OBEY": False,
    "AUTOTHROTTLE_ENABLED": True,
    "RETRY_ENABLED": True,
    "RETRY_TIMES": 50,
    "REDIRECT_ENABLED": True,
    "METAREFRESH_ENABLED": True,
    "COOKIES_ENABLED": True,
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_IGNORE_HTTP_CODES": "429,503",  # or a retry would be answered from the cache
    "USER_AGENT": "Hasty/1.0",
}
TEXT = {"Content_Type": "text/plain"}
BYPASSING = (
    *(("a.test", f"/picture-{n}") for n in range(3)),
    *(("calm.test", f"/picture-{n}") for n in range(2)),
    *(("pictures.test", f"/picture-{n}") for n in range(3)),
    ("slow.test", "/picture-0"),
    ("busy.test", "/throttled-picture"),
    ("closed.test", "/private/picture"),
)


def web(port: int) -> Mapping[str, Behaviour]:
    """Each host's front page links to its others and to the next host's front page."""

    def url(host: str, path: str) -> str:
        return f"http://{host}:{port}{path}"

    def body(host: str, number: int) -> str:
        onward = LINKED[(LINKED.index(host) + number) % len(LINKED)]
        links = [f"/{n}" for n in range(1, PAGES)] if number == 0 else [url(onward, "/0")]
        if number == 1:
            links += [url("closed.test", f"/private/{host}"), url("moved.test", f"/to-{host}")]
        return html(f"whale {host} {number}", *links).decode()

    sites: dict[str, dict[str, Answer | Sequence[Answer | None]]] = {
        host: {f"/{n}": (200, body(host, n), {}) for n in range(PAGES)} for host in LINKED
    }
    for host, path in BYPASSING:
        sites.setdefault(host, {})[path] = (200, b"x", {"Content_Type": "image/png"})
    sites["calm.test"][ROBOTS] = (200, "User-agent: *\nCrawl-delay: 0.7\n", TEXT)
    sites["closed.test"][ROBOTS] = (200, "User-agent: *\nDisallow: /private\n", TEXT)
    sites["d.test"][ROBOTS] = (301, "", {"Location": url("a.test", "/robots-of-d.txt")})
    sites["a.test"]["/robots-of-d.txt"] = (200, "User-agent: *\nDisallow: /nothing\n", TEXT)
    for number, host in enumerate(LINKED):
        target = url("closed.test", "/private/by-redirect") if number == 0 else url(host, "/1")
        sites["moved.test"][f"/to-{host}"] = (302, "", {"Location": target})
    wait = {"Retry_After": str(RETRY_AFTER_S)}
    busy = sites["busy.test"]
    for path, status in (("/1", 503), ("/2", 429), ("/throttled-picture", 429)):
        busy[path] = [(status, "", wait), busy[path]]
    busy["/3"] = [None, busy["/3"]]
    return {
        host: pages(answers, latency_s=0.12 if host == "slow.test" else 0.01)
        for host, answers in sites.items()
    }


@dataclass(frozen=True)
class Crawled:
    done: Finished
    accesses: Sequence[Access]
    came: Mapping[str, str]
    most_open: Mapping[str, int]

    def asked(self, host: str) -> Counter[str]:
        return Counter(access.path for access in self.accesses if access.host == host)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    folder = tmp_path_factory.mktemp("log")
    zone = {host: at(address) for host, address in ADDRESSES.items()}
    with serve_hosts(web) as served, serve_names(zone) as name_server:
        topic = write_topic(
            folder,
            *(served.url(host, "/0") for host in ("a.test", "d.test", "calm.test", "mine.test")),
            delay_s=DELAY_S,
            politeness=f"fetch_time_factor = {FACTOR}\ndelays = {{ 'mine.test' = 0.5 }}",
            scope="private_addresses = true",
        )
        done = crawl(
            topic,
            "",
            FOCUSED_DNS_SERVERS=name_server.address,
            **own_downloads(
                folder / "came.json",
                *(served.url(host, path) for host, path in BYPASSING),
                AT_ONCE=1,
            ),
            HTTPCACHE_DIR=folder / "cache",
            **HASTE,
        )
    assert done.status == 0, done.output
    came = json.loads((folder / "came.json").read_text())
    return Crawled(done, served.accesses, came, served.most_open)


def test_no_rule_was_broken(crawled):
    assert violations(crawled.accesses, RULES) == []


def test_no_address_had_a_second_connection_open_not_even_an_idle_one(crawled):
    assert crawled.most_open == dict.fromkeys(ADDRESSES.values(), 1)


def test_hosts_were_asked_at_the_same_time_as_others(crawled):
    one, *others = sorted(crawled.accesses, key=lambda access: access.start)
    overlaps = 0
    for other in others:
        overlaps += other.start < one.end
        one = max(one, other, key=lambda access: access.end)
    assert overlaps > 10


def test_each_page_was_fetched(crawled):
    hosts = [url.split("/")[2].partition(":")[0] for url in crawled.done.fetched()]
    assert Counter(hosts) == dict.fromkeys(LINKED, PAGES)


def test_redirects_and_links_led_to_no_closed_page(crawled):
    assert set(crawled.asked("moved.test")) >= {f"/to-{host}" for host in LINKED}
    assert set(crawled.asked("closed.test")) == {ROBOTS, *(f"/{n}" for n in range(PAGES))}


def test_what_failed_was_requested_again_after_its_wait(crawled):
    asked = crawled.asked("busy.test")
    assert {path: asked[path] for path in ("/1", "/2", "/3")} == {"/1": 2, "/2": 2, "/3": 2}


def test_what_bypassed_the_frontier_came(crawled):
    came = {url.split("/", 3)[3]: received for url, received in crawled.came.items()}
    assert came.pop("private/picture") == "RobotsDeniedError"
    assert came.pop("throttled-picture") == "429"
    assert set(came.values()) == {"200"}


def test_robots_txt_was_requested_once_a_host(crawled):
    assert {host: crawled.asked(host)[ROBOTS] for host in ADDRESSES} == dict.fromkeys(ADDRESSES, 1)


def test_a_slow_host_was_asked_less_often(crawled):
    """By its answers' time, as Mercator did: three times 0.12 s is more than the delay."""
    times = sorted(access.start for access in crawled.accesses if access.host == "slow.test")
    gaps_s = [after - before for before, after in pairwise(times)]
    assert min(gaps_s) >= 0.12 * (1 + FACTOR) - RULES.slack_s
