"""Messages between partitions that are malformed."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.rounds.messages import (
    LinkBatch,
    LinkMessage,
    MessageError,
    decode_batch,
    encode_batch,
)


def test_text_that_is_no_utf8_is_malformed():
    data = msgspec.msgpack.encode((0, 1, [("http://a.test/?", 0.5, 1, None, "", [], 0, 0)]))
    with pytest.raises(MessageError):
        decode_batch(data.replace(b"?", b"\xff"))


def test_values_that_are_nested_too_deeply_are_malformed():
    with pytest.raises(MessageError):
        decode_batch(b"\x93\x00\x01" + b"\x91" * 100_000 + b"\xc0")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_batch_or_malformed(data):
    with suppress(MessageError):
        decode_batch(data)


def test_a_batch_is_read_as_it_was_written():
    link = LinkMessage("é" * 8_192, 1.0, 10**6, "é" * 8_192, "😀" * 1_000, (1.0,) * 255, 9, 2**63)
    batch = LinkBatch(3, 5, (link, link))
    assert decode_batch(encode_batch(batch)) == batch
