"""Pages that come in one turn of the reactor are read together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from focused.crawl.reading import Reader, Reading
from focused.scrapy_addon.reading_turns import MOST_BYTES, ReadingTurns
from focused.topic import Scope
from focused.web.page import Failed, Fetched
from focused.web.parse import parse_page
from tests.support.keyword_guide import WhaleJudge
from tests.support.simulated import page

A = "http://a.test/"


class Noted(Reader):
    """Notes how many pages are read at a time."""

    def __init__(self) -> None:
        super().__init__(Scope(), WhaleJudge(), "", parse_page)
        self.times: list[int] = []

    def read_all(self, answers: Sequence[Fetched]) -> Sequence[Reading | Failed | None]:
        self.times.append(len(answers))
        return super().read_all(answers)


def read(reader: Noted, *answers: Fetched) -> list[Reading | Failed | None]:
    async def together() -> list[Reading | Failed | None]:
        turns = ReadingTurns(lambda: reader)
        return await asyncio.gather(*map(turns.read, answers))

    return asyncio.run(together())


def test_what_came_in_one_turn_is_read_at_once_and_goes_to_who_asked() -> None:
    reader = Noted()
    found = read(reader, *(page(f"{A}{n}") for n in range(5)))
    assert reader.times == [5]
    assert [each.page.url for each in found if isinstance(each, Reading)] == [
        f"{A}{n}" for n in range(5)
    ]


def test_long_pages_are_read_in_several_turns_so_that_the_reactor_is_not_blocked() -> None:
    reader = Noted()
    long = "whales " * (MOST_BYTES // 10)
    found = read(reader, *(page(f"{A}{n}", text=long) for n in range(4)))
    assert all(isinstance(each, Reading) for each in found)
    assert reader.times == [2, 2]


def test_few_pages_are_settled_before_the_reactor_sees_to_other_work() -> None:
    async def ask() -> list[int]:
        turns = ReadingTurns(Noted)
        settled: list[int] = []

        async def settle(number: int) -> None:
            await turns.read(page(f"{A}{number}"))
            settled.append(number)

        settling = asyncio.gather(*map(settle, range(10)))
        met = []
        while len(settled) < 10:
            await asyncio.sleep(0)
            met.append(len(settled))
        await settling
        return [after - before for before, after in pairwise([0, *met])]

    at_a_time = asyncio.run(ask())
    assert max(at_a_time) == 4


def test_who_waits_for_a_crawl_that_was_closed_is_told_that_nothing_was_read() -> None:
    def closed() -> Reader:
        raise RuntimeError("the crawl is not open")

    async def ask() -> Reading | Failed | None:
        return await ReadingTurns(closed).read(page(A))

    assert asyncio.run(ask()) is None


def test_who_waits_no_more_disturbs_nobody() -> None:
    reader = Noted()

    async def ask() -> Reading | Failed | None:
        turns = ReadingTurns(lambda: reader)
        gone = asyncio.ensure_future(turns.read(page(A)))
        waits = asyncio.ensure_future(turns.read(page(f"{A}2")))
        await asyncio.sleep(0)
        gone.cancel()
        return await waits

    assert isinstance(asyncio.run(ask()), Reading)
