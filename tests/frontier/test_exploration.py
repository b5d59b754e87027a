"""What is hoped of a host falls with each page, and with each barren one again.

What a frontier makes of it is told in tests/contracts/hopes.py.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.exploration import NONE, Exploration, barren_after


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_with_each_page_less_is_hoped_and_with_each_barren_one_less_again(
    asked: int, barren: float
) -> None:
    exploration = Exploration(unknown=3.0, dry=1.0)
    hope = exploration.hope(asked, barren)
    assert exploration.hope(asked + 1, barren) < hope <= 3.0
    assert exploration.hope(asked, barren + 1.0) < hope
    assert NONE.hope(asked, barren) == 0.0


@given(st.floats(0, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_the_more_relevant_a_page_the_fewer_its_host_is_barren_by(
    barren: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= barren_after(barren, high) <= barren_after(barren, low) <= barren + 1.0
