"""Real parser processes, and pages that end them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from focused.crawl.page_parser import UNCLASSIFIED, PageParser, ParsedPage
from focused.parser_process import MAX_PROCESSES_PER_PAGE, ParsingLimits, framed
from focused.scrapy_addon.page_processing import ProcessLoad
from focused.scrapy_addon.parser_pool import (
    MAX_WAITING_PAGES,
    MIN_WAITING_PAGES,
    START_AGAIN_S,
    ParserPool,
    _ParserProcess,
    default_process_count,
)
from focused.topic import Scope
from focused.web.html.parse import MAX_QUICK_BYTES, needs_parser_process, parse_page
from focused.web.page import Failed, FailureKind, Fetched
from focused.web.robots.robots_rules import parse_robots_body
from tests.scrapy_addon.failing_classifiers import Killed, Moody, Unloadable, Unsendable
from tests.support.simulated import page
from tests.support.whale_models import WhaleClassifier

A = "http://a.test/"


PATIENT_TICK_S = 60.0
"""Small pages wait for a process that a busy machine stops for some seconds."""


def reader(classifier: WhaleClassifier) -> Callable[[], PageParser]:
    return lambda: PageParser(Scope(), classifier, "classifier", parse_page)


def ahead(workers: ParserPool, fetched: Fetched) -> Awaitable[ParsedPage | Failed | None]:
    return workers.parse(fetched, is_long=needs_parser_process(fetched))


def asked(
    most: int | None,
    ask: Callable[[ParserPool], Awaitable[Any]],
    classifier: WhaleClassifier | None = None,
    *,
    tick_s: float = PATIENT_TICK_S,
    **given: Any,
) -> Any:
    async def run() -> Any:
        workers = ParserPool(most, reader(classifier or Moody()), tick_s=tick_s, **given)
        try:
            return await ask(workers)
        finally:
            workers.close()

    return asyncio.run(run())


def test_a_page_is_read_there_as_it_is_here():
    answer = page(A, "/whales", "/trade", text="of whales and ships " * 20, title="Whales")
    there = asked(1, lambda workers: ahead(workers, answer))
    here = reader(Moody())().read(answer)
    assert isinstance(there, ParsedPage) and isinstance(here, ParsedPage)
    assert replace(there, shingles=None) == replace(here, shingles=None)
    assert there.shingles is not None and here.shingles is not None
    assert there.shingles.tolist() == here.shingles.tolist()


def test_what_is_not_a_page_fails_there_as_it_does_here():
    picture = Fetched(A, 200, {"content-type": "text/html"}, b"\x89PNG\r\n\x1a\n" + bytes(99))
    assert asked(1, lambda workers: ahead(workers, picture)) == reader(Moody())().read(picture)


def test_a_page_that_our_code_breaks_over_is_a_failed_page_and_no_end():
    async def ask(workers: ParserPool) -> tuple[object, object]:
        return await ahead(workers, page(A, text="riddle")), await ahead(workers, page(A))

    broken, after = asked(1, ask)
    assert isinstance(broken, Failed) and broken.kind is FailureKind.INTERNAL_ERROR
    assert "no idea" in broken.detail
    assert isinstance(after, ParsedPage)


def test_only_the_page_that_ends_its_process_is_given_up():
    async def ask(workers: ParserPool) -> list[object]:
        pages = [page(A, text="one"), page(A, text="poison"), page(A, text="two")]
        found = await asyncio.gather(*(ahead(workers, each) for each in pages))
        return [*found, await ahead(workers, page(A, text="three"))]

    one, poison, two, three = asked(1, ask)
    assert isinstance(one, ParsedPage)
    assert isinstance(poison, Failed) and poison.kind is FailureKind.PARSE_CRASH
    assert two is None, "it is for the crawl to read"
    assert isinstance(three, ParsedPage), "another process has begun"


def padded(text: str) -> Fetched:
    """A page that is read in another process or not at all."""
    return page(A, text=f"{text} " + "whales " * (MAX_QUICK_BYTES // 6))


QUICKLY = ParsingLimits(cpu_s=1.0)


@pytest.mark.parametrize(
    ("most", "text", "kind", "detail"),
    [
        (1, "spin", FailureKind.PARSE_TIMEOUT, "more than 1 s of CPU time"),
        (0, "spin", FailureKind.PARSE_TIMEOUT, ""),
        (None, "spin", FailureKind.PARSE_TIMEOUT, ""),
        (1, "hoard", FailureKind.PARSE_MEMORY, "more than 1000 MB"),
    ],
)
def test_a_page_that_exceeds_its_limits_is_a_failure_and_the_next_is_read(most, text, kind, detail):
    async def ask(workers: ParserPool) -> tuple[object, object]:
        return await ahead(workers, padded(text)), await ahead(workers, padded("next"))

    failed, after = asked(most, ask, limits=QUICKLY)
    assert isinstance(failed, Failed) and failed.kind is kind
    assert detail in failed.detail
    assert isinstance(after, ParsedPage)


def test_a_process_that_its_own_timers_cannot_end_is_killed():
    limits = ParsingLimits(elapsed_s=2.0)
    stopped = asked(1, lambda workers: ahead(workers, padded("stop")), limits=limits, tick_s=0.5)
    assert isinstance(stopped, Failed) and stopped.kind is FailureKind.PARSE_TIMEOUT


def test_long_pages_behind_one_that_exceeds_its_limits_are_read_by_another_process():
    async def ask(workers: ParserPool) -> list[object]:
        return await asyncio.gather(
            *(ahead(workers, padded(text)) for text in ("one", "spin", "two", "3"))
        )

    one, spin, *others = asked(1, ask, limits=QUICKLY)
    assert isinstance(spin, Failed) and spin.kind is FailureKind.PARSE_TIMEOUT
    assert all(isinstance(each, ParsedPage) for each in (one, *others))


def test_a_page_whose_process_is_killed_from_outside_is_parsed_by_the_next(tmp_path):
    killed = Killed(tmp_path / "kills", MAX_PROCESSES_PER_PAGE - 1)
    parsed = asked(1, lambda workers: ahead(workers, padded("of whales")), killed)
    assert isinstance(parsed, ParsedPage)
    assert (tmp_path / "kills").stat().st_size == MAX_PROCESSES_PER_PAGE - 1


def test_a_page_over_which_each_process_dies_is_named():
    async def ask(workers: ParserPool) -> tuple[object, object]:
        return await ahead(workers, padded("poison")), await ahead(workers, padded("next"))

    died, after = asked(1, ask)
    assert isinstance(died, Failed) and died.kind is FailureKind.PARSE_CRASH
    assert died.detail == (
        f"{MAX_PROCESSES_PER_PAGE} processes died over it; the process that parsed it died: SIGKILL"
    )
    assert isinstance(after, ParsedPage)


def test_processes_start_again_after_what_prevented_it():
    async def ask(workers: ParserPool) -> object:
        workers._failed_starts, workers._failed_at = 3, time.monotonic() - START_AGAIN_S
        return await ahead(workers, padded("long"))

    assert isinstance(asked(1, ask), ParsedPage)


def test_the_time_of_each_page_is_charged_and_the_limit_for_one_that_ends_its_process():
    charged: list[tuple[str, float]] = []

    async def ask(workers: ParserPool) -> None:
        await ahead(workers, replace(padded("of whales"), url=f"{A}a"))
        await ahead(workers, replace(padded("spin"), url=f"{A}b"))

    asked(1, ask, limits=QUICKLY, charge=lambda *each: charged.append(each))
    (one, one_s), (two, two_s) = charged
    assert (one, two, two_s) == (f"{A}a", f"{A}b", QUICKLY.cpu_s)
    assert 0.0 < one_s < QUICKLY.cpu_s


def test_a_long_robots_file_is_parsed_there_as_it_is_here():
    body = b"User-agent: *\nDisallow: /*x\n" + b"Disallow: /a\n" * 10_000
    rules = asked(
        1,
        lambda workers: workers.parse(
            Fetched(f"{A}robots.txt", 200, {}, body), "Bot", is_long=True
        ),
    )
    assert rules == parse_robots_body(body, "Bot")


def test_small_pages_do_not_wait_behind_one_that_takes_long():
    async def ask(workers: ParserPool) -> tuple[bool, object]:
        await ahead(workers, page(A))
        slow = asyncio.ensure_future(ahead(workers, padded("spin")))
        await asyncio.sleep(0)
        small = await ahead(workers, page(A, text="small"))
        is_first = not slow.done()
        slow.cancel()
        return is_first, small

    assert asked(1, ask, limits=ParsingLimits(cpu_s=30.0), tick_s=0.2) == (True, None)


def test_no_page_is_blamed_for_a_process_that_cannot_begin():
    async def ask(workers: ParserPool) -> tuple[object, Any]:
        return await ahead(workers, page(A)), await ahead(workers, padded("long"))

    small, long = asked(1, ask, Unloadable())
    assert small is None, "it is for the crawl to read"
    assert long.kind is FailureKind.INTERNAL_ERROR
    assert "no parser process could be started" in long.detail


def test_a_long_page_is_parsed_elsewhere_though_its_classifier_cannot_be_sent():
    found = asked(1, lambda workers: ahead(workers, padded("of whales")), Unsendable())
    assert isinstance(found, ParsedPage)
    assert found.classifier == UNCLASSIFIED
    assert "of whales" in found.page.text


def test_what_waits_when_the_crawl_ends_is_given_up():
    async def ask(workers: ParserPool) -> object:
        asking = asyncio.ensure_future(ahead(workers, padded("doze")))
        await ahead(workers, page(A))
        workers.close()
        return await asking

    assert asked(2, ask) is None


def test_pages_that_would_wait_for_long_are_left_to_the_crawl():
    async def ask(workers: ParserPool) -> list[object]:
        pages = (page(A, text=str(n)) for n in range(2 * MAX_WAITING_PAGES + 3))
        return await asyncio.gather(*(ahead(workers, each) for each in pages))

    found = asked(2, ask)
    assert [each is None for each in found] == [False] * 2 * MAX_WAITING_PAGES + [True] * 3


def test_a_crawl_with_nothing_else_to_do_reads_what_a_process_would_come_to_late():
    async def ask(workers: ParserPool) -> list[object]:
        pages = (page(A, text=str(n)) for n in range(MIN_WAITING_PAGES + 3))
        return await asyncio.gather(*(ahead(workers, each) for each in pages))

    found = asked(1, ask, is_idle=lambda: True)
    assert [each is None for each in found] == [False] * MIN_WAITING_PAGES + [True] * 3


def test_all_answers_that_came_are_handed_out_in_one_turn_of_the_reactor():
    async def ask() -> int:
        stream = asyncio.StreamReader()
        process = _ParserProcess(Mock(), stream, Mock(), ParsingLimits(), PATIENT_TICK_S)
        asking = [asyncio.ensure_future(process.ask(b"page", is_long=False)) for _ in range(9)]
        await asyncio.sleep(0)
        stream.feed_data(framed(b"") + framed(b"+parsed") * len(asking))
        turns = 0
        while not all(each.done() for each in asking):
            await asyncio.sleep(0)
            turns += 1
        process.end()
        return turns

    assert asyncio.run(ask()) < 9


def test_answers_go_to_whom_they_belong():
    async def ask(workers: ParserPool) -> list[Any]:
        return await asyncio.gather(*(ahead(workers, page(f"{A}{n}")) for n in range(6)))

    assert [each.page.url for each in asked(2, ask)] == [f"{A}{n}" for n in range(6)]


@pytest.mark.parametrize(
    ("cpu_s", "cores", "begun"), [(0.5, 2, False), (0.7, 2, True), (0.7, 1, False)]
)
def test_processes_are_begun_when_the_crawl_has_much_to_do_and_there_is_a_core_for_them(
    cpu_s, cores, begun
):
    clocks = iter([(10.0, 3.0), (11.0, 3.0 + cpu_s)])

    async def run() -> object:
        load = ProcessLoad(lambda: next(clocks))
        workers = ParserPool(None, reader(Moody()), tick_s=PATIENT_TICK_S, core_count=cores)
        if load.is_busy():
            workers.start()
        for _ in range(10):
            await asyncio.sleep(0)
        try:
            return await ahead(workers, page(A))
        finally:
            workers.close()

    assert isinstance(asyncio.run(run()), ParsedPage) is begun


def test_a_page_that_would_block_the_crawl_is_read_elsewhere_even_on_one_core():
    found = asked(None, lambda workers: ahead(workers, padded("long")), core_count=1)
    assert isinstance(found, ParsedPage)


def test_a_classifier_that_cannot_be_sent_classifies_in_the_crawl():
    assert asked(1, lambda workers: ahead(workers, page(A)), Unsendable()) is None


def test_another_classifier_classifies_in_processes_of_its_own():
    class Office:
        classifier: WhaleClassifier = Moody()

    async def run() -> tuple[Any, Any]:
        workers = ParserPool(1, lambda: reader(Office.classifier)(), tick_s=PATIENT_TICK_S)
        try:
            before = await ahead(workers, page(A, text="riddle"))
            Office.classifier = WhaleClassifier()
            workers.classifier_swapped()
            return before, await ahead(workers, page(A, text="riddle"))
        finally:
            workers.close()

    before, after = asyncio.run(run())
    assert isinstance(before, Failed)
    assert isinstance(after, ParsedPage)


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 1), (4, 3), (64, 4)])
def test_one_core_is_the_crawls_own(cores, workers):
    assert default_process_count(cores) == workers
