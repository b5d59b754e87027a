"""robots.txt as servers send it, over real HTTP: compressed, endless, mistyped, broken."""

from __future__ import annotations

import gzip
import zlib

import pytest

from tests.live import hostile_server
from tests.live.hostile_server import Play, endless, hostile, packed
from tests.support.crawling import write_topic
from tests.support.warm import crawl_warm

RULES = b"User-agent: *\nDisallow: /denied\n"
TEXT = "Content-Type: text/plain"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
LINE = b"#" * 999 + b"\n"
BOMB_LINES = 200_000
OBEYED, OPEN, SHUT = {"/open"}, {"/open", "/denied"}, set[str]()


def answer(body: bytes, *headers: str, status: str = "200 OK") -> Play:
    """A whole answer; the server closes after each, and says so."""
    return hostile_server.answer(body, "Connection: close", *headers, status=status)


FILES: dict[str, tuple[Play, set[str]]] = {
    "plain": (answer(RULES, TEXT), OBEYED),
    "gzip": (answer(gzip.compress(RULES), "Content-Encoding: gzip"), OBEYED),
    "deflate": (answer(zlib.compress(RULES), "Content-Encoding: deflate"), OBEYED),
    "gzip-bomb": (
        packed(
            lambda: gzip.compress(RULES + LINE * BOMB_LINES),
            "Connection: close",
            "Content-Encoding: gzip",
        ),
        OBEYED,
    ),
    "no-gzip": (answer(RULES, "Content-Encoding: gzip"), SHUT),
    "half-a-gzip": (answer(gzip.compress(RULES)[:-10], "Content-Encoding: gzip"), SHUT),
    "not-asked-for": (answer(RULES, "Content-Encoding: br"), SHUT),
    "seventeen-megabytes": (
        endless(OK + b"Content-Length: 17000000\r\n\r\n" + RULES, LINE),
        OBEYED,
    ),
    "without-end": (endless(OK + b"\r\n" + RULES, LINE), OBEYED),
    "one-line-without-end": (endless(OK + b"\r\n" + RULES + b"Disallow: /", b"a" * 9_999), OBEYED),
    "said-to-be-html": (answer(RULES, "Content-Type: text/html"), OBEYED),
    "said-to-be-a-picture": (answer(RULES, "Content-Type: image/png"), OBEYED),
    "said-to-be-utf-16": (answer(RULES, "Content-Type: text/plain; charset=utf-16"), OBEYED),
    "utf-16": (answer(RULES.decode().encode("utf-16"), TEXT), OBEYED),
    "carriage-returns": (answer(RULES.replace(b"\n", b"\r"), TEXT), OBEYED),
    "nul-bytes": (answer(b"\0\0\n" + RULES + b"\0", TEXT), OBEYED),
    "page-not-found": (answer(b"<!doctype html><title>Not found</title><p>whales"), OPEN),
    "nothing": (answer(b"", TEXT), OPEN),
    "no-content": (answer(b"", status="204 No Content"), OPEN),
    "gone": (answer(RULES, TEXT, status="410 Gone"), OPEN),
    "not-now": (answer(RULES, TEXT, status="503 Not now"), SHUT),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Which pages each host was asked for."""
    links = [f"http://{name}.test{path}" for name in FILES for path in ("/open", "/denied")]
    start = "<title>whales</title>" + "".join(f'<a href="{link}">whales</a>' for link in links)
    plays = {"start.test/": answer(start.encode())}
    for name, (robots, _) in FILES.items():
        plays[f"{name}.test/robots.txt"] = robots
        for path in ("/open", "/denied"):
            plays[f"{name}.test{path}"] = answer(f"<p>whales of {name}{path}".encode())
    topic = write_topic(
        tmp_path_factory.mktemp("robots"),
        "http://start.test/",
        politeness="max_tries = 1\nsuspend_s = 0",
        scope="max_page_bytes = 100_000",
    )
    with hostile(plays) as site:
        done = crawl_warm(topic, site.address)
    assert done.status == 0, done.output
    return {
        name: {path for path in ("/open", "/denied") if site.asked[f"{name}.test{path}"]}
        for name in FILES
    }


@pytest.mark.parametrize("name", FILES)
def test_what_counts_of_a_robots_txt_is_obeyed(name: str, asked: dict[str, set[str]]) -> None:
    assert asked[name] == FILES[name][1]
