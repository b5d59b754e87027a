"""A place in a queue tells priority and number, and sorts by them."""

from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.places import number_of, place, priority_of

priorities = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(0, 2**40 - 1)


@given(priorities, priorities, numbers, numbers)
def test_larger_priorities_come_first(one: float, other: float, here: int, there: int) -> None:
    if one > other:
        assert place(one, here) < place(other, there)


@given(priorities.filter(bool), numbers, numbers)
def test_of_equal_priorities_the_first_found_comes_first(
    priority: float, one: int, other: int
) -> None:
    assert (place(priority, one) < place(priority, other)) == (one < other)


@given(priorities, numbers)
def test_a_place_tells_its_priority_and_its_number(priority: float, number: int) -> None:
    told = place(priority, number)
    assert (priority_of(told), number_of(told), len(told)) == (priority, number, 13)
