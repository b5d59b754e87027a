"""Formatted numbers, and untrusted text escaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.reports.formatting import format_duration, single_line


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7260, "2 h 1 min"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, words):
    assert format_duration(seconds) == words


@given(st.text())
def test_foreign_text_becomes_one_printable_line(text):
    assert single_line(text).replace("\u200c", "").replace("\u200d", "").isprintable()


def test_what_could_steer_the_terminal_is_written_out():
    assert single_line("Wha\x1b[31mles\u202e \t\n live") == r"Wha\x1b[31mles\u202e live"


@given(st.text(), st.integers(1, 20))
def test_foreign_text_is_cut_to_its_width(text, width):
    assert len(single_line(text, width)) <= width
