"""Pages of one turn of the reactor are parsed together."""

import asyncio
from collections.abc import Awaitable, Sequence
from itertools import pairwise

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.scrapy_addon.page_processing import (
    MAX_BATCH_BYTES,
    MAX_LINKS_PER_TURN,
    MAX_SETTLED_PER_TURN,
    PageBatcher,
)
from focused.topic import Scope
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched
from tests.support.simulated import page
from tests.support.whale_models import WhaleClassifier

A = "http://a.test/"


class Noted(PageParser):
    """Notes how many pages are read at a time."""

    def __init__(self) -> None:
        super().__init__(Scope(), WhaleClassifier(), "", parse_page)
        self.times: list[int] = []

    def read_all(self, answers: Sequence[Fetched]) -> Sequence[ParsedPage | Failed | None]:
        self.times.append(len(answers))
        return super().read_all(answers)


def read(reader: Noted, *answers: Fetched) -> list[ParsedPage | Failed | None]:
    async def together() -> list[ParsedPage | Failed | None]:
        turns = PageBatcher(lambda: reader)
        return await asyncio.gather(*map(turns.parse, answers))

    return asyncio.run(together())


def test_what_came_in_one_turn_is_read_at_once_and_goes_to_who_asked():
    reader = Noted()
    found = read(reader, *(page(f"{A}{n}") for n in range(5)))
    assert reader.times == [5]
    assert [each.page.url for each in found if isinstance(each, ParsedPage)] == [
        f"{A}{n}" for n in range(5)
    ]


def test_long_pages_are_read_in_several_turns_so_that_the_reactor_is_not_blocked():
    reader = Noted()
    long, longer = "whales " * (MAX_BATCH_BYTES // 20), "whales " * (MAX_BATCH_BYTES // 4)
    found = read(
        reader, *(page(f"{A}{n}", text=text) for n, text in enumerate([long] * 4 + [longer]))
    )
    assert all(isinstance(each, ParsedPage) for each in found)
    assert reader.times == [2, 2, 1]


def turns_of(
    reader: Noted, answers: Sequence[Fetched], *ahead: ParsedPage
) -> list[tuple[int, int]]:
    """How many pages were read and how many settled in each turn of the reactor."""

    async def ask() -> list[tuple[int, int]]:
        turns = PageBatcher(lambda: reader)
        settled: list[ParsedPage | Failed | None] = []

        async def settle(turn: Awaitable[ParsedPage | Failed | None]) -> None:
            settled.append(await turn)

        asked = [*map(turns.parse, answers), *map(turns.wait_to_settle, ahead)]
        settling = asyncio.gather(*map(settle, asked))
        met = [(0, 0)]
        while len(settled) < len(asked):
            await asyncio.sleep(0)
            met.append((sum(reader.times), len(settled)))
        await settling
        return [(r - r0, s - s0) for (r0, s0), (r, s) in pairwise(met)]

    return asyncio.run(ask())


def test_few_pages_are_settled_in_a_turn_of_the_reactor_and_none_is_read_in_it():
    elsewhere = PageParser(Scope(), WhaleClassifier(), "", parse_page).read(page(A))
    assert isinstance(elsewhere, ParsedPage)
    answers = [page(f"{A}{n}") for n in range(10)]
    turns = turns_of(Noted(), answers, *[elsewhere] * 10)
    assert max(settled for _, settled in turns) == MAX_SETTLED_PER_TURN
    assert not any(read and settled for read, settled in turns)


def test_pages_of_many_links_are_settled_in_turns_of_their_own():
    linked = page(A, *(f"/{n}" for n in range(MAX_LINKS_PER_TURN // 2 + 1)))
    assert max(settled for _, settled in turns_of(Noted(), [linked] * 3)) == 1


def test_who_waits_for_a_crawl_that_was_closed_is_reported_that_nothing_was_read():
    def closed() -> PageParser:
        raise RuntimeError("the crawl is not open")

    async def ask() -> ParsedPage | Failed | None:
        return await PageBatcher(closed).parse(page(A))

    assert asyncio.run(ask()) is None


def test_who_waits_no_more_disturbs_nobody():
    reader = Noted()

    async def ask() -> ParsedPage | Failed | None:
        turns = PageBatcher(lambda: reader)
        gone = asyncio.ensure_future(turns.parse(page(A)))
        waits = asyncio.ensure_future(turns.parse(page(f"{A}2")))
        await asyncio.sleep(0)
        gone.cancel()
        return await waits

    assert isinstance(asyncio.run(ask()), ParsedPage)
