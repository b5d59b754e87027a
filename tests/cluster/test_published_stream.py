"""The stream that all workers read, in memory and in Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from focused.cluster.exchange import BEGINNING, Exchange
from tests.support.engines import Engine

NewExchange = Callable[[int], Exchange]


@pytest.fixture
def new_exchange(engine: Engine) -> NewExchange:
    """Makes an exchange that keeps about so many published messages."""
    return engine.exchange


def read_all(exchange: Exchange, after: str = BEGINNING, limit: int = 7) -> list[bytes]:
    found = []
    while entries := exchange.published(after, limit):
        found += [entry.batch for entry in entries]
        after = entries[-1].position
    return found


def test_every_reader_reads_all_messages_in_one_order(new_exchange):
    exchange = new_exchange(1_000)
    messages = [b"%d" % number for number in range(40)]
    exchange.publish(messages[:1])
    exchange.publish(messages[1:])
    assert read_all(exchange) == read_all(exchange, limit=3) == messages


def test_a_reader_goes_on_after_its_position(new_exchange):
    exchange = new_exchange(1_000)
    exchange.publish([b"one", b"two"])
    position = exchange.published(BEGINNING, 1)[-1].position
    exchange.publish([b"three"])
    assert read_all(exchange, position) == [b"two", b"three"]


def test_only_the_last_messages_are_kept(new_exchange):
    """Redis removes whole nodes of a stream: a few hundred messages more are kept."""
    exchange = new_exchange(10)
    messages = [b"%d" % number for number in range(1_000)]
    exchange.publish(messages)
    kept = read_all(exchange)
    assert 10 <= len(kept) <= 300
    assert kept == messages[-len(kept) :]


def test_a_reader_whose_next_message_was_trimmed_gets_the_first_that_is_kept(new_exchange):
    exchange = new_exchange(10)
    exchange.publish([b"old"])
    position = exchange.published(BEGINNING, 1)[-1].position
    exchange.publish([b"%d" % number for number in range(1_000)])
    assert read_all(exchange, position) == read_all(exchange)


def test_nothing_is_published_by_an_empty_list(new_exchange):
    exchange = new_exchange(10)
    exchange.publish([])
    assert read_all(exchange) == []


def test_what_is_published_is_in_no_partitions_stream(new_exchange):
    exchange = new_exchange(10)
    exchange.publish([b"to all"])
    exchange.send(0, b"to one")
    assert [entry.batch for entry in exchange.receive(0, BEGINNING, 10)] == [b"to one"]
    assert read_all(exchange) == [b"to all"]
