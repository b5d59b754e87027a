"""Query parameters that a topic drops from links."""

import pytest

from focused.web.page import Link, Page
from focused.web.scope_filter import QueryParameterFilter, compile_parameter_names

DROPPED = QueryParameterFilter(("sort", "view_*", "a.b"))


@pytest.mark.parametrize(
    ("url", "shorter"),
    [
        ("http://a.com/?sort=up&id=1", "http://a.com/?id=1"),
        ("http://a.com/?id=1&sort", "http://a.com/?id=1"),
        ("http://a.com/x?sort=1&view_=2&view_all=3", "http://a.com/x"),
        (
            "http://a.com/?Sort=1&resort=2&view=3&aXb=4",
            "http://a.com/?Sort=1&resort=2&view=3&aXb=4",
        ),
        ("http://a.com/?a.b=sort&sort=a.b", "http://a.com/"),
        ("http://a.com/?q=1?sort=2", "http://a.com/?q=1?sort=2"),
        ("http://a.com/sort=1", "http://a.com/sort=1"),
    ],
)
def test_named_parameters_go_and_all_others_stay(url, shorter):
    assert DROPPED.apply(url) == shorter


def test_without_names_nothing_is_dropped():
    assert QueryParameterFilter(()).apply("http://a.com/?sort=1") == "http://a.com/?sort=1"


def test_a_redirect_that_only_adds_a_parameter_is_followed():
    assert (
        DROPPED.apply_to_target("http://a.com/x?sort=1", "http://a.com/x")
        == "http://a.com/x?sort=1"
    )
    assert DROPPED.apply_to_target("http://a.com/y?sort=1", "http://a.com/x") == "http://a.com/y"


def test_a_pages_targets_are_without_them_each_once_and_not_itself():
    page = Page(
        "http://a.com/list?sort=up",
        links=tuple(
            Link(f"http://a.com/{tail}")
            for tail in ("x?sort=1", "list?sort=down", "x", "y?view_all=1&id=2")
        ),
        canonical="http://a.com/list?sort=up",
        refresh="http://a.com/z?sort=1",
    )
    seen = DROPPED.apply_to_page(page)
    assert [link.url for link in seen.links] == ["http://a.com/x", "http://a.com/y?id=2"]
    assert (seen.canonical, seen.refresh) == ("http://a.com/list", "http://a.com/z")


def test_what_is_kept_is_not_dropped_for_its_beginning():
    dropped = QueryParameterFilter(("view_*",), ("view_id", "page*"))
    url = "http://a.com/?view_id=1&view_all=2&page=3"
    assert dropped.apply(url) == "http://a.com/?view_id=1&page=3"


def test_names_are_exact_or_beginnings():
    is_one = compile_parameter_names(("page", "a.b*"))
    assert [bool(is_one(name)) for name in ("page", "a.bc", "pages", "Page", "axb")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert not compile_parameter_names(())("page")
