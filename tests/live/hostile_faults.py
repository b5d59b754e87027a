"""All that a host may do to a crawler, each with what a crawl has to make of it.

A fault's host has a front page, which the crawl is led to. ``expected`` is the
front page's failure in ``pages.parquet``, or, of one that is no failure, its
outcome. Traps are hosts whose pages lead to ever more pages.
"""

import asyncio
import gzip
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import islice, product
from urllib.parse import parse_qsl, urlsplit

import brotli

from tests.support.access_rules import ROBOTS
from tests.support.hostile_hosts import Asked, Behaviour
from tests.support.recorded_web import html

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_PAGE_BYTES = 1_000_000
LONG_URL = "/" + 100_000 * "x"
MIRRORED = [f"/{n}" for n in range(5)]
PRIVATE = "127.9.9.9"
PRIVATE_LINKS = (
    f"http://{PRIVATE}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:10.0.0.1]/",
)


OTHER_SCHEMES = ("file:///etc/passwd", "ftp://a.test/", "data:text/html,x")
_ZEROS = bytes(60_000_000)


@dataclass(frozen=True)
class Fault:
    """``robots`` tells that it strikes robots.txt as well."""

    expected: str
    behave: Behaviour
    robots: bool = False


def behaviour(fault: Fault) -> Behaviour:
    """The fault's host: robots.txt is missing unless it is struck, too."""

    async def behave(asked: Asked) -> None:
        if asked.path == ROBOTS and not fault.robots:
            await asked.answer(404)
        else:
            await fault.behave(asked)

    return behave


def status(code: int, body: bytes | str = b"", **headers: str) -> Behaviour:
    async def behave(asked: Asked) -> None:
        await asked.answer(code, body, **headers)

    return behave


_PACKED: list[Callable[[], bytes]] = []


def pack_bodies() -> None:
    """Make all packed bodies before a crawl, which does not wait so long for an answer."""
    for body in _PACKED:
        body()


def packed(pack: Callable[[], bytes], coding: str = "gzip") -> Behaviour:
    """A body that :func:`pack_bodies` packs, so that tests are collected fast."""
    body = cache(pack)
    _PACKED.append(body)

    async def behave(asked: Asked) -> None:
        await asked.answer(200, body(), Content_Encoding=coding)

    return behave


def page(text: str, *links: str, **headers: str) -> Behaviour:
    async def behave(asked: Asked) -> None:
        body = html(f"{asked.host} {text}", *links, text=f"{text} {asked.host}")
        await asked.answer(200, body, **headers)

    return behave


def behind_robots(robots: Behaviour) -> Behaviour:
    """A fault of robots.txt alone; the front page is good."""

    async def behave(asked: Asked) -> None:
        if asked.path.startswith("/robots"):
            await robots(asked)
        else:
            await page("the page behind")(asked)

    return behave


async def hang(asked: Asked) -> None:
    await asked.until_left()


async def reset(asked: Asked) -> None:
    asked.reset()


async def stop_half_way(asked: Asked) -> None:
    head = b"HTTP/1.1 200 So\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\n"
    await asked.send(head + b"<p>")
    asked.reset()


async def speak_no_http(asked: Asked) -> None:
    await asked.send(b"220 smtp ready\r\n\r\n")
    asked.writer.close()


async def drip(asked: Asked) -> None:
    await asked.stream()
    while True:
        await asked.send(b" ")
        await asyncio.sleep(0.1)


async def drip_headers(asked: Asked) -> None:
    await asked.send(b"HTTP/1.1 200 So\r\n")
    while True:
        await asked.send(b"X-More: 1\r\n")
        await asyncio.sleep(0.1)


async def announce_a_terabyte(asked: Asked) -> None:
    head = b"HTTP/1.1 200 So\r\nContent-Type: text/html\r\nContent-Length: 1000000000000\r\n\r\n"
    await asked.send(head + b"<p>short")
    await asked.until_left()


async def endless_body(asked: Asked) -> None:
    await asked.stream()
    while True:
        await asked.send(b"<p>more</p>" * 50_000)


async def endless_headers(asked: Asked) -> None:
    await asked.send(b"HTTP/1.1 200 So\r\n")
    while True:
        await asked.send(b"X-More: and more\r\n" * 3_000)


async def cookie_loop(asked: Asked) -> None:
    await asked.answer(302, Location=asked.path, Set_Cookie=f"seen={asked.times}")


async def endless_redirects(asked: Asked) -> None:
    number = int(asked.path.strip("/") or 0)
    await asked.answer(302, Location=f"/{number + 1}")


async def redirect_loop(asked: Asked) -> None:
    await asked.answer(302, Location="/b" if asked.path == "/" else "/")


async def robots_loop(asked: Asked) -> None:
    await asked.answer(301, Location=f"/robots-{asked.times}.txt")


def _links(most_bytes: int) -> bytes:
    """As many links to different pages as fit: a million in 13 MB."""
    names = islice(product("0123456789abcdefghijklmnopqrstuv", repeat=4), most_bytes // 13)
    return "".join(f"<a href={''.join(name)}>" for name in names).encode()


async def _mirror(asked: Asked) -> None:
    """The same at each host, path by path."""
    content = f"whale in the mirror {sha256(asked.path.encode()).hexdigest()} " * 30
    await asked.answer(200, html(f"mirror {asked.path}", *MIRRORED, text=content))


FAULTS: Mapping[str, Fault] = {
    "hang": Fault("timeout", hang),
    "drip": Fault("timeout", drip),
    "drip-headers": Fault("timeout", drip_headers),
    "reset": Fault("reset", reset),
    "half-way": Fault("reset", stop_half_way),
    "no-http": Fault("reset", speak_no_http),
    "gone": Fault("gone", status(404)),
    "forbidden": Fault("http-4xx", status(403)),
    "throttled": Fault("http-429", status(429, Retry_After="1")),
    "down": Fault("http-5xx", status(503)),
    "endless-body": Fault("too-large", endless_body),
    "endless-headers": Fault("too-large", endless_headers),
    "huge": Fault("too-large", status(200, bytes(MAX_PAGE_BYTES + 1))),
    "million-links": Fault("too-large", status(200, _links(14_000_000))),
    "terabyte": Fault("too-large", announce_a_terabyte),
    "bomb": Fault("too-large", packed(lambda: gzip.compress(_ZEROS))),
    "bomb-in-bomb": Fault(
        "too-large", packed(lambda: gzip.compress(gzip.compress(_ZEROS)), "gzip, gzip")
    ),
    "deflate-bomb": Fault("too-large", packed(lambda: zlib.compress(_ZEROS), "deflate")),
    "brotli-bomb": Fault("too-large", packed(lambda: brotli.compress(_ZEROS, quality=5), "br")),
    "zstd-bomb": Fault("too-large", packed(lambda: zstd.compress(_ZEROS), "zstd")),
    "picture": Fault("wrong-type", status(200, b"\x89PNG\r\n", Content_Type="image/png")),
    "disguised": Fault("wrong-type", status(200, b"\x89PNG\r\n\x1a\n" + bytes(500))),
    "empty": Fault("empty", status(200)),
    "bad-packing": Fault("bad-encoding", status(200, b"\x00no gzip", Content_Encoding="gzip")),
    "no-brotli": Fault("bad-encoding", status(200, "<p>whales", Content_Encoding="br")),
    "no-zstd": Fault("bad-encoding", status(200, "<p>whales", Content_Encoding="zstd")),
    "no-deflate": Fault("bad-encoding", status(200, "<p>whales", Content_Encoding="deflate")),
    "four-codings": Fault(
        "bad-encoding", status(200, "w", Content_Encoding=", ".join(4 * ["gzip"]))
    ),
    "cookie-loop": Fault("bad-redirect", cookie_loop),
    "redirect-loop": Fault("redirected", redirect_loop),
    "endless-redirects": Fault("redirected", endless_redirects),
    "to-file": Fault("bad-redirect", status(302, Location="file:///etc/passwd")),
    "to-private": Fault("redirected", status(302, Location=PRIVATE_LINKS[0])),
    "links-private": Fault("fetched", page("links", *PRIVATE_LINKS, *OTHER_SCHEMES)),
    "long-urls": Fault("fetched", page("links far", f"/short{LONG_URL}", f"?{LONG_URL}")),
    "to-long-url": Fault("reset", status(302, Location=LONG_URL)),  # the line is no header
    "rebinds": Fault("private-address", page("never seen")),  # after its robots.txt
    "bad-charset": Fault(
        "fetched", status(200, b"\xff\xfe\xc3\x28 whale \x81", Content_Type="text/html; charset=x")
    ),
    "deep": Fault("fetched", status(200, b"<div>" * 100_000 + b"whale at the bottom")),
    "noindex": Fault("noindex", page("whale in secret", X_Robots_Tag="noindex")),
    "nofollow": Fault("fetched", page("whale without links", "/never", X_Robots_Tag="nofollow")),
    "near": Fault("fetched", page("whale " + " ".join(f"word{n}" for n in range(300)))),
    "mirror": Fault("fetched", _mirror),
    "robots-down": Fault("http-5xx", status(503), robots=True),
    "robots-throttled": Fault("http-429", status(429, Retry_After="1"), robots=True),
    "robots-hangs": Fault("timeout", hang, robots=True),
    "robots-resets": Fault("reset", reset, robots=True),
    "robots-closed": Fault(
        "robots", behind_robots(status(200, "User-agent: *\nDisallow: /\n")), robots=True
    ),
    "robots-huge": Fault(
        "fetched", behind_robots(status(200, b"Allow: /\n" * 300_000)), robots=True
    ),
    "robots-garbage": Fault("fetched", behind_robots(status(200, bytes(range(256)))), robots=True),
    "robots-moves-on": Fault("fetched", behind_robots(robots_loop), robots=True),
}


async def _answers_everything(asked: Asked) -> None:
    await asked.answer(200, html("All", *(f"{asked.path}{n}" for n in range(20)), text="as ever"))


async def _calendar(asked: Asked) -> None:
    day = int(asked.path.rpartition("=")[2] or 0) if "=" in asked.path else 0
    links = [f"/calendar?day={day + step}" for step in (-1, 1, 7)]
    await asked.answer(200, html(f"Day {day}", *links, text=f"nothing on day {day}"))


async def _deeper(asked: Asked) -> None:
    await asked.answer(200, html("Deeper", asked.path.rstrip("/") + "/deeper/", text=asked.path))


async def _sessions(asked: Asked) -> None:
    item = "abcdefgh"[int(dict(parse_qsl(urlsplit(asked.path).query)).get("item", 0))]
    visits = [
        sha256(f"{asked.host}{asked.times}{asked.path}{n}".encode()).hexdigest()[:20]
        for n in range(8)
    ]
    links = [f"/shop?item={n}&visit={visit}" for n, visit in enumerate(visits)]
    await asked.answer(200, html("Shop", *links, text=f"the item {item * 5} of the shop"))


async def _facets(asked: Asked) -> None:
    base = asked.path if "?" in asked.path else "/list?all=1"
    links = [f"{base}&{name}={n}" for name in ("colour", "size", "sort") for n in range(3)]
    await asked.answer(200, html("List", *links, text=f"goods {base[-40:]}"))


async def _soft_404(asked: Asked) -> None:
    links = [f"/missing-{asked.path.count('m')}-{n}-{asked.path[-9:].strip('/')}" for n in range(9)]
    await asked.answer(200, html("Not found", *links, text="this page does not exist"))


async def _many_links(asked: Asked) -> None:
    many = _links(MAX_PAGE_BYTES) if asked.path == "/" else html(asked.path, text="one of many")
    await asked.answer(200, many)


SLOW: Mapping[str, Behaviour] = {
    "crawl-delay": status(200, f"User-agent: *\nCrawl-delay: {10**12}\n")
}
"""Hosts that nobody has the time to ask twice."""

TRAPS: Mapping[str, Behaviour] = {
    "answers-all": _answers_everything,
    "calendar": _calendar,
    "deeper": _deeper,
    "sessions": _sessions,
    "facets": _facets,
    "soft-404": _soft_404,
    "many-links": _many_links,
}
