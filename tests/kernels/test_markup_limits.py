"""Compiled and interpreted, markup has the same numbers, and the same tags are removed."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import markup_limits

PIECES = st.sampled_from(
    ("<b>", "</B >", "<i\n", "<li>", "<dt>", "</rp>", "<html>", "<BODY a", "/>", "<")
)


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("markup_limits")


@settings(deadline=None)
@given(st.lists(PIECES | st.text("<b/> i{é中", max_size=9)).map("".join))
def test_compiled_and_interpreted_count_alike(source, html):
    assert markup_limits.scan_markup(html) == source.scan_markup(html)


@settings(deadline=None)
@given(st.lists(PIECES | st.text("<b/> i{é中", max_size=9)).map("".join), st.integers(0, 4))
def test_compiled_and_interpreted_remove_the_same_tags(source, html, most):
    given = html, most, most, most
    assert markup_limits.limit_tags(*given) == source.limit_tags(*given)


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<b><i></b><U/><code\n></i ></span>", (7, 3, 0)),
        ("</b></b><b><br><bdo><B\N{NO-BREAK SPACE}>", (6, 1, 0)),
        ("<HTML a=1><p><body b<p", (3, 0, 19)),
    ],
)
def test_tags_are_counted(source, html, found):
    assert markup_limits.scan_markup(html) == source.scan_markup(html) == found
