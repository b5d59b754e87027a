"""Queue keys hold priority and number, and sort by them."""

from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.queued_link import number_in_key, queue_key, rank_in_key

priorities = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(0, 2**40 - 1)


@given(priorities, priorities, numbers, numbers)
def test_larger_priorities_come_first(one, other, here, there):
    if one > other:
        assert queue_key(one, here) < queue_key(other, there)


@given(priorities.filter(bool), numbers, numbers)
def test_of_equal_priorities_the_first_found_comes_first(priority, one, other):
    assert (queue_key(priority, one) < queue_key(priority, other)) == (one < other)


@given(priorities, numbers)
def test_a_queue_key_holds_its_priority_and_its_number(priority, number):
    encoded = queue_key(priority, number)
    assert (rank_in_key(encoded), number_in_key(encoded), len(encoded)) == (priority, number, 13)
