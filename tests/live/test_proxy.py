"""A crawl through a proxy obeys robots.txt and the delay of each target host."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.access_rules import Access
from tests.support.crawling import Finished, command, finish, write_topic
from tests.support.forked import ForkedCommand
from tests.support.hostile_hosts import Asked, Behaviour, serve_hosts
from tests.support.recorded_web import html, impolite

HOSTS = ("a.test", "b.test", "c.test")
PAGES = 4
DELAY_S = 0.4
PRIVATE = ("http://127.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://0x7f.1/")
LOCAL = ("http://intranet/", "http://a.local/", "http://metadata.google.internal/computeMetadata/")


async def answer(asked: Asked) -> None:
    """What the proxy brings: robots.txt forbids a page, and the pages link to private addresses."""
    if asked.path.endswith("/robots.txt"):
        await asked.answer(200, "User-agent: *\nDisallow: /3\n", Content_Type="text/plain")
        return
    links = [f"http://{host}/{n}" for host in HOSTS for n in range(PAGES)]
    await asked.answer(
        200, html(asked.path, *links, *PRIVATE, *LOCAL, text=f"whales on {asked.path} of the sea")
    )


def behaving(port: int) -> Mapping[str, Behaviour]:
    private = ("127.0.0.1", "169.254.169.254", "[::1]", "0x7f.1", "[")
    private += ("intranet", "a.local", "metadata.google.internal")
    return dict.fromkeys((*HOSTS, *private), answer)


def crawl(topic: Path, environment: Mapping[str, str], **settings: Any) -> Finished:
    process = ForkedCommand(command(topic, "", **settings)[2:], environment=environment)
    return finish(process, topic)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, list[Access]]:
    """The proxy of the environment; names that no name service knows."""
    topic = write_topic(
        tmp_path_factory.mktemp("proxy"),
        "http://a.test/0",
        delay_s=DELAY_S,
        politeness="fetch_time_factor = 0\nsuspend_s = 0\nmax_tries = 1",
    )
    with serve_hosts(behaving) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        done = crawl(topic, {"http_proxy": address, "HTTP_PROXY": address, "no_proxy": ""})
    return done, proxy.accesses


def test_all_requests_go_to_the_proxy_and_their_pages_come(crawled):
    done, accesses = crawled
    assert done.status == 0, done.output
    allowed = {f"http://{host}/{n}" for host in HOSTS for n in range(PAGES) if n != 3}
    assert set(done.fetched()) == allowed
    robots = {f"http://{host}/robots.txt" for host in HOSTS}
    assert sorted(access.path for access in accesses) == sorted(allowed | robots)


def test_robots_txt_of_each_host_comes_first_and_is_obeyed(crawled):
    done, accesses = crawled
    for host in HOSTS:
        first, *_ = sorted((x for x in accesses if x.host == host), key=lambda access: access.start)
        assert first.path == f"http://{host}/robots.txt"
    pages = done.pages
    assert set(pages[pages["failure"] == "robots"]["url"]) == {f"http://{h}/3" for h in HOSTS}


def test_each_target_host_has_its_own_delay(crawled):
    assert not impolite(crawled[1], DELAY_S, from_end=False)


def test_no_private_address_and_local_name_is_requested_through_the_proxy(crawled):
    _, accesses = crawled
    assert {access.host for access in accesses} == set(HOSTS)
