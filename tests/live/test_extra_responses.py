"""Servers that send extra responses: none is used for another URL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pandas as pd
import pytest

from tests.support.access_rules import ROBOTS
from tests.support.crawling import Finished, write_topic
from tests.support.hostile_hosts import Asked, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html
from tests.support.warm import crawl_warm

PAGES = 4
NO_PAGES = {"length-and-chunks", "two-lengths"}  # such an answer may be refused
FORGED_TITLE = "Forged"
Play = Callable[[Asked, bytes], Awaitable[None]]


def whole(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def forged() -> bytes:
    return whole(html(FORGED_TITLE, text="a whale that nobody asked for"))


async def two_answers(asked: Asked, body: bytes) -> None:
    await asked.send(whole(body) + forged())


async def an_answer_before_each_request(asked: Asked, body: bytes) -> None:
    """The connection idles when the forged answer comes.

    Had the next request left before, nobody could tell whose answer it is.
    """
    await asked.send(whole(body))
    try:
        await asyncio.wait_for(asked.reader.read(1), 0.05)
    except TimeoutError:
        await asked.send(forged())
    else:
        asked.reset()


async def an_answer_in_what_is_left_of_the_body(asked: Asked, body: bytes) -> None:
    await asked.send(whole(body) + b" <!-- longer than it said -->" + forged())


async def half_a_forged_answer(asked: Asked, body: bytes) -> None:
    """The next answer would become the end of the forged one's body."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
    await asked.send(whole(body) + head + html(FORGED_TITLE))


async def a_body_behind_an_answer_without_one(asked: Asked, body: bytes) -> None:
    if asked.path == "/2":
        await asked.send(b"HTTP/1.1 204 No Content\r\n\r\n" + forged())
    else:
        await asked.send(whole(body))


async def length_and_chunks(asked: Asked, body: bytes) -> None:
    """By the chunks the body ends early, by the length the forged answer is a part of it."""
    chunks = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    length = len(chunks) + len(forged())
    lines = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    await asked.send(lines.encode() + chunks + forged())


async def two_lengths(asked: Asked, body: bytes) -> None:
    await asked.send(whole(body, f"Content-Length: {len(body) + len(forged())}") + forged())


PLAYS: dict[str, Play] = {
    play.__name__.replace("_", "-"): play
    for play in (
        two_answers,
        an_answer_before_each_request,
        an_answer_in_what_is_left_of_the_body,
        half_a_forged_answer,
        a_body_behind_an_answer_without_one,
        length_and_chunks,
        two_lengths,
    )
}


def title_of(path: str) -> str:
    return f"page {path}"


def behaving(play: Play) -> Callable[[Asked], Awaitable[None]]:
    async def behave(asked: Asked) -> None:
        if asked.path == ROBOTS:
            await asked.answer(404)
            return
        links = [f"/{number}" for number in range(PAGES)]
        text = f"whales of {asked.host} on {asked.path}"
        await play(asked, html(title_of(asked.path), *links, text=text))

    return behave


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """All of them at once; each at an address of its own, with a connection that could be kept."""
    names = [f"{name}.test" for name in PLAYS]
    plays = {f"{name}.test": behaving(play) for name, play in PLAYS.items()}
    zone = {name: at(f"127.0.1.{number}") for number, name in enumerate(names, 1)}
    with serve_hosts(lambda port: plays) as served, serve_names(zone) as name_server:
        topic = write_topic(
            tmp_path_factory.mktemp("desync"),
            *(served.url(name, "/0") for name in names),
            delay_s=0.5,
            timeout_s=2.0,
            scope="private_addresses = true",
            politeness="max_tries = 1\nsuspend_s = 0\nfetch_time_factor = 0",
        )
        return crawl_warm(topic, "", FOCUSED_DNS_SERVERS=name_server.address)


def test_the_crawl_ends_in_order(crawled: Finished) -> None:
    assert crawled.status == 0, crawled.output
    assert "Traceback" not in crawled.output


def fetched_from(crawled: Finished, name: str) -> pd.DataFrame:
    pages = crawled.pages
    return pages[pages["host"].str.startswith(f"{name}.test:") & (pages.outcome == "fetched")]


@pytest.mark.parametrize("name", PLAYS)
def test_no_forged_answer_becomes_a_page(crawled: Finished, name: str) -> None:
    fetched = fetched_from(crawled, name)
    assert name in NO_PAGES or len(fetched)
    assert all(
        title == title_of(url[url.rindex("/") :])
        for url, title in zip(fetched["url"], fetched["title"], strict=True)
    )


@pytest.mark.parametrize("name", ["two-answers", "an-answer-in-what-is-left-of-the-body"])
def test_what_was_requested_comes_all_the_same(crawled: Finished, name: str) -> None:
    assert sorted(fetched_from(crawled, name)["url"].str[-2:]) == [f"/{n}" for n in range(PAGES)]
