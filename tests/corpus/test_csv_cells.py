"""CSV cells are safe from formula injection and round-trip."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.corpus.writers import escape_formulas, unescape_formulas

texts = st.text(st.sampled_from("=+-@\t\r\n'\";, a1\uff1d")) | st.text()
begins_a_formula = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"])
def test_text_that_begins_like_a_formula_gets_a_quote_in_front(text):
    assert escape_formulas(text).startswith("'")


@pytest.mark.parametrize("text", ["", "Whales", "a=b", "a - b", "'tis", "5 = 5", "a, -b"])
def test_other_text_stays_as_it_is(text):
    assert escape_formulas(text) == unescape_formulas(text) == text


@given(texts)
def test_what_is_written_is_read_back(text):
    assert unescape_formulas(escape_formulas(text)) == text


@given(texts)
def test_no_cell_begins_a_formula_whatever_separator_it_is_split_at(text):
    cells = re.split("[;\t\r\n]", escape_formulas(text))
    assert not any(begins_a_formula.match(cell) for cell in cells)
