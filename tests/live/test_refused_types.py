"""Responses that cannot be pages: their bodies are not downloaded."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.access_rules import ROBOTS
from tests.support.crawling import Finished
from tests.support.hostile_hosts import Asked, crawl_hosts
from tests.support.recorded_web import html

HOST = "a.test"
TYPES = {
    "/film": "video/mp4",
    "/picture": "image/png; charset=binary",
    "/paper": "application/pdf",
    "/page": "text/html",
}
sent: dict[str, int] = {}


async def answer(asked: Asked) -> None:
    if asked.path == ROBOTS:
        await asked.answer(404)
    elif asked.path == "/":
        await asked.answer(200, html("Whales", *TYPES))
    else:
        await asked.stream(Content_Type=TYPES[asked.path])
        with suppress(ConnectionError):
            for _ in range(2_000):
                await asked.send(b"<p>whales" + bytes(9_991))
                sent[asked.path] = sent.get(asked.path, 0) + 10_000


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder: Path = tmp_path_factory.mktemp("types")
    scope = 'documents = ["docx"]\nmax_page_bytes = 1_000_000'
    return crawl_hosts(folder, lambda _: {HOST: answer}, scope=scope)[0]


def failures(done: Finished) -> dict[str, str]:
    pages = done.pages[done.pages["outcome"] == "failed"]
    return {"/" + url.rpartition("/")[2]: kind for url, kind in pages["failure"].items()}


def test_the_media_type_decides_before_the_body(done):
    assert done.status == 0, done.output
    wrong = dict.fromkeys(("/film", "/picture", "/paper"), "wrong-type")
    assert failures(done) == {**wrong, "/page": "too-large"}
    assert done.pages.filter(like="/film", axis="index")["status"].tolist() == [200]


def test_bodies_that_are_no_pages_are_left_with_the_server(done):
    assert done.status == 0
    for path in ("/film", "/picture", "/paper"):
        assert sent.get(path, 0) < 10_000_000  # what buffers of the system take
