"""Messages between partitions that are malformed."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.exchange import MAX_BATCH_BYTES
from focused.cluster.messages import LinkMessage, MessageError, decode_batch, encode_batches


def test_text_that_is_no_utf8_is_malformed():
    data = msgspec.msgpack.encode((0, 1, 2, [("http://a.test/?", 0.5, 1, None, "", [], 0, 0)]))
    with pytest.raises(MessageError):
        decode_batch(data.replace(b"?", b"\xff"))


def test_values_that_are_nested_too_deeply_are_malformed():
    with pytest.raises(MessageError):
        decode_batch(b"\x94\x00\x01\x02" + b"\x91" * 100_000 + b"\xc0")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_batch_or_malformed(data):
    with suppress(MessageError):
        decode_batch(data)


def long_link(number, length):
    url = f"http://example.org/{'x' * length}/{number}"
    return number, LinkMessage(url, 0.5, 1, url, "anchor", (0.25,) * 20, 0, 7)


@pytest.mark.parametrize("count", [1, 2, 7, 1_000])
@pytest.mark.parametrize("length", [10, 8_000])
def test_links_are_divided_into_batches_of_bounded_length(count, length):
    links = [long_link(number, length) for number in range(count)]
    batches = encode_batches(3, 5, links, MAX_BATCH_BYTES)
    assert all(len(batch) <= MAX_BATCH_BYTES for batch in batches)
    decoded = [decode_batch(batch) for batch in batches]
    assert [message for batch in decoded for message in batch.links] == [each[1] for each in links]
    assert {(batch.sender, batch.token) for batch in decoded} == {(3, 5)}
    numbers = [batch.number for batch in decoded]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == count - 1


def test_few_links_are_one_batch():
    assert len(encode_batches(3, 5, [long_link(n, 10) for n in range(100)], MAX_BATCH_BYTES)) == 1


def test_the_longest_link_fits():
    link = LinkMessage("é" * 8_192, 1.0, 10**6, "é" * 8_192, "😀" * 1_000, (1.0,) * 255, 9, 2**63)
    (batch,) = encode_batches(3, 5, [(1, link)], MAX_BATCH_BYTES)
    assert len(batch) <= MAX_BATCH_BYTES
    assert decode_batch(batch).links == (link,)
