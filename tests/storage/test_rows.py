"""Rows survive any text from the web."""

from hypothesis import given
from hypothesis import strategies as st

from focused.storage.rows import pack, unpack

leaves = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False)
values = st.recursive(
    leaves | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_a_row_read_back_is_the_row_written(value):
    assert unpack(pack(value)) == value


def test_lone_surrogates_become_question_marks_and_the_rest_stays():
    row = pack([b"\xff\x00", "a\ud800b", {"\udfffkey": ["ok \u2028", 1.5, None, True]}])
    assert unpack(row) == [b"\xff\x00", "a?b", {"?key": ["ok \u2028", 1.5, None, True]}]
