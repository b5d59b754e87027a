"""Other URLs of recorded pages redirect to them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused_lab.builders.docweb import RedirectFinder
from focused_lab.builders.docweb_rules import UrlAlias, load_aliases, load_doc_packages

PAGES = [
    "https://docs.example.org/3/",
    "https://docs.example.org/3/guide.html",
    "https://docs.example.org/3/howto/",
    "http://www.plain.example/index.html",
    "https://proj.readthedocs.io/en/latest/",
    "https://proj.readthedocs.io/en/latest/api.html",
    "https://www.shop.example/manual/2/intro.html",
]
BASES = ["https://docs.example.org/3/", "https://proj.readthedocs.io/en/latest/"]
RULES = [
    UrlAlias(re.compile(r"^docs\.example\.org/(?:\d[\d.]*|dev)/"), "docs.example.org/3/"),
    UrlAlias(re.compile(r"^proj\.rtfd\.org/en/[^/]+/"), "proj.readthedocs.io/*/"),
]


@pytest.fixture
def finder() -> RedirectFinder:
    return RedirectFinder(PAGES, BASES, RULES)


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("http://docs.example.org/3/guide.html", "https://docs.example.org/3/guide.html"),
        ("https://docs.example.org/2.7/guide.html", "https://docs.example.org/3/guide.html"),
        ("http://docs.example.org/dev/guide", "https://docs.example.org/3/guide.html"),
        ("https://docs.example.org/3/howto", "https://docs.example.org/3/howto/"),
        ("https://docs.example.org/3/howto.html", "https://docs.example.org/3/howto/"),
        ("https://www.docs.example.org/3/guide.html", "https://docs.example.org/3/guide.html"),
        ("https://shop.example/manual/2/intro.htm", "https://www.shop.example/manual/2/intro.html"),
        ("http://plain.example/", "http://www.plain.example/index.html"),
        ("https://docs.example.org/", "https://docs.example.org/3/"),
        ("http://proj.rtfd.org/en/v2/api.html", "https://proj.readthedocs.io/en/latest/api.html"),
        ("https://docs.example.org/3/guide.html?highlight=x", PAGES[1]),
    ],
)
def test_an_address_that_means_a_page_leads_to_it(finder, address, target):
    redirect = finder.find(address)
    assert redirect is not None
    assert redirect.target == target


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.example.org/3/guide.html",
        "https://docs.example.org/3/guide.html#section",
        "https://docs.example.org/3/index.html",
        "https://docs.example.org/3/missing.html",
        "https://elsewhere.example/3/guide.html",
        "mailto:a@docs.example.org",
        "http://[broken",
    ],
)
def test_served_unknown_and_broken_addresses_have_no_redirect(finder, address):
    assert finder.find(address) is None


def test_each_url_is_redirected_once(finder):
    addresses = ["http://docs.example.org/3/guide.html", "http://docs.example.org/3/guide.html#a"]
    assert len(list(finder.redirects(addresses))) == 1


@given(
    host=st.sampled_from(["docs.example.org", "proj.rtfd.org", "plain.example", "shop.example"]),
    path=st.from_regex(r"(?:[23a-z.]{1,8}/){0,3}(?:[a-z]{1,8}(?:\.html?)?)?", fullmatch=True),
    scheme=st.sampled_from(["http", "https"]),
)
def test_a_redirect_always_leads_from_a_url_that_is_not_a_page_to_one_that_is(host, path, scheme):
    redirect = RedirectFinder(PAGES, BASES, RULES).find(f"{scheme}://{host}/{path}")
    assert redirect is None or (redirect.target in PAGES and redirect.url not in PAGES)


@pytest.mark.parametrize(
    ("address", "target"),
    [
        (
            "http://docs.python.org/2/library/threading.html",
            "https://docs.python.org/3/library/threading.html",
        ),
        (
            "http://docs.python.org/library/threading",
            "https://docs.python.org/3/library/threading.html",
        ),
        (
            "https://www.postgresql.org/docs/current/static/sql.html",
            "https://www.postgresql.org/docs/15/sql.html",
        ),
        (
            "https://patsy.readthedocs.org/en/v0.5/overview.html",
            "https://patsy.readthedocs.io/en/latest/overview.html",
        ),
    ],
)
def test_the_shipped_rules_know_the_usual_other_addresses(address, target):
    bases = [package.base for package in load_doc_packages("full")]
    redirect = RedirectFinder([target], bases, load_aliases()).find(address)
    assert redirect is not None
    assert redirect.target == target
