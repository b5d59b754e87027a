"""Rules of our own for URLs, and short cuts; the standard: test_url_standard.py."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from focused.web.urls import (
    MAX_URL_CHARS,
    _parse_and_normalise,
    directory_of,
    host_of,
    make_resolver,
    normalize_url,
    robots_url,
)

BASE = "https://docs.example.org/3/library/index.html?v=1"


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com.:8080/a", "http://example.com:8080/a"),
        ("http://example.com/%7Euser/%c3%a9", "http://example.com/~user/%C3%A9"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://example.com/a?&", "http://example.com/a"),
        ("http://example.com/100%", "http://example.com/100%"),
        ("http://example.com/%%32e", "http://example.com/%%32e"),
    ],
)
def test_spellings_that_the_standard_tells_apart_are_one(raw, normal):
    assert normalize_url(raw) == normal


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("http://a.com/?utm_source=x&id=3&utm_medium=y", "http://a.com/?id=3"),
        ("http://a.com/?fbclid=1&gclid=2", "http://a.com/"),
        ("http://a.com/?PHPSESSID=abc&p=2", "http://a.com/?p=2"),
        ("http://a.com/x;jsessionid=0F3A?p=2", "http://a.com/x?p=2"),
        ("http://a.com/?sid=4f3c2b1a9e8d0123abcd", "http://a.com/"),
        ("http://a.com/?Session_ID=d9428888-122b-11e1-b85c-61cd3cbb3210", "http://a.com/"),
        ("http://a.com/?cftoken=4f1c9a0b7d2e6f88&id=3", "http://a.com/?id=3"),
        ("http://a.com/?zenid=1234567890123456", "http://a.com/"),
        ("http://a.com/..;jsessionid=1/b", "http://a.com/b"),
    ],
)
def test_tracking_parameters_and_session_ids_are_dropped(raw, normal):
    assert normalize_url(raw) == normal


@pytest.mark.parametrize(
    "url",
    [
        "http://a.com/story?sid=42",
        "http://a.com/programme?session_id=12",
        "http://a.com/programme?sessionid=introduction-to-whales",
        "http://a.com/programme?session_id=2026-11-keynote-whales",
        "http://a.com/item.cfm?cfid=88291",
        "http://a.com/?b=2&a=1",
        "http://a.com/a;v=1/b",
        "http://a.com//double",
        "http://a.com/?q=a+b%20c",
    ],
)
def test_what_may_carry_meaning_is_kept(url):
    assert normalize_url(url) == url


@pytest.mark.parametrize("url", ["", "relative/path", "http://" + "a." * 130 + "com/"])
def test_what_cannot_be_crawled_is_none(url):
    assert normalize_url(url) is None


def test_a_url_of_the_greatest_length_passes_and_one_more_does_not():
    url = "http://example.com/".ljust(MAX_URL_CHARS, "a")
    assert normalize_url(url) == url
    assert normalize_url(url + "a") is None
    assert normalize_url("a" * (MAX_URL_CHARS - 5), "http://example.com/") is None


def test_a_long_fragment_does_not_make_a_url_too_long():
    assert normalize_url("http://example.com/a#" + "x" * 50_000) == "http://example.com/a"


@pytest.mark.parametrize("base", ["about:blank", "", "mailto:a@b.c", "\ud800"])
def test_a_useless_base_leaves_relative_links_unresolved(base):
    assert normalize_url("os.html", base) is None
    assert normalize_url("https://a.com/?x=1", base) in ("https://a.com/?x=1", None)


url_like = st.text(alphabet=st.sampled_from("aZ0./:%2eE;?&=#@[]\\ -_~séjion\t\ud800x"), max_size=40)


@given(st.one_of(st.text(), url_like, url_like.map("http://a.com/".__add__)))
@example("http://a.com/%%32e")
@example("http://a.com/.;jsessionid=1;phpsessid=2/")
def test_normalising_never_raises_and_twice_changes_nothing(raw):
    once = normalize_url(raw)
    if once is not None:
        assert normalize_url(once) == once
        assert once.isascii()
        assert len(once) <= MAX_URL_CHARS
        assert "#" not in once


@given(
    st.one_of(url_like, st.from_regex(r"/?([a-z.%~-]{1,4}/){0,3}[a-zX0-9.]{0,4}", fullmatch=True))
)
def test_the_short_cut_for_plain_links_agrees_with_the_parser(link):
    clean_base = normalize_url(BASE)
    assert clean_base is not None
    assert make_resolver(BASE)(link) == _parse_and_normalise(link, clean_base)


# fmt: off
_PIECES = st.sampled_from([
    "../", "..", "./", "/", "a", "b-c.html", "x=1", "utm_source=x", "sid=1a2b3c4d5e6f7g8h", "?",
    "&", "&&", "=", "%41", ";", "#", "\\", " ", "é", ".",
])
# fmt: on


@given(
    st.lists(_PIECES, max_size=8).map("".join),
    st.sampled_from(
        [BASE, "http://a.com/", "https://a.com:8080/x//y/z.html?q=1", "http://1.2.3.4/a/b/"]
    ),
)
@example("../../../a", "http://a.com/x/y")
@example("..", "http://a.com/x/y")
@example("?", BASE)
@example("?a=1", BASE)
def test_the_short_cut_for_links_up_the_tree_and_with_queries_agrees_with_the_parser(link, base):
    clean_base = normalize_url(base)
    assert clean_base is not None
    assert make_resolver(base)(link) == _parse_and_normalise(link, clean_base)


_HOSTS = ["a.com", "127.0.0.1", "256.1.1.1", "1.2.3", "01.2.3.4", "0x7f.0.0.1", "xn--a.com"]
_PORTS = ["", ":80", ":443", ":8080", ":0", ":080", ":65535", ":65536", ":"]


@given(
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(_HOSTS),
    st.sampled_from(_PORTS),
    st.lists(_PIECES, max_size=5).map("".join),
)
def test_the_short_cut_for_addresses_and_ports_agrees_with_the_parser(scheme, host, port, rest):
    url = f"{scheme}{host}{port}/{rest}"
    assert normalize_url(url) == _parse_and_normalise(url, None)


@given(st.from_regex(r"https?://[a-z0-9.-]{1,12}[a-z]/[a-zA-Z0-9_.~/-]{0,12}", fullmatch=True))
@example("http://xn--a.com/")
@example("http://a.xn--a.com/")
@example("http://a.b.0x7/")
def test_the_short_cut_for_plain_urls_agrees_with_the_parser(url):
    assert normalize_url(url) == _parse_and_normalise(url, None)


def test_a_host_keeps_a_port_that_is_not_the_default():
    assert host_of("http://example.com/a/b") == "example.com"
    assert host_of("http://example.com:8080/") == "example.com:8080"


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("http://example.com/", "example.com/"),
        ("https://example.com/a", "example.com/"),
        ("http://example.com:8080/a/b.html", "example.com:8080/a/"),
        ("http://example.com/a/b/?x=/y/z", "example.com/a/b/"),
    ],
)
def test_a_directory_is_host_and_path_up_to_the_last_slash(url, directory):
    assert directory_of(url) == directory


def test_robots_rules_live_at_the_root_of_scheme_host_and_port():
    assert robots_url("https://example.com:444/a/b?c") == "https://example.com:444/robots.txt"
