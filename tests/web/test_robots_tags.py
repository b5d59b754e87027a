"""Robots directives of pages: X-Robots-Tag and meta elements."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import Headers, Response

from focused.scrapy_addon.outcomes import outcome_from_scrapy_response
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused.web.robots.robots_tags import RobotsDirectives, parse_robots_directives

NOTHING = RobotsDirectives()
NOINDEX = RobotsDirectives(noindex=True)
NOFOLLOW = RobotsDirectives(nofollow=True)
BOTH = RobotsDirectives(noindex=True, nofollow=True)
JUNE_25 = datetime(2010, 6, 25, 15, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("", NOTHING),
        ("all", NOTHING),
        ("index, follow", NOTHING),
        ("noindex", NOINDEX),
        ("NoIndex , NOFOLLOW", BOTH),
        ("none", BOTH),
        ("noindex nofollow", BOTH),
        ("noindex;nofollow", BOTH),
        ("max-snippet: 20, noindex", NOINDEX),
        ("max-image-preview:large", NOTHING),
        ("noindexed, nofollows", NOTHING),
        ("noindex\nnofollow", BOTH),
    ],
)
def test_directives_to_all_robots_are_heard(header, tags):
    assert parse_robots_directives(header, ()) == tags
    assert parse_robots_directives("", header.split("\n")) == tags


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("focusedbot: noindex", NOINDEX),
        ("FocusedBot:noindex,nofollow", BOTH),
        ("robots: noindex", NOINDEX),
        ("googlebot: noindex", NOTHING),
        ("googlebot: noindex, nofollow", NOTHING),
        ("googlebot: noindex, focusedbot: nofollow", NOFOLLOW),
        ("nofollow, googlebot: noindex", NOFOLLOW),
        ("googlebot: noindex\nnofollow", NOFOLLOW),
        ("focusedbot: noindex\ngooglebot: nofollow", NOINDEX),
        ("focusedbots: noindex", NOTHING),
        ("focused: noindex", NOTHING),
    ],
)
def test_a_name_before_directives_tells_whom_they_are_for(header, tags):
    assert parse_robots_directives(header, (), "FocusedBot") == tags


def test_what_is_said_to_all_and_to_us_adds_up():
    assert (
        parse_robots_directives("nofollow\nfocusedbot: index", ["noindex", "all"], "FocusedBot")
        == BOTH
    )


@pytest.mark.parametrize(
    "date",
    [
        "25 Jun 2010 15:00:00 GMT",
        "Friday, 25-Jun-10 15:00:00 UTC",
        "Fri, 25 Jun 2010 15:00:00 +0000",
        "25 Jun 2010 11:00:00 EDT",
        "2010-06-25T15:00:00",
        "2010-06-25T17:00:00+02:00",
    ],
)
@pytest.mark.parametrize("form", ["{}", "{}, noarchive", "noarchive, {}"])
def test_the_end_of_a_page_is_a_date_in_any_usual_form(date, form):
    value = form.format(f"unavailable_after: {date}")
    assert parse_robots_directives(value, ()).unavailable_after == JUNE_25
    assert parse_robots_directives("", [value]).unavailable_after == JUNE_25
    assert (
        parse_robots_directives(f"focusedbot: {value}", (), "FocusedBot").unavailable_after
        == JUNE_25
    )
    assert parse_robots_directives(f"otherbot: {value}", (), "FocusedBot").unavailable_after is None


def test_the_earliest_end_counts_and_one_that_is_not_a_date_says_nothing():
    later = "unavailable_after: 25 Jun 2011 15:00:00 GMT"
    sooner = "unavailable_after: 25 Jun 2010 15:00:00 GMT"
    assert parse_robots_directives(f"{later}\n{sooner}", [later]).unavailable_after == JUNE_25
    assert parse_robots_directives("unavailable_after: soon, noindex", ()) == NOINDEX


def test_a_page_is_excluded_from_its_end_on():
    page = Page("http://a.test/", unavailable_after=JUNE_25)
    assert [page.is_noindex_at(JUNE_25 + s) for s in (-1, 0, 1)] == [False, True, True]
    assert Page("http://a.test/", noindex=True).is_noindex_at(0.0)


def parsed(html: str, robot: str = "FocusedBot", **headers: str) -> Page:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    fetched = Fetched("http://a.test/", 200, {"content-type": "text/html", **named}, html.encode())
    page = parse_page(fetched, robot=robot)
    assert isinstance(page, Page)
    return page


def test_several_meta_elements_add_up():
    page = parsed(
        "<meta name=robots content=noarchive><meta name=Robots content=noindex>"
        "<body><meta name=focusedbot content=nofollow><p>x"
    )
    assert (page.noindex, page.nofollow) == (True, True)


def test_a_meta_element_for_another_robot_is_ignored():
    for robot, named in (("FocusedBot", "googlebot"), ("", "focusedbot")):
        page = parsed(f"<meta name={named} content=none><p>x", robot=robot)
        assert (page.noindex, page.nofollow) == (False, False)


def test_a_plain_text_has_its_header_alone():
    page = parsed("x", content_type="text/plain", x_robots_tag="focusedbot: none")
    assert (page.noindex, page.nofollow) == (True, True)


def test_several_headers_are_kept_apart():
    headers = Headers({"X-Robots-Tag": ["googlebot: nofollow", "noindex"], "Vary": ["a", "b"]})
    response = Response("http://a.test/", headers=headers, body=b"<p>x")
    outcome = outcome_from_scrapy_response(Request("http://a.test/"), response, 0.0)
    assert isinstance(outcome, Fetched)
    page = parse_page(outcome, robot="FocusedBot")
    assert isinstance(page, Page)
    assert (page.noindex, page.nofollow) == (True, False)
    assert outcome.headers["vary"] == "a, b"


words = st.lists(
    st.sampled_from(
        ["noindex", "unavailable_after", ":", ",", "\n", ";", " ", "bot", "25 Jun 2010", "9" * 40]
    )
).map("".join)


@given(st.one_of(st.text(), words), st.one_of(st.text(), words), st.text(max_size=5))
def test_nothing_that_a_page_says_raises(header, meta, robot):
    parse_robots_directives(header, [meta], robot)


@pytest.mark.parametrize(
    "piece", [" ", "a", "a:", ",", "unavailable_after:", "unavailable_after:,"]
)
def test_long_headers_are_read_in_linear_time(piece):
    assert parse_robots_directives(f"noindex,{piece * 100_000}", ()).noindex
