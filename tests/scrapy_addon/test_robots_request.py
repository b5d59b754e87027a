"""robots.txt over real HTTP: how much of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, answer, html, page, served

RULES = b"User-agent: *\nDisallow: /early\n"
FILLER = b"#" * 99 + b"\n"


def web(robots: bytes) -> MemoryWeb:
    links = [f"/{name}" for name in ("early", "late", "open")]
    return MemoryWeb(
        page("http://a.test/", html("Start", *links)),
        *(page(f"http://a.test{link}", html(link)) for link in links),
        answer("http://a.test/robots.txt", 200, robots),
    )


def fetched(tmp_path: Path, robots: MemoryWeb) -> set[str]:
    topic = write_topic(tmp_path, "http://a.test/", scope="max_page_bytes = 100_000")
    with served(robots) as site:
        return {url.rsplit("/", 1)[1] for url in crawl(topic, site.address).fetched()}


def lines(size: int) -> bytes:
    return RULES + FILLER * (size // len(FILLER)) + b"Disallow: /late\n"


@pytest.mark.parametrize(
    ("size", "allowed"), [(300_000, {"", "open"}), (700_000, {"", "open", "late"})]
)
def test_a_robots_txt_larger_than_pages_may_be_is_read_as_far_as_it_counts(
    tmp_path: Path, size: int, allowed: set[str]
) -> None:
    assert fetched(tmp_path, web(lines(size))) == allowed


def test_one_that_is_larger_than_anything_of_its_kind_keeps_the_crawl_away(tmp_path: Path) -> None:
    assert fetched(tmp_path, web(lines(17_000_000))) == set()
