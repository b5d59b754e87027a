"""Errors are printed on terminals, and quote what others wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused import errors
from focused.errors import ConfigurationError, FocusedError, escape_control_characters


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x08c\x9b31m", r"a\rb\x08c\x9b31m"),
        ("\u202etxt.exe\u2066\u200f", r"\u202etxt.exe\u2066\u200f"),
        ("\udc9b", r"\udc9b"),
        ("two\nlines, ελληνικά, فارسی می\u200cخواهم, 🐋", None),
    ],
)
def test_controls_and_bidirectional_marks_are_written_out_and_letters_stay(text, shown):
    assert escape_control_characters(text) == (text if shown is None else shown)


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    kept = (
        escape_control_characters(text)
        .replace("\n", "")
        .replace("\u200c", "")
        .replace("\u200d", "")
    )
    assert kept.isprintable()


def test_an_error_shows_the_controls_in_its_message():
    assert str(ConfigurationError("key \x1b[2J: wrong")) == r"key \x1b[2J: wrong"


def test_the_tree_of_errors_is_documented_whole():
    defined = [each for each in vars(errors).values() if isinstance(each, type)]
    names = {each.__name__ for each in defined if issubclass(each, FocusedError)}
    assert not {name for name in names if f" {name} " not in errors.__doc__}
