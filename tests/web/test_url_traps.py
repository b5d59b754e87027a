"""Which URLs look like traps."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.text.content_signatures import opening_digest, page_template, text_digest
from focused.topic import Scope
from focused.web.host_names import registered_domain
from focused.web.page import Link, Page
from focused.web.scope_filter import ScopeFilter, find_url_trap
from focused.web.url_patterns import (
    INDEX_PAGE,
    LETTER_CASE,
    PARAMETER_ORDER,
    TRAILING_SLASH,
    differing_parts,
    ignorable_parts,
    part_name,
    part_with_value,
    patterns_of_url,
    without_parts,
)

HOST = "https://a.test"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/shop/shop/shop/list", "trap: repeated segments"),
        ("/x/y/x/y/x/y/", "trap: repeated segments"),
        ("/1/1/1/a/a/a/list", "trap: repeated segments"),
        ("/en/a/b/c/d/a/b/c/d/a/b/c/d/z", "trap: repeated segments"),
        ("/a/b/a/c/a/d/a/e/a/f", "trap: repeated segments"),
        ("/" + "/".join(f"s{n}" for n in range(22)), "trap: path too deep"),
        ("/?" + "&".join(f"p{n}=1" for n in range(21)), "trap: too many parameters"),
        ("/?tag=a&tag=a&tag=b&tag=a", "trap: repeated parameters"),
        ("/login?to=%252525252Flogin", "trap: nested escapes"),
    ],
)
def test_what_grows_from_link_to_link_is_refused_once_it_is_long(path, reason):
    assert find_url_trap(HOST + path) == reason


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/shop/shop/list/shop.html",
        "/0/0/0/0/map.png",
        "/2026/11/11/11/",
        "/12/12/12/12/12/12/",
        "/a/b/a/b/index.html",
        "/a//b//c//d//e//f",
        "/buglist?" + "&".join(f"status={name}" for name in "abcdefgh"),
        "/redirect?to=https%253A%252F%252Fb.test%252F",
        "/" + "/".join(f"s{n}" for n in range(20)),
        "/?x&&&&y",
    ],
)
def test_what_real_sites_have_is_left_alone(path):
    assert find_url_trap(HOST + path) is None


@given(st.lists(st.sampled_from(["a", "b", "cc", "1", "22", ""]), max_size=15))
def test_repetition_is_found_wherever_it_is(segments):
    path = "/" + "/".join(segments)
    folders = [each for each in segments[:-1] if each]
    repeats = any(
        block * 3 == segments[at : at + 3 * size] and not all(map(str.isdigit, block))
        for size in range(1, 5)
        for at in range(len(segments))
        for block in [segments[at : at + size]]
        if len(block) == size and all(block) and at + 3 * size < len(segments)
    )
    often = any(folders.count(each) >= 5 for each in folders if not each.isdigit())
    assert (find_url_trap(HOST + path) is not None) == (repeats or often)


@given(st.text(max_size=200))
def test_no_url_is_too_odd_to_be_looked_at(rest):
    url = f"{HOST}/{rest}"
    find_url_trap(url)
    assert patterns_of_url(url)
    without_parts(url, ignorable_parts(url))


def test_the_scope_refuses_links_and_never_seeds():
    url = f"{HOST}/shop/shop/shop/list"
    assert ScopeFilter(Scope()).refusal_reason(url, depth=1) == "trap: repeated segments"
    assert ScopeFilter(Scope()).refusal_reason(url, depth=0) is None
    assert ScopeFilter(Scope(traps=False)).refusal_reason(url, depth=1) is None
    assert ScopeFilter(Scope(deny_hosts=("a.test",))).refusal_reason(url, depth=1) == "host denied"


@pytest.mark.parametrize(
    ("url", "kind", "name"),
    [
        (f"{HOST}/calendar/2026/11/05/", "calendar", "a.test/calendar/{date}/"),
        (f"{HOST}/2026-11.html", "calendar", "a.test/{date}.html"),
        (f"{HOST}/cal?year=2026&month=3", "calendar", "a.test/cal?month&year"),
        (f"{HOST}/cal?view=2026-03-01", "calendar", "a.test/cal?view"),
        (f"{HOST}/2026/11/05/a-walk", "numbered", "a.test/{date}/a-walk"),
        (f"{HOST}/msg00012.html", "numbered", "a.test/msg{n}.html"),
        (f"{HOST}/commit/deadbeef01/", "numbered", "a.test/commit/{hex}/"),
        (f"{HOST}/list?b=1&a=2&b=3", "query", "a.test/list?a&b"),
    ],
)
def test_what_varies_in_a_url_is_a_placeholder_in_its_narrowest_place(url, kind, name):
    narrowest = patterns_of_url(url)[0]
    assert (narrowest.kind, narrowest.name) == (kind, name)


def test_places_widen_from_pattern_to_domain():
    names = [place.name for place in patterns_of_url("https://www.a.co.uk/x/y?b=1")]
    assert names == [
        "www.a.co.uk/x/y?b",
        "www.a.co.uk/x/y?",
        "www.a.co.uk/x/*",
        "www.a.co.uk",
        "*.a.co.uk",
    ]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("docs.python.org", "python.org"),
        ("a.b.co.uk:8080", "b.co.uk"),
        ("someone.github.io", "someone.github.io"),
        ("h7.hosts.test", "hosts.test"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8080", "[::1]"),
        ("co.uk", "co.uk"),
        ("a.b.unknown", "b.unknown"),
        ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
    ],
)
def test_hosts_are_of_the_domain_that_somebody_registered(host, domain):
    assert registered_domain(host) == domain


def test_parameters_their_order_and_folders_like_tokens_may_be_a_sessions():
    url = f"{HOST}/s-4f3c2b1a9e8d/page/1?b=2&a=1"
    assert ignorable_parts(url) == (PARAMETER_ORDER, "folder 3", "?b", "?a")
    assert ignorable_parts(f"{HOST}/documentation/page.html") == ()


@pytest.mark.parametrize(
    ("one", "other", "slots"),
    [
        ("/Dir/page", "/dir/page", (LETTER_CASE,)),
        ("/dir/index.html", "/dir/", (INDEX_PAGE,)),
        ("/dir/Default.aspx?a=1", "/dir/?a=1", (INDEX_PAGE,)),
        ("/dir/", "/dir", (TRAILING_SLASH,)),
        ("/index.html", "/", (INDEX_PAGE,)),
        ("/Dir/INDEX.html", "/dir/", (LETTER_CASE, INDEX_PAGE)),
        ("/x?b=1&a=2", "/x?a=2&b=1", (PARAMETER_ORDER,)),
        ("/x?id=3&sort=up", "/x?id=3", ("?sort",)),
        ("/x?id=3&sort=up", "/x?sort=down&id=3", ("?sort",)),
        ("/index.html5", "/", ()),
        ("/dir/indexes", "/dir/", ()),
        ("/a", "/b", ()),
        ("/a", "/a", ()),
    ],
)
def test_what_two_spellings_differ_in_is_named(one, other, slots):
    assert set(differing_parts(HOST + one, HOST + other)) == set(slots)
    assert set(differing_parts(HOST + other, HOST + one)) == set(slots)


def test_the_front_page_has_no_slash_to_lose_and_escapes_no_case():
    assert ignorable_parts(f"{HOST}/") == ()
    assert ignorable_parts(f"{HOST}/caf%C3%A9") == ()
    assert ignorable_parts(f"{HOST}/caf%C3%A9/") == (TRAILING_SLASH,)
    assert ignorable_parts(f"{HOST}/%2EFoo") == (LETTER_CASE,)


SPELLED = st.builds(
    lambda segments, parts: f"{HOST}/{'/'.join(segments)}?{'&'.join(parts)}".removesuffix("?"),
    st.lists(st.sampled_from(["Dir", "dir", "index.html", "Index.PHP", ""]), max_size=3),
    st.lists(st.sampled_from(["a=1", "a=2", "b=1", "b"]), max_size=3),
)


@given(SPELLED, SPELLED)
def test_two_urls_without_what_they_differ_in_are_one(one, other):
    slots = differing_parts(one, other)
    assert bool(differing_parts(other, one)) == bool(slots)
    if slots:
        assert without_parts(one, slots) == without_parts(other, slots)
        assert without_parts(one, ()) != without_parts(other, ())
    assert all(part_name(part_with_value(one, slot)) == slot for slot in ignorable_parts(one))


def test_one_value_of_a_parameter_can_be_excluded():
    first, second = f"{HOST}/list?page=1&by=", f"{HOST}/list?page=2&by="
    assert part_with_value(first, "?page") == "?page=1"
    assert without_parts(first, ["?page=1"]) == f"{HOST}/list?by="
    assert without_parts(second, ["?page=1"]) == f"{HOST}/list?page=2&by="
    assert without_parts(f"{HOST}/list?page=1&by", [part_with_value(first, "?by")]) == (
        f"{HOST}/list?page=1"
    )


def test_urls_that_differ_in_a_slot_alone_are_one_without_it():
    one, other = f"{HOST}/s-4f3c2b1a9e8d/1?b=2&a=1", f"{HOST}/s-000000000001/1?a=1&b=7"
    slots = {PARAMETER_ORDER, "folder 3", "?b"}
    assert without_parts(one, slots) == without_parts(other, slots)
    assert without_parts(one, {"?b"}) != without_parts(other, {"?b"})


def made_up(number: int, link: str, title: str = "") -> Page:
    text = f"Events of {number} May: no event is planned for this day. {link}"
    url = f"{HOST}/events/{number}"
    return Page(url, title or f"Page {number}", text=text, links=(Link(f"{HOST}/x", anchor=link),))


def test_pages_that_differ_in_numbers_dates_links_and_their_own_address_have_one_frame():
    one, other = made_up(1, "tango"), made_up(22, "waltz")
    assert page_template(one) == page_template(other)
    assert page_template(one).digest is not None
    assert text_digest(one) != text_digest(other)


def test_pages_that_say_something_else_have_another_frame():
    assert page_template(made_up(1, "x")) != page_template(made_up(1, "x", "Whales sing"))


def test_a_page_of_links_has_a_small_frame_and_one_without_words_none():
    anchors = " ".join(re.findall("..", "abcdefghijklmnopqrstuvwxyz" * 4))
    links = (Link(f"{HOST}/x", anchor=anchors),)
    listing = Page(f"{HOST}/all", "All of these letters", text=anchors, links=links)
    assert page_template(listing).share < 0.2
    assert page_template(Page(f"{HOST}/all", text=anchors, links=links)).digest is None


def test_the_case_and_the_punctuation_of_words_do_not_count():
    contents = [
        "Was this «page» what you – expected? Café.",
        "was this page what you expected café",
    ]
    one, other = (Page(f"{HOST}/x", text=text) for text in contents)
    assert page_template(one) == page_template(other)
    assert text_digest(one) == text_digest(other)


@given(
    st.lists(st.sampled_from(("whale", "été", "ocean", "reef", "May", "a1", "7")), max_size=60),
    st.lists(st.text("bcd ", max_size=300), min_size=2, max_size=2),
)
def test_pages_of_one_frame_have_one_beginning(words, anchors):
    one, other = (
        Page(f"{HOST}/{n}", text=f"{n} {anchor} {' '.join(words)}", links=(Link("", anchor),))
        for n, anchor in enumerate(anchors)
    )
    assert page_template(one).digest == page_template(other).digest
    assert opening_digest(one) == opening_digest(other)


def test_a_beginning_is_found_behind_long_lists_of_links():
    anchors = ["xyz " * 700, "zyx " * 10]
    one, other = (
        Page(f"{HOST}/a", text=f"{anchor} alpha {'beta gamma ' * 9}", links=(Link("", anchor),))
        for anchor in anchors
    )
    assert opening_digest(one) == opening_digest(other)


def test_a_parameter_without_a_name_makes_a_place_of_its_own():
    names = [place.name for place in patterns_of_url(f"{HOST}/list?=1")]
    assert len(names) == len(set(names))
