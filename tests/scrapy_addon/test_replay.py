"""Real Scrapy crawls over the replay server."""

import json
from typing import Any

import pytest
from scrapy.settings import Settings

from focused.errors import ConfigurationError
from focused.scrapy_addon.scrapy_settings import check_replay_address, install_replay
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from tests.support.forked import run_forked
from tests.support.recorded_web import MemoryWeb, Served, answer, html, page, redirect, served

# Writes a line for each thing that the spider or a signal handler sees.
SPIDER = """
import json, sys
import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess

options = json.loads(sys.argv[1])

def say(**what):
    print(json.dumps(what), flush=True)

class Probe(scrapy.Spider):
    name = "probe"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.saw_headers, signals.headers_received)
        return spider

    def saw_headers(self, request):
        say(headers_of=request.url)

    async def start(self):
        for url in options["urls"]:
            yield scrapy.Request(url, errback=self.failed, meta=options["meta"])

    def parse(self, response):
        say(
            url=response.url,
            asked=response.request.url,
            status=response.status,
            type=type(response).__name__,
            text=response.text,
            slot=response.meta["download_slot"],
            latency=response.meta["download_latency"],
            assign_address=None if response.ip_address is None else str(response.ip_address),
            sent=sorted(name.decode() for name in response.request.headers),
        )
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, errback=self.failed)

    def failed(self, failure):
        kinds = [kind.__name__ for kind in type(failure.value).__mro__]
        say(failed=failure.request.url, error=kinds[0], message=str(failure.value))

process = CrawlerProcess({"LOG_LEVEL": "ERROR", "RETRY_ENABLED": False, **options["settings"]})
process.crawl(Probe)
process.start()
"""


HANDLERS = dict.fromkeys(
    ("http", "https"), "focused.scrapy_addon.replay_handler.ReplayDownloadHandler"
)


def crawl(
    site: Served, *urls: str, meta: dict[str, Any] | None = None, **settings: Any
) -> list[dict[str, Any]]:
    options = {
        "urls": urls,
        "meta": meta or {},
        "settings": {"DOWNLOAD_HANDLERS": HANDLERS, "FOCUSED_REPLAY": site.address, **settings},
    }
    done = run_forked(["-c", SPIDER, json.dumps(options)])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def pages_of(seen: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["url"]: each for each in seen if "url" in each}


WEB = MemoryWeb(
    page(
        "https://a.example/",
        html("secure a", "/more?x=1", "http://b.example/", "http://c.example/"),
    ),
    page("http://a.example/", html("plain a")),
    page("https://a.example/more?x=1", html("more a")),
    redirect("http://b.example/", "https://b.example/new/"),
    redirect("https://b.example/new/", "http://c.example/landed", status=302),
    page("http://c.example/landed", html("landed on c")),
    page("http://c.example/private", html("private")),
    page(
        "http://c.example/robots.txt",
        "User-agent: *\nDisallow: /private",
        content_type="text/plain",
    ),
    answer(
        "http://c.example/",
        200,
        html("greeting"),
        content_type="text/html",
        set_cookie="seen=1; Path=/",
    ),
    page("http://big.example/", html("big", text="x" * 5000)),
)


def test_pages_of_both_schemes_and_of_redirects_come_under_their_own_addresses():
    with served(WEB) as site:
        seen = pages_of(crawl(site, "https://a.example/", "http://a.example/"))
    assert seen.keys() == {
        "https://a.example/",
        "http://a.example/",
        "https://a.example/more?x=1",
        "http://c.example/landed",
        "http://c.example/",
    }
    assert all(each["asked"] == url for url, each in seen.items())
    assert "secure a" in seen["https://a.example/"]["text"]
    assert "plain a" in seen["http://a.example/"]["text"]
    assert {each["type"] for each in seen.values()} == {"HtmlResponse"}


def test_slots_are_of_the_hosts_and_latency_is_measured():
    with served(WEB) as site:
        seen = pages_of(crawl(site, "https://a.example/more?x=1", "http://c.example/"))
    assert {url: each["slot"] for url, each in seen.items()} == {
        "https://a.example/more?x=1": "a.example",
        "http://c.example/": "c.example",
    }
    assert all(0 < each["latency"] < 60 for each in seen.values())


def test_no_host_stands_where_the_replay_server_does():
    with served(WEB) as site:
        seen = pages_of(crawl(site, "https://a.example/", "http://big.example/"))
    assert {each["assign_address"] for each in seen.values()} == {None}


def test_the_server_is_asked_with_the_crawls_own_hosts_and_user_agent():
    with served(WEB) as site:
        crawl(site, "http://b.example/", USER_AGENT="tester/1 (+mailto:me@example.org)")
    asked = [(each.scheme, each.host, each.path) for each in site.accesses]
    assert asked == [
        ("http", "b.example", "/"),
        ("https", "b.example", "/new/"),
        ("http", "c.example", "/landed"),
    ]
    assert {each.user_agent for each in site.accesses} == {"tester/1 (+mailto:me@example.org)"}


def test_nothing_of_the_replay_is_left_in_the_request_or_its_signals():
    with served(WEB) as site:
        seen = crawl(site, "http://a.example/")
    assert {"headers_of": "http://a.example/"} in seen
    assert not [name for name in pages_of(seen)["http://a.example/"]["sent"] if "Focused" in name]


def test_an_unknown_host_fails_as_on_the_live_web():
    with served(WEB) as site:
        (seen,) = [each for each in crawl(site, "https://nowhere.example/") if "failed" in each]
    assert seen["failed"] == "https://nowhere.example/"
    assert seen["error"] == "CannotResolveHostError"
    assert "nowhere.example" in seen["message"]


def test_a_proxy_of_the_environment_is_passed_by():
    urls = "http://a.example/", "https://a.example/more?x=1"
    with served(WEB) as site:
        seen = crawl(site, *urls, meta={"proxy": "http://127.0.0.1:9"})
    assert pages_of(seen).keys() == set(urls)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("*:kind=drop-headers", "DownloadFailedError"),
        ("*:kind=drop-body", "ResponseDataLossError"),
        ("*:kind=slow,bytes_per_s=100", "DownloadTimeoutError"),
        ("*:kind=latency,latency_s=50", "DownloadTimeoutError"),
    ],
)
def test_a_fault_gives_the_error_that_the_live_web_gives(fault, error):
    with served(WEB, FaultPlan((parse_fault(fault),))) as site:
        timeout_s = 1 if "Timeout" in error else 60
        seen = crawl(site, "http://big.example/", DOWNLOAD_TIMEOUT=timeout_s)
    (failed,) = [each for each in seen if "failed" in each]
    assert (failed["failed"], failed["error"]) == ("http://big.example/", error)


def test_the_server_missing_is_a_refused_connection():
    with served(WEB) as site:
        pass
    (seen,) = crawl(site, "http://a.example/")
    assert seen["error"] == "DownloadConnectionRefusedError"


@pytest.mark.parametrize("address", ["", "8080", "127.0.0.1", "127.0.0.1:", "h:0", "h:http"])
def test_an_address_of_another_form_is_refused(address):
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        check_replay_address(address)


def test_without_the_setting_nothing_is_installed():
    settings = Settings({"DOWNLOAD_HANDLERS": {"http": "mine"}})
    install_replay(settings)
    assert settings.getdict("DOWNLOAD_HANDLERS") == {"http": "mine"}


def test_with_the_setting_http_and_https_are_replayed_and_other_schemes_stay():
    settings = Settings(
        {"FOCUSED_REPLAY": "127.0.0.1:8080", "DOWNLOAD_HANDLERS": {"http": "mine", "ftp": "mine"}},
        priority="cmdline",
    )
    install_replay(settings)
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    assert handlers["ftp"] == "mine"
    assert handlers["http"] == handlers["https"]
    assert handlers["http"].endswith("ReplayDownloadHandler")
