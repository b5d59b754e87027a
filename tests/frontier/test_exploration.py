"""The exploration bonus falls with each page, and more with each unproductive one.

tests/contracts/test_exploration.py tests how a frontier uses it.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.queued_link import NO_EXPLORATION, Exploration, unproductive_after


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_with_each_page_the_bonus_falls_and_with_each_unproductive_one_less_again(
    asked: int, unproductive: float
) -> None:
    exploration = Exploration(new_host_bonus=3.0, unproductive_penalty=1.0)
    bonus = exploration.bonus(asked, unproductive)
    assert exploration.bonus(asked + 1, unproductive) < bonus <= 3.0
    assert exploration.bonus(asked, unproductive + 1.0) < bonus
    assert NO_EXPLORATION.bonus(asked, unproductive) == 0.0


@given(st.floats(0, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_the_more_relevant_a_page_the_fewer_its_host_is_unproductive_by(
    unproductive: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert (
        0.0
        <= unproductive_after(unproductive, high)
        <= unproductive_after(unproductive, low)
        <= unproductive + 1.0
    )
