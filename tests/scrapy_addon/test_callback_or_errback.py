"""Each request of a spider ends in its callback or its errback, exactly once."""

import gzip
import json
import socket
from collections.abc import Iterator

import pytest

from tests.scrapy_addon.own_project import Ran, crawl_own, write_project
from tests.support.hostile_hosts import Asked, HostileHosts, pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html

MIDDLEWARE = """
import asyncio
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

class Meddling:
    def process_request(self, request):
        if "ignored" in request.url:
            raise IgnoreRequest("by a middleware")
        if request.url.endswith("/cancelled"):
            raise asyncio.CancelledError
        if request.url.endswith("/changed"):
            request._set_url(request.url.replace("a.test", "b.test"))

    def process_response(self, request, response):
        if "/broken" in request.url:
            raise ZeroDivisionError
        if request.url.endswith("/replaced"):
            return Request(response.urljoin("/instead"), request.callback, errback=request.errback,
                           cb_kwargs=request.cb_kwargs)
        return response
"""

SPIDER = """
import json
import scrapy
from pathlib import Path

class Mine(scrapy.Spider):
    name = "mine"

    async def start(self):
        for case, url, given in json.loads(Path("cases.json").read_text()):
            if case == "unstorable":
                given["meta"] = {"lock": object()}
            yield scrapy.Request(
                url, self.ok, errback=self.failed, cb_kwargs={"case": case}, **given
            )

    def ok(self, response, case):
        yield {"case": case, "end": "callback"}

    def failed(self, failure):
        case = failure.request.cb_kwargs["case"]
        yield {"case": case, "end": type(failure.value).__name__}
        if case == "refused connection":
            then = Path("then").read_text()
            yield scrapy.Request(then, self.ok, cb_kwargs={"case": "yielded by an errback"})
"""


async def hangs(asked: Asked) -> None:
    await (asked.answer(404) if asked.path == "/robots.txt" else asked.until_left())


def ok(*words: str) -> tuple[int, bytes, dict[str, str]]:
    return 200, html(" ".join(words), text=" ".join(f"{word} text" for word in words)), {}


def moved(to: str) -> tuple[int, bytes, dict[str, str]]:
    return 302, b"", {"Location": to}


def hosts(port: int) -> dict:
    gzipped = {"Content_Encoding": "gzip"}
    site = {
        "/robots.txt": (200, "User-agent: *\nDisallow: /denied", {"Content_Type": "text/plain"}),
        "/page": ok("first", "page"),
        "/page-in-other-words": ok("something", "else"),
        "/copy": ok("first", "page"),
        "/polled": ok("first", "page"),
        "/data": (200, "{}", {"Content_Type": "application/json"}),
        "/reset": [None],
        "/fails": (500, b"", {}),
        "/moved": moved("/target"),
        "/target": ok("target", "of", "redirect"),
        "/loop": moved("/loop-2"),
        "/loop-2": moved("/loop"),
        "/itself": moved("/itself"),
        "/away": moved("http://elsewhere.test/"),
        "/large": (200, b"x" * 60_000, {}),
        "/not-packed": (200, b"no gzip", gzipped),
        "/packed": (200, gzip.compress(html("packed in gzip")), gzipped),
        "/broken": ok("broken", "by", "middleware"),
        "/replaced": ok("replaced", "by", "middleware"),
        "/instead": ok("instead", "of", "it"),
        "/then": ok("then", "this"),
    }
    other = {"/changed": ok("page", "of", "another", "host")}
    return {"a.test": pages(site), "b.test": pages(other), "slow.test": hangs}


CASES = {
    # name: (URL, how the request is made, how it ends)
    "page": ("/page", {}, "callback"),
    "no page": ("/data", {}, "callback"),
    "packed": ("/packed", {}, "callback"),
    "same content": ("/copy", {}, "IgnoreRequest"),
    "same content, unfiltered": ("/polled", {"dont_filter": True}, "callback"),
    "no such host": ("http://missing.test/", {}, "CannotResolveHostError"),
    "no such host, waiting": ("http://missing.test/2", {}, "CannotResolveHostError"),
    "refused connection": ("http://closed.test:{closed}/", {}, "DownloadConnectionRefusedError"),
    "refused, waiting": ("http://closed.test:{closed}/2", {}, "DownloadConnectionRefusedError"),
    "broken connection": ("/reset", {}, "DownloadFailedError"),
    "no answer": ("http://slow.test:{port}/", {}, "DownloadTimeoutError"),
    "denied by robots.txt": ("/denied", {}, "RobotsDeniedError"),
    "missing": ("/missing", {}, "HttpError"),
    "missing, wanted": ("/missing-2", {"meta": {"handle_httpstatus_list": [404]}}, "callback"),
    "server error": ("/fails", {}, "HttpError"),
    "redirect": ("/moved", {}, "callback"),
    "redirects without end": ("/loop", {}, "IgnoreRequest"),
    "redirect to itself": ("/itself", {}, "HttpError"),
    "redirect out of scope": ("/away", {}, "IgnoreRequest"),
    "out of scope": ("http://elsewhere.test/2", {}, "IgnoreRequest"),
    "other scheme": ("ftp://a.test/", {}, "IgnoreRequest"),
    "too large": ("/large", {}, "DownloadCancelledError"),
    "not as packed": ("/not-packed", {}, "ContentDecodingError"),
    "ignored by a middleware": ("/ignored", {}, "IgnoreRequest"),
    "broken by a middleware": ("/broken", {}, "ZeroDivisionError"),
    "cancelled by a middleware": ("/cancelled", {}, "CancelledError"),
    "changed by a middleware": ("/changed", {}, "callback"),
    "replaced by a middleware": ("/replaced", {}, "callback"),
    "unstorable": ("/page-in-other-words", {}, "UnstorableValueError"),
}


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    with socket.socket() as bound:  # bound, and nobody listens
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, closed_port: int) -> Ran:
    folder = tmp_path_factory.mktemp("ends")
    local = at("127.0.0.1")
    zone = dict.fromkeys(("a.test", "slow.test", "closed.test"), local)
    zone["b.test"] = at("127.0.0.2")
    with serve_hosts(hosts) as served, serve_names(zone) as names:
        project = write_project(
            folder,
            SPIDER,
            settings={
                "FOCUSED_DNS_SERVERS": names.address,
                "DOWNLOADER_MIDDLEWARES": {"mine.meddling.Meddling": 543},
            },
            timeout_s=6.0,
            politeness="max_tries = 2",
            scope='private_addresses = true\ndeny_hosts = ["elsewhere.test"]\n'
            "max_page_bytes = 50000",
        )
        (project / "mine" / "meddling.py").write_text(MIDDLEWARE)
        (project / "then").write_text(served.url("a.test", "/then"))
        cases = [
            (name, address(url, served, closed_port), how) for name, (url, how, _) in CASES.items()
        ]
        (project / "cases.json").write_text(json.dumps(cases))
        done = crawl_own(project)
    assert done.status == 0, done.output
    return done


def address(url: str, served: HostileHosts, closed_port: int) -> str:
    if url.startswith("/"):
        return served.url("a.test", url)
    return url.format(port=served.port, closed=closed_port)


def ends(ran: Ran, case: str) -> list[str]:
    return [item["end"] for item in ran.items if item["case"] == case]


@pytest.mark.parametrize("case", CASES)
def test_a_request_ends_once(ran, case):
    assert ends(ran, case) == [CASES[case][2]]


def test_an_errback_yields_requests_that_are_requested_before_the_crawl_ends(ran):
    assert ends(ran, "yielded by an errback") == ["callback"]


def test_the_log_names_the_request_that_cannot_be_stored_and_the_value(ran):
    assert "/page-in-other-words> cannot be stored" in ran.output
    assert "meta['lock'] is of the type builtins.object" in ran.output


def test_what_was_refused_is_counted_by_kind(ran):
    failures = ran.stats["failures"]
    assert (failures["no-such-host"], failures["connect"]) == (2, 2)
