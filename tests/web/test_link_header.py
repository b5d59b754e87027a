"""The canonical link of a Link header (RFC 6596, RFC 8288)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.link_header import canonical_in
from focused.web.page import Fetched, Page
from focused.web.parse import parse_page

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
def test_the_target_of_the_first_canonical_link_is_read(header: str, target: str | None) -> None:
    assert canonical_in(header) == target


@given(st.lists(st.sampled_from(["<", ">", ";", ",", "rel=", '"', "\\", "canonical", " ", "a"])))
def test_any_header_can_be_read(pieces: list[str]) -> None:
    found = canonical_in("".join(pieces))
    assert found is None or ("<" not in found and ">" not in found)


@pytest.mark.parametrize("content_type", ["text/html", "text/plain"])
def test_a_pages_header_tells_its_canonical_url(content_type: str) -> None:
    headers = {"content-type": content_type, "link": "<../list#top>; rel=canonical"}
    page = parse_page(Fetched(URL, 200, headers, b"a whale of a text"))
    assert isinstance(page, Page)
    assert page.canonical == "http://a.test/list"


def test_what_the_page_itself_says_goes_before_its_header() -> None:
    body = b"<link rel=canonical href=/head>x"
    headers = {"content-type": "text/html", "link": "</header>; rel=canonical"}
    page = parse_page(Fetched(URL, 200, headers, body))
    assert isinstance(page, Page)
    assert page.canonical == "http://a.test/head"
