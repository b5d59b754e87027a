"""The contract of every exchange: a stream of batches per partition."""

from __future__ import annotations

import pytest

from focused.cluster.exchange import BEGINNING, MAX_BATCH_BYTES, Exchange
from focused.errors import ExchangeError
from tests.support.engines import Engine


@pytest.fixture
def exchange(engine: Engine) -> Exchange:
    return engine.exchange()


def batches(exchange: Exchange, partition: int, after: str = BEGINNING) -> list[bytes]:
    return [entry.batch for entry in exchange.receive(partition, after, 100)]


def test_an_unknown_stream_is_empty(exchange: Exchange) -> None:
    assert exchange.receive(5, BEGINNING, 10) == []
    assert exchange.waiting(5, BEGINNING) == 0
    assert exchange.memory(5) == 0
    exchange.trim(5, BEGINNING)


def test_batches_come_in_order(engine: Engine, exchange: Exchange) -> None:
    exchange.send(5, b"one")
    exchange.send(5, b"\x00two\xff")
    exchange.send(6, b"other")
    assert batches(engine.exchange(), 5) == [b"one", b"\x00two\xff"]
    assert batches(exchange, 6) == [b"other"]


def test_many_batches_are_sent_at_once(exchange: Exchange) -> None:
    exchange.send_all([(n % 40, b"%d" % n) for n in range(100)])
    exchange.send_all([])
    assert batches(exchange, 3) == [b"3", b"43", b"83"]
    assert batches(exchange, 39) == [b"39", b"79"]


def test_reading_goes_on_after_a_position(exchange: Exchange) -> None:
    exchange.send_all([(5, b"%d" % n) for n in range(5)])
    first = exchange.receive(5, BEGINNING, 2)
    assert [entry.batch for entry in first] == [b"0", b"1"]
    assert batches(exchange, 5, first[0].position) == [b"1", b"2", b"3", b"4"]
    assert batches(exchange, 5, exchange.receive(5, first[1].position, 9)[-1].position) == []


def test_trimmed_batches_are_gone(exchange: Exchange) -> None:
    exchange.send_all([(5, b"%d" % n) for n in range(5)])
    second = exchange.receive(5, BEGINNING, 2)[-1].position
    exchange.trim(5, second)
    assert batches(exchange, 5) == batches(exchange, 5, second) == [b"2", b"3", b"4"]
    exchange.trim(5, second)
    assert batches(exchange, 5) == [b"2", b"3", b"4"]


def test_positions_grow_when_all_was_trimmed(exchange: Exchange) -> None:
    exchange.send(5, b"old")
    position = exchange.receive(5, BEGINNING, 1)[-1].position
    exchange.trim(5, position)
    assert batches(exchange, 5) == []
    exchange.send(5, b"new")
    assert batches(exchange, 5, position) == [b"new"]


def test_waiting_batches_are_counted(exchange: Exchange) -> None:
    exchange.send_all([(5, b"%d" % n) for n in range(5)])
    entries = exchange.receive(5, BEGINNING, 5)
    counts = [exchange.waiting(5, entry.position) for entry in entries]
    assert [exchange.waiting(5, BEGINNING), *counts] == [5, 4, 3, 2, 1, 0]
    exchange.trim(5, entries[1].position)
    assert [exchange.waiting(5, entry.position) for entry in entries] == [3, 3, 2, 1, 0]


def test_memory_is_about_that_of_the_batches(exchange: Exchange) -> None:
    exchange.send_all([(5, b"x" * 10_000)] * 20)
    assert 200_000 <= exchange.memory(5) <= 400_000


def test_the_length_of_a_batch_is_bounded(exchange: Exchange) -> None:
    exchange.send(5, bytes(MAX_BATCH_BYTES))
    with pytest.raises(ExchangeError, match=r"256001 bytes .* divide it"):
        exchange.send(5, bytes(MAX_BATCH_BYTES + 1))
    assert exchange.waiting(5, BEGINNING) == 1
