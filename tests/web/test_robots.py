"""robots.txt in practice, and RFC 9309's example; its clauses: test_robots_rfc9309.py."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import StateError
from focused.web.page import Failed, FailureKind, Fetched
from focused.web.robots.robots_file import decode_robots
from focused.web.robots.robots_rules import (
    MAX_AGE_S,
    MIN_AGE_S,
    RETRY_S,
    RobotsAccess,
    RobotsRules,
    product_token,
    rules_from_fetch,
)

HOST = "https://example.com"
ROBOTS = HOST + "/robots.txt"
NOW = 1_000_000.0


def rules(text: str | bytes, **headers: str) -> RobotsRules:
    body = text.encode() if isinstance(text, str) else text
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return rules_from_fetch(Fetched(ROBOTS, 200, named, body), NOW)


def allows(text: str | bytes, path: str, agent: str = "ExampleBot") -> bool:
    return rules(text).allows(HOST + path, agent)


# RFC 9309, section 5.1

SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("otherbot", "/publications/", True),
        ("otherbot", "/example/page.html", False),
        ("otherbot", "/a.gif", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/publications/", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/allowed.gif", True),
        ("quxbot", "/example/page.html", True),
        ("quxbot", "/a.gif", True),
    ],
)
def test_the_simple_example_of_the_rfc(agent, path, allowed):
    assert allows(SIMPLE, path, agent) is allowed


# How files really look


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_byte_order_marks_and_line_ends_do_not_matter(start, end):
    assert not allows(start + end.join(("User-agent: *", "Disallow: /x")).encode(), "/x")


def test_ten_thousand_marks_in_a_row_are_skipped():
    body = b"\xff\xfe" * 10_000 + b"User-agent: *\nDisallow: /x\n"
    assert decode_robots(body) == "User-agent: *\nDisallow: /x\n"


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_mark_of_utf_16_before_a_file_of_octets_is_not_believed(mark):
    assert not allows(mark + b"User-agent: *\nDisallow: /x", "/x")


@pytest.mark.parametrize(
    "line",
    [
        "Disalow: /x",
        "Desallow: /x",
        "disallow /x",
        " Disallow : /x ",
        "dissallow: /x",
        "DISALLAW:/x",
        "Disallow\t/x:y",
    ],
)
def test_common_slips_are_understood(line):
    for agent in ("User agent: *", "useragent: *", "user-agent *"):
        assert not allows(f"{agent}\n{line}", "/x:y")


def test_a_sentence_is_not_a_rule():
    assert allows("User-agent: *\nDisallow / to all\nAllow me a word: stay away", "/x")


@pytest.mark.parametrize("start", [b"\xef\xbb", b"\xef"])
def test_a_piece_of_a_byte_order_mark_hides_no_line(start):
    assert not allows(start + b"User-agent: *\nDisallow: /x", "/x")


@pytest.mark.parametrize(
    "text", [b"\xef\x11\xbfUser-agent: x\nDisallow: /x", b"User-agent: x\n\xef\xbb\xbfDisallow: /x"]
)
def test_other_bytes_and_byte_order_marks_within_the_file_spoil_their_line(text):
    assert allows(text, "/x", "x")


@pytest.mark.parametrize("agent", ["WhaleBot-Images", "WhaleBot_Images", "WhaleBot2", "2WhaleBot"])
def test_a_longer_name_is_another_robots(agent):
    text = f"User-agent: WhaleBot\nDisallow: /w\n\nUser-agent: {agent}\nDisallow: /i"
    for name, denied, other in (("WhaleBot", "/w", "/i"), (agent, "/i", "/w")):
        for header in (name, f"{name}/1.0 (+http://x.y)", name.upper()):
            assert not allows(text, denied, header) and allows(text, other, header)


@pytest.mark.parametrize("agent", ["Foo Bar", "Foo/2.1", "foo*", "FOO # bar"])
def test_a_token_ends_where_a_token_can(agent):
    text = f"User-agent: *\nDisallow: /\nUser-agent: {agent}\nAllow: /x/\nDisallow: /"
    assert allows(text, "/x/y", "foo") and not allows(text, "/y", "foo")
    assert not allows(text, "/x/y", "Bar")


# Where Google's parser does something else: the RFC is kept


def test_an_allowed_index_page_does_not_allow_its_directory():
    text = "User-agent: *\nAllow: /d/index.html\nDisallow: /"
    assert allows(text, "/d/index.html") and not allows(text, "/d/")


def test_long_lines_are_read_to_their_end():
    long = "/x/" + "a" * 20_000
    assert allows(f"User-agent: *\nDisallow: {long}/qux", f"{long}/fux")
    assert not allows(f"User-agent: *\nDisallow: {long}/qux", f"{long}/qux")


def test_a_field_that_only_begins_like_one_is_unknown():
    assert allows("User-agent: *\nDisallow-not: /x", "/x")


@pytest.mark.parametrize("blank", [" ", "\t", "\x0b", "\xa0"])
@pytest.mark.parametrize(
    "line", ["Disallow{}x y", "Disallow:{}a{}b", "{}x", "User{}agent{}x y", "Site{}"]
)
def test_lines_of_blanks_are_read_in_linear_time(line, blank):
    # Tried in all divisions they would take hours.
    text = "User-agent: *\nDisallow: /x\n" + line.replace("{}", blank * 200_000)
    assert not allows(text, "/x")


def test_a_character_that_looks_like_a_line_end_hides_nothing():
    assert allows("User-agent: *\nDisallow: /x\u2028Disallow: /", "/page")


def test_a_line_without_end_is_cut_and_those_before_it_count():
    text = "User-agent: *\nDisallow: /x\nDisallow: /" + "a" * 1_000_000
    assert not allows(text, "/x") and allows(text, "/aaa")


def test_directives_of_others_are_no_rules():
    text = (
        "User-agent: *\nDisallow: /x\nNoindex: /a\nNofollow: /b\nHost: example.com\n"
        "Clean-param: ref /c\nRequest-rate: 1/9\nVisit-time: 0600-0845\nDisallow: /y"
    )
    assert [path for path in ("/x", "/a", "/b", "/c", "/y") if not allows(text, path)] == [
        "/x",
        "/y",
    ]


def test_a_page_instead_of_rules_allows_all():
    assert allows("<!DOCTYPE html><html><body>Not found</body></html>", "/page")


# Delay and sitemaps


def test_the_crawl_delay_is_that_of_ones_group():
    text = (
        "User-agent: *\nCrawl-delay: 2.5\n\nUser-agent: ExampleBot\nDisallow: /x\nCrawl-delay: 10"
    )
    assert rules(text).crawl_delay_s("ExampleBot/1.0") == 10.0


def test_a_crawl_delay_between_agents_is_that_of_those_above():
    text = "User-agent: a\nCrawl-delay: 7\nUser-agent: b\nDisallow: /x"
    assert rules(text).crawl_delay_s("a") == 7.0
    assert rules(text).crawl_delay_s("b") is None


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [
        ("0", 0.0),
        (".5", 0.5),
        ("2.", 2.0),
        ("10s", 10.0),
        ("10 Seconds", 10.0),
        ("5 # at night", 5.0),
        ("86400", 43_200.0),
        ("1000000000", 43_200.0),
        ("1e9", 43_200.0),
        ("9" * 400, 43_200.0),
    ],
)
def test_a_delay_is_in_seconds_and_twelve_hours_at_most(value, delay_s):
    assert rules(f"User-agent: *\nCrawl-delay: {value}").crawl_delay_s("x") == delay_s


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-1", "+1", "inf", "nan", "1,5", "1.2.3", "1_0", "10a", "10 m", "٣", "0x10", "1e"],
)
def test_a_delay_that_is_not_a_number_of_seconds_is_none(value):
    assert rules(f"User-agent: *\nCrawl-delay: {value}").crawl_delay_s("x") is None


def test_of_two_delays_in_a_group_the_first_that_is_one_counts():
    text = "User-agent: *\nCrawl-delay: soon\nCrawl-delay: 3\nCrawl-delay: 9"
    assert rules(text).crawl_delay_s("x") == 3.0


def test_sitemaps_are_named_by_the_whole_file():
    text = (
        "Sitemap: https://example.com/a.xml\nUser-agent: x\nDisallow: /\n"
        "sitemap: HTTPS://Example.com/b.xml\nSitemap: https://example.com/a.xml"
    )
    assert rules(text).sitemaps(ROBOTS) == (
        "https://example.com/a.xml",
        "https://example.com/b.xml",
    )


def test_a_sitemap_may_be_named_from_where_the_file_stands():
    text = "Sitemap: /c.xml\nSitemap: d.xml#x\nSitemap:\nSitemap: ftp://example.com/e\nSitemap: //"
    assert rules(text).sitemaps(ROBOTS) == (f"{HOST}/c.xml", f"{HOST}/d.xml")


# Sections 2.3 and 2.4: what a fetch means, and for how long


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.CLIENT_ERROR,
        FailureKind.GONE,
        FailureKind.BAD_REDIRECT,
        FailureKind.EMPTY,
        FailureKind.WRONG_TYPE,
    ],
)
def test_unavailable_rules_allow_all_for_a_day(kind):
    got = rules_from_fetch(Failed(ROBOTS, kind), NOW)
    assert got.allows(HOST + "/page", "x")
    assert got.expires_at == NOW + MAX_AGE_S


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.SERVER_ERROR,
        FailureKind.THROTTLED,
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TIMEOUT,
        FailureKind.RESET,
        FailureKind.TLS,
        FailureKind.OTHER,
    ],
)
def test_unreachable_rules_disallow_all_for_a_short_time(kind):
    got = rules_from_fetch(Failed(ROBOTS, kind), NOW)
    assert not got.allows(HOST + "/page", "x")
    assert got.expires_at == NOW + RETRY_S


@pytest.mark.parametrize(
    ("asked_s", "given_s"), [(3_600.0, 3_600.0), (1.0, 60.0), (1e9, MAX_AGE_S)]
)
def test_an_unreachable_host_says_when_to_ask_again(asked_s, given_s):
    failure = Failed(ROBOTS, FailureKind.SERVER_ERROR, 503, retry_after_s=asked_s)
    assert rules_from_fetch(failure, NOW).expires_at == NOW + given_s


@pytest.mark.parametrize(
    ("control", "age_s"),
    [
        ("", MAX_AGE_S),
        ("max-age=3600", 3_600.0),
        ("public, max-age=999999", MAX_AGE_S),
        ("max-age=0", MIN_AGE_S),
        ("no-store", MIN_AGE_S),
        ("s-maxage=5", MAX_AGE_S),
        ("max-age=soon", MAX_AGE_S),
        ("max-age=3600, no-store", MIN_AGE_S),
        ("no-cache=set-cookie, max-age=3600", MIN_AGE_S),
        ('MAX-AGE = "3600"', 3_600.0),
        ("x-max-age=3600", MAX_AGE_S),
        ("max-age=3600, max-age=7200", 3_600.0),
        ("private,must-revalidate;max-age=3600", 3_600.0),
    ],
)
def test_rules_last_as_cache_control_says_within_bounds(control, age_s):
    assert rules("", cache_control=control).expires_at == NOW + age_s


DATE = "Sun, 06 Nov 1994 08:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "age_s"),
    [
        ({"expires": "Sun, 06 Nov 1994 09:00:00 GMT", "date": DATE}, 3_600.0),
        ({"expires": "Sun, 06 Nov 1994 09:00:00 GMT", "date": DATE, "age": "600"}, 3_000.0),
        ({"expires": "Sun, 06 Nov 2094 09:00:00 GMT", "date": DATE}, MAX_AGE_S),
        ({"expires": DATE, "date": DATE}, MIN_AGE_S),
        ({"expires": "0"}, MIN_AGE_S),
        ({"expires": "Sun, 06 Nov 1994 09:00:00 GMT"}, MAX_AGE_S),
        ({"expires": "0", "cache_control": "max-age=7200"}, 7_200.0),
        ({"cache_control": "max-age=7200", "age": "1200"}, 6_000.0),
        ({"cache_control": "max-age=7200", "age": "7200"}, MIN_AGE_S),
        ({"cache_control": "max-age=7200", "age": "old"}, 7_200.0),
    ],
)
def test_rules_last_as_expires_and_age_say_where_max_age_does_not(headers, age_s):
    assert rules("", **headers).expires_at == NOW + age_s


# Product tokens and storage


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("FocusedBot/0.1 (+https://example.org/bot)", "FocusedBot"),
        ("Mozilla/5.0 (compatible; Foo-Bot/1.0; +http://x.y/)", "Foo-Bot"),
        ("Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/b.html)", "ExampleBot"),
        ("simple", "simple"),
        ("Mozilla/5.0 (KHTML, like Gecko; compatible; Foo/2.1; +http://x.y/) Safari/537", "Foo"),
        ("Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 Foo_Bot/0.1 (+http://x.y/bot/1)", "Foo_Bot"),
        ("Mozilla/5.0 (+http://x.y/bot/1)", "Mozilla"),
        ("MJ12bot/v1.4 (http://x.y)", "MJ12bot"),
        ("360Spider", "360Spider"),
        ("(+http://x.y)", ""),
        ("", ""),
    ],
)
def test_the_product_token_is_the_name_in_the_user_agent(user_agent, token):
    assert product_token(user_agent) == token


@pytest.mark.parametrize("access", list(RobotsAccess))
def test_stored_rules_are_the_same_rules(access):
    before = RobotsRules(access, NOW, "User-agent: *\nDisallow: /x\nCrawl-delay: 3")
    after = RobotsRules.from_state(json.loads(json.dumps(before.to_state())))
    assert after == before
    for path in ("/x", "/y"):
        assert after.allows(HOST + path, "b") is before.allows(HOST + path, "b")


def test_rules_that_an_older_version_stored_are_read():
    state = {"access": "rules", "text": "User-agent: *\nDisallow: /x", "expires_at": 1}
    assert not RobotsRules.from_state(state).allows(HOST + "/x", "b")


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"access": "rules", "text": 3, "expires_at": 1},
        {"access": "?", "text": "", "expires_at": 1},
        {"access": "rules", "text": "", "expires_at": 1, "unreachable_since": "yes"},
    ],
)
def test_damaged_rules_are_an_error_of_state(state):
    with pytest.raises(StateError, match="delete them"):
        RobotsRules.from_state(state)


lines = st.lists(
    st.tuples(
        st.sampled_from(["User-agent", "Disallow", "Allow", "Crawl-delay", "Sitemap", "x", ""]),
        st.sampled_from([":", " ", "", ": "]),
        st.one_of(st.text(max_size=12), st.sampled_from(["*", "/", "/*$", "%", "%zz", "$", "#"])),
    ).map("".join)
).map("\n".join)


@given(st.one_of(st.binary(max_size=200), lines.map(lambda s: s.encode("utf-8", "replace"))))
def test_no_file_makes_the_rules_raise(body):
    got = rules(body)
    for path in ("/", "/a?b=%zz", "/%e3%83"):
        got.allows(HOST + path, "ExampleBot")
    got.crawl_delay_s("ExampleBot")
    assert all(url.startswith("http") for url in got.sitemaps(ROBOTS))
