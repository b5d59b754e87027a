"""Link headers (RFC 6596, RFC 8288), Refresh headers and meta elements (HTML standard)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.html.parse import parse_page
from focused.web.http_response import parse_canonical, parse_refresh
from focused.web.page import Fetched, Page

URL = "http://a.test/list?sort=up"


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('<http://a.test/list>; rel="canonical"', "http://a.test/list"),
        ("</list>;rel=canonical", "/list"),
        ('</x>; rel="next", </list>; rel="canonical"; type="text/html"', "/list"),
        ('</list> ; title="a, b; <c>" ; REL="up Canonical"', "/list"),
        ('</a,b;c>; rel="canonical"', "/a,b;c"),
        ('</x>; rel="next"; rel="canonical"', None),
        ('</x>; rel="canonical"; anchor="#part"', None),
        ('</x>; rel="canonicals"', None),
        ("<>; rel=canonical", None),
        ("canonical", None),
        ("", None),
    ],
)
def test_the_target_of_the_first_canonical_link_is_read(header, target):
    assert parse_canonical(header) == target


@given(st.lists(st.sampled_from(["<", ">", ";", ",", "rel=", '"', "\\", "canonical", " ", "a"])))
def test_any_header_can_be_read(pieces):
    found = parse_canonical("".join(pieces))
    assert found is None or ("<" not in found and ">" not in found)


@pytest.mark.parametrize("content_type", ["text/html", "text/plain"])
def test_a_pages_header_tells_its_canonical_url(content_type):
    headers = {"content-type": content_type, "link": "<../list#top>; rel=canonical"}
    page = parse_page(Fetched(URL, 200, headers, b"a whale of a text"))
    assert isinstance(page, Page)
    assert page.canonical == "http://a.test/list"


def test_what_the_page_itself_says_goes_before_its_header():
    body = b"<link rel=canonical href=/head>x"
    headers = {"content-type": "text/html", "link": "</header>; rel=canonical"}
    page = parse_page(Fetched(URL, 200, headers, body))
    assert isinstance(page, Page)
    assert page.canonical == "http://a.test/head"


# Refresh


@pytest.mark.parametrize(
    "value",
    [
        "0; url=/new",
        "0;URL=/new",
        "0, url=/new",
        "0 url=/new",
        "0;\turl\n=\f/new",
        " \r7  ,  Url  =  /new",
        "0; /new",
        "0,/new",
        "0 /new",
        "0; '/new'",
        '0; url="/new"',
        "0; url='/new'and more",
        "1.5..;url=/new",
        ".5; url=/new",
        ".; url=/new",
    ],
)
def test_a_refresh_names_its_target(value):
    assert parse_refresh(value) == "/new"


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("0; url=/it's", "/it's"),
        ("0; /it's", "/it's"),
        ('0; url="/it\'s"', "/it's"),
        ("0; url='/new", "/new"),
        ("0; url /new", "url /new"),
        ("0; url/new", "url/new"),
        ("0; ur=/new", "ur=/new"),
        ("0;; url=/new", "; url=/new"),
        ("0 x; url=/new", "x; url=/new"),
        ("0; url=url=/new", "url=/new"),
        ("0; url=' /new '", " /new "),
    ],
)
def test_what_is_not_a_quote_and_no_url_sign_belongs_to_the_target(value, target):
    assert parse_refresh(value) == target


@pytest.mark.parametrize("value", ["5", "5;", "5 , ", "0; url=", "0;url=''"])
def test_a_refresh_without_a_target_is_of_the_page_itself(value):
    assert parse_refresh(value) == ""


@pytest.mark.parametrize(
    "value",
    [
        *("", "/new", "url=/new", "; url=/new", "+0; url=/new", "-1;url=/new", "0x; url=/new"),
        *("1e0; url=/new", "1url=/new", "0'/new'", "\v0;url=/new"),
        "\N{ARABIC-INDIC DIGIT ONE}; url=/new",
    ],
)
def test_a_refresh_without_a_time_has_no_effect(value):
    assert parse_refresh(value) is None


def refresh_of(html: str, header: str = "") -> str | None:
    headers = {"content-type": "text/html", "refresh": header}
    page = parse_page(Fetched(URL, 200, headers, html.encode()))
    assert isinstance(page, Page)
    return page.refresh


def test_the_first_refresh_that_has_an_effect_counts_and_the_header_comes_first():
    metas = "".join(
        f'<meta http-equiv=refresh content="{value}">' for value in ("url=/no", "0; /it's", "0;/2")
    )
    assert refresh_of(metas + "x") == "http://a.test/it's"
    assert refresh_of(metas + "x", "url=/no") == "http://a.test/it's"
    assert refresh_of(metas + "x", "0; /header") == "http://a.test/header"
    assert refresh_of("<meta http-equiv=refresh content=9>" + metas + "x") is None
