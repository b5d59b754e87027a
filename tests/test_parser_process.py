"""A parser process for callers that wait: real processes, and pages that end them."""

import io
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.parser_process import (
    MAX_PROCESSES_PER_PAGE,
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
    framed,
    pickled,
    serve,
)
from focused.web.page import FailureKind


def handle(message: bytes) -> bytes:
    match message:
        case b"spin":
            while True:
                pass
        case b"doze":
            time.sleep(600)
        case b"hoard":
            bytearray(2_000_000_000)
        case b"stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        case b"raise":
            raise ValueError("no idea")
    return message.upper()


@pytest.fixture
def parser() -> Iterator[ParserProcess]:
    with ParserProcess(handle, ParsingLimits(cpu_s=0.5)) as opened:
        yield opened


def test_it_answers_with_what_the_handler_returns(parser):
    assert [parser.ask(message) for message in (b"one", b"two" * 500_000)] == [
        b"ONE",
        b"TWO" * 500_000,
    ]


@pytest.mark.parametrize(
    ("message", "kind", "detail"),
    [
        (b"spin", FailureKind.PARSE_TIMEOUT, "more than 0.5 s of CPU time"),
        (b"hoard", FailureKind.PARSE_MEMORY, "more than 1000 MB"),
        (b"die", FailureKind.PARSE_CRASH, "died: SIGKILL"),
    ],
)
def test_a_page_that_ends_the_process_is_named_and_the_next_is_answered(
    message, kind, detail, parser
):
    with pytest.raises(ParsingStoppedError) as stopped:
        parser.ask(message)
    assert stopped.value.kind is kind
    assert detail in stopped.value.detail
    assert parser.ask(b"next") == b"NEXT"


def test_a_page_that_waits_for_something_ends_by_the_clock():
    with (
        ParserProcess(handle, ParsingLimits(elapsed_s=0.2)) as parser,
        pytest.raises(ParsingStoppedError, match=r"0\.2 s by the clock") as stopped,
    ):
        parser.ask(b"doze")
    assert stopped.value.kind is FailureKind.PARSE_TIMEOUT


class DyingHandler:
    """Dies over a message as often as its file has lines, removing one each time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, message: bytes) -> bytes:
        deaths = self._file.read_text().splitlines()
        if deaths:
            self._file.write_text("\n".join(deaths[1:]))
            os.kill(os.getpid(), signal.SIGKILL)
        return message.upper()


@pytest.mark.parametrize("deaths", [1, MAX_PROCESSES_PER_PAGE - 1])
def test_a_page_whose_process_was_killed_is_parsed_by_another_one(deaths, tmp_path):
    file = tmp_path / "deaths"
    file.write_text("death\n" * deaths)
    with ParserProcess(DyingHandler(file), ParsingLimits()) as parser:
        assert parser.ask(b"page") == b"PAGE"


def test_an_exception_of_the_handler_is_reported_and_does_not_end_the_process(parser):
    parser.ask(b"one")
    process = parser._process
    with pytest.raises(HandlerError, match="no idea"):
        parser.ask(b"raise")
    assert parser.ask(b"next") == b"NEXT"
    assert parser._process is process


def test_a_process_that_its_own_timers_cannot_end_is_killed():
    with (
        ParserProcess(handle, ParsingLimits(elapsed_s=0.2)) as parser,
        pytest.raises(ParsingStoppedError) as stopped,
    ):
        parser.ask(b"stop")
    assert stopped.value.kind is FailureKind.PARSE_TIMEOUT


@pytest.mark.parametrize("share", [0.0, 0.01, 0.9])
def test_a_process_whose_parent_dies_before_it_has_its_handler_just_ends(share):
    first = framed(pickled(handle, ParsingLimits()))
    answers = io.BytesIO()
    serve(io.BytesIO(first[: int(share * len(first))]), answers)
    assert answers.getvalue() == b""
