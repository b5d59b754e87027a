"""Messages between partitions that are malformed."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.messages import MessageError, decode_batch


def test_text_that_is_no_utf8_is_malformed():
    data = msgspec.msgpack.encode((0, 1, 2, [("http://a.test/?", 0.5, 1, None, "", [], 0, 0)]))
    with pytest.raises(MessageError):
        decode_batch(data.replace(b"?", b"\xff"))


@given(st.binary(max_size=100))
def test_any_bytes_are_a_batch_or_malformed(data):
    with suppress(MessageError):
        decode_batch(data)
