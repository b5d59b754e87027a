"""robots.txt over real HTTP: compressed, endless, mistyped, with other statuses."""

import gzip
from collections.abc import Mapping

import pytest

from tests.live.hostile_faults import pack_bodies, packed, status
from tests.support.access_rules import ROBOTS
from tests.support.hostile_hosts import Asked, Behaviour, crawl_hosts, pages
from tests.support.recorded_web import html

RULES = b"User-agent: *\nDisallow: /denied\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
LINE = b"#" * 999 + b"\n"
BOMB_LINES = 200_000
OBEYED, OPEN, SHUT = {"/open"}, {"/open", "/denied"}, set[str]()


def endless(head: bytes, piece: bytes) -> Behaviour:
    async def behave(asked: Asked) -> None:
        await asked.send(head)
        while True:
            await asked.send(piece)

    return behave


TEXT = {"Content_Type": "text/plain"}
FILES: Mapping[str, tuple[Behaviour, set[str]]] = {
    "gzip": (status(200, gzip.compress(RULES), Content_Encoding="gzip"), OBEYED),
    "gzip-bomb": (packed(lambda: gzip.compress(RULES + LINE * BOMB_LINES, 1)), OBEYED),
    "no-gzip": (status(200, RULES, Content_Encoding="gzip"), SHUT),
    "longer-than-a-page": (status(200, LINE * 300 + RULES, **TEXT), OBEYED),
    "longer-than-what-counts": (status(200, LINE * 700 + RULES, **TEXT), OPEN),
    "seventeen-megabytes": (
        endless(OK + b"Content-Length: 17000000\r\n\r\n" + RULES, LINE),
        OBEYED,
    ),
    "without-end": (endless(OK + b"\r\n" + RULES, LINE), OBEYED),
    "one-line-without-end": (endless(OK + b"\r\n" + RULES + b"Disallow: /", b"a" * 9_999), OBEYED),
    "said-to-be-a-picture": (status(200, RULES, Content_Type="image/png"), OBEYED),
    "no-content": (status(204), OPEN),
    "gone": (status(410, RULES, **TEXT), OPEN),
    "not-now": (status(503, RULES, **TEXT), SHUT),
}
PATHS = ("/open", "/denied")


def host(name: str) -> Behaviour:
    found = pages({path: (200, f"<p>whales of {name}{path}", {}) for path in PATHS})

    async def behave(asked: Asked) -> None:
        await (FILES[name][0] if asked.path == ROBOTS else found)(asked)

    return behave


def web(port: int) -> dict[str, Behaviour]:
    links = [f"http://{name}.test:{port}{path}" for name in FILES for path in PATHS]
    start = pages({"/": (200, html("whales", *links), {})})
    return {"start.test": start} | {f"{name}.test": host(name) for name in FILES}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages that were requested, as host and path."""
    pack_bodies()
    _, served = crawl_hosts(
        tmp_path_factory.mktemp("robots"),
        web,
        politeness="max_tries = 1\nsuspend_s = 0",
        scope="max_page_bytes = 100_000",
    )
    return {f"{access.host}{access.path}" for access in served.accesses}


@pytest.mark.parametrize("name", FILES)
def test_what_counts_of_a_robots_txt_is_obeyed(name, asked):
    assert {path for path in PATHS if f"{name}.test{path}" in asked} == FILES[name][1]
