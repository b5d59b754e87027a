"""Rows of the frontier: what goes in comes out, in the right order."""

from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.queued import (
    QueuedLink,
    descending,
    from_bytes,
    link_key,
    priority_of,
    to_bytes,
)

priorities = st.floats(allow_nan=False, allow_infinity=False)


@given(priorities, priorities)
def test_larger_priorities_sort_first(one: float, other: float) -> None:
    if one > other:
        assert descending(one) < descending(other)


@given(priorities)
def test_a_queue_key_tells_its_priority(priority: float) -> None:
    assert priority_of(b"host" + descending(priority) + b"whatever") == priority


@given(
    url=st.text(min_size=1),
    anchor=st.text(),
    score=st.floats(0, 1),
    depth=st.integers(0, 1000),
    parent=st.none() | st.text(),
    payload=st.none() | st.text(),
)
def test_a_link_survives_being_written_and_read(url, anchor, score, depth, parent, payload) -> None:
    link = QueuedLink(
        link_key("u"), url, "host", score, score, depth, parent, anchor, (0.5, -1.25), 12.5,
        payload=payload,
    )  # fmt: skip
    assert from_bytes(to_bytes(link)) == link
