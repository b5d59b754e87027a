"""RFC 9309 clause by clause; each test names its section. Practice: test_robots.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from focused.web.page import Failed, FailureKind, Fetched, Redirected
from focused.web.robots.robots_rules import (
    MAX_AGE_S,
    MAX_ROBOTS_BYTES,
    UNREACHABLE_LONG_S,
    RobotsAccess,
    RobotsRules,
    rules_from_fetch,
    rules_while_unreachable,
)
from focused.web.urls import robots_url

HOST = "https://example.com"
NOW = 1_000_000.0


def allows(text: str | bytes, path: str, agent: str = "ExampleBot") -> bool:
    body = text.encode() if isinstance(text, str) else text
    fetched = Fetched(f"{HOST}/robots.txt", 200, {}, body)
    return rules_from_fetch(fetched, NOW).allows(HOST + path, agent)


def denies(rules: str, path: str) -> bool:
    return not allows(f"User-agent: *\n{rules}", path)


class TestSection21Groups:
    def test_a_group_ends_with_the_next_user_agent_line(self):
        text = "User-agent: a\nDisallow: /a\nUser-agent: b\nDisallow: /b"
        assert allows(text, "/b", "a") and not allows(text, "/b", "b")

    def test_the_last_group_may_have_no_rules_and_allows_everything(self):
        text = "User-agent: *\nDisallow: /\nUser-agent: last"
        assert allows(text, "/x", "last") and not allows(text, "/x", "other")

    def test_several_user_agent_lines_share_the_rules_below(self):
        text = "User-agent: a\nUser-agent: b\n\nUser-agent: c\nDisallow: /x"
        assert [allows(text, "/x", name) for name in "abcd"] == [False, False, False, True]


class TestSection22Syntax:
    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_lines_end_by_lf_cr_or_both(self, end):
        assert not allows(end.join(["User-agent: *", "", "Disallow: /x", ""]), "/x")

    def test_line_ends_may_be_mixed_and_the_last_may_be_missing(self):
        assert not allows("User-agent: *\r\nAllow: /y\rDisallow: /z\n\n\r\nDisallow: /x", "/x")

    @pytest.mark.parametrize(
        "line",
        ["Disallow:/x", "Disallow: /x", "\t Disallow\t:\t/x \t", "Disallow :/x", "dISALLOW: /x"],
    )
    def test_blanks_and_tabs_around_field_and_value_mean_nothing(self, line):
        assert denies(line, "/x")

    @pytest.mark.parametrize("line", ["USER-AGENT: *", "user-agent:*", "uSeR-aGeNt\t: *  # all"])
    def test_fields_have_no_case(self, line):
        assert not allows(f"{line}\nDISALLOW: /x", "/x")

    def test_a_comment_may_follow_a_line_or_fill_one(self):
        assert denies("# Allow: /x\nDisallow: /x# of ours\n#", "/x")
        assert not denies("# Disallow: /x", "/x")

    @pytest.mark.parametrize("rule", ["Disallow:", "Disallow: ", "Disallow: \t# nothing"])
    def test_an_empty_pattern_is_no_rule(self, rule):
        assert not denies(rule, "/x")
        assert denies(f"Disallow: /\n{rule.replace('Disallow', 'Allow')}", "/x")

    def test_a_path_pattern_begins_with_a_slash(self):
        assert not denies("Disallow: x\nDisallow: https://example.com/x\nDisallow: $", "/x")


class TestSection221UserAgents:
    @pytest.mark.parametrize("name", ["ExampleBot", "examplebot", "EXAMPLEBOT"])
    def test_the_product_token_must_be_matched_without_case(self, name):
        assert not allows(f"User-agent: {name}\nDisallow: /x", "/x", "exampleBot/1.0")

    @pytest.mark.parametrize(
        "name", ["Example", "ExampleBotNews", "Bot", "Example-Bot", "ExampleBot_"]
    )
    def test_another_token_is_another_robot(self, name):
        assert allows(f"User-agent: {name}\nDisallow: /", "/x")

    def test_groups_of_one_token_must_be_combined(self):
        text = (
            "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\n"
            "user-agent: Other\ndisallow: /\n\nuser-agent: EXAMPLEbot\ndisallow: /baz"
        )
        denied = [path for path in ("/foo", "/bar", "/baz", "/x") if not allows(text, path)]
        assert denied == ["/foo", "/bar", "/baz"]

    def test_the_longest_match_counts_across_combined_groups(self):
        text = "user-agent: a\nallow: /foo/bar\n\nuser-agent: a\ndisallow: /foo"
        assert allows(text, "/foo/bar", "a") and not allows(text, "/foo/x", "a")

    def test_the_group_of_all_must_be_obeyed_when_no_other_matches(self):
        text = "user-agent: *\ndisallow: /foo\n\nuser-agent: BazBot\ndisallow: /baz"
        assert not allows(text, "/foo") and allows(text, "/baz")

    def test_the_group_of_all_says_nothing_to_one_that_has_its_own(self):
        text = "user-agent: ExampleBot\ndisallow: /baz\n\nuser-agent: *\ndisallow: /foo"
        assert allows(text, "/foo")

    def test_groups_of_all_are_combined_too(self):
        of_all = "user-agent: *\ndisallow: /foo\n", "user-agent: *\ndisallow: /bar\n"
        text = "user-agent: b\ndisallow: /\n".join(of_all)
        assert not allows(text, "/foo") and not allows(text, "/bar")

    @pytest.mark.parametrize(
        "text", ["", "\n", "User-agent: b\nDisallow: /", "Disallow: /\nAllow: /y"]
    )
    def test_without_a_group_for_us_or_for_all_no_rules_apply(self, text):
        assert allows(text, "/x")

    @pytest.mark.parametrize("name", ["", "008", "ツ", "*foo"])
    def test_a_line_that_names_no_token_still_ends_the_group_above(self, name):
        text = f"User-agent: *\nDisallow: /a\nUser-agent: {name}\nDisallow: /x"
        assert allows(text, "/x") and not allows(text, "/a")


class TestSection222AllowAndDisallow:
    def test_the_match_must_start_with_the_first_octet_of_the_path(self):
        assert denies("Disallow: /x", "/xy") and not denies("Disallow: /x", "/y/x")

    def test_the_match_is_case_sensitive(self):
        assert denies("Disallow: /X", "/X") and not denies("Disallow: /X", "/x")

    @pytest.mark.parametrize("order", [1, -1])
    def test_the_match_with_the_most_octets_must_be_used_wherever_it_stands(self, order):
        rules = "\n".join(["Disallow: /a/", "Allow: /a/b/", "Disallow: /a/b/c"][::order])
        assert [denies(rules, path) for path in ("/a/x", "/a/b/x", "/a/b/c")] == [True, False, True]

    def test_a_longer_pattern_with_a_star_beats_a_plain_prefix(self):
        assert denies("Allow: /page\nDisallow: /*.html", "/page.html")
        assert not denies("Allow: /x/page.\nDisallow: /*.html", "/x/page.html")

    def test_octets_are_counted_in_the_spelling_that_is_compared(self):
        assert not denies("Disallow: /%62%61%7A\nAllow: /bazq", "/bazqux")
        assert denies("Allow: /longer\nDisallow: /%E3%83%84", "/ツ".encode().decode() + "x")

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize(
        ("one", "other"), [("/x", "/x"), ("/%78", "/x"), ("/*x", "/*x"), ("/", "*")]
    )
    def test_of_equivalent_rules_allow_should_be_used(self, one, other, order):
        assert not denies("\n".join([f"Disallow: {one}", f"Allow: {other}"][::order]), "/x")

    def test_a_uri_that_no_rule_matches_is_allowed(self):
        assert not denies("Disallow: /x\nDisallow: /y", "/z")

    def test_the_robots_txt_uri_is_implicitly_allowed_and_no_other(self):
        assert not denies("Disallow: /", "/robots.txt")
        for path in ("/robots.txt.bak", "/x/robots.txt", "/robots.txt?x", "/Robots.txt"):
            assert denies("Disallow: /", path)

    def test_query_strings_are_part_of_what_is_matched(self):
        assert denies("Disallow: /x?a=1", "/x?a=1&b=2") and not denies("Disallow: /x?a=1", "/x?b=2")
        assert denies("Disallow: /*?", "/x?b") and not denies("Disallow: /*?", "/x")

    @pytest.mark.parametrize(
        ("rule", "path"),
        [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
            ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
            ("/foo/bar?baz=https%3a%2F%2ffoo.bar", "/foo/bar?baz=https://foo.bar"),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
            ("/foo/bar/baz", "/foo/bar/%62%61%7a"),
        ],
    )
    def test_octets_are_compared_encoded_as_in_the_table_of_the_rfc(self, rule, path):
        assert denies(f"Disallow: {rule}", path)

    @pytest.mark.parametrize("char", list("-._~aZ0"))
    def test_unreserved_octets_must_be_unencoded(self, char):
        assert denies(f"Disallow: /a%{ord(char):02x}b", f"/a{char}b")
        assert denies(f"Disallow: /a{char}b", f"/a%{ord(char):02X}b")

    @pytest.mark.parametrize("char", list("!&'()+,:;=@[]"))
    def test_reserved_octets_must_be_encoded_on_both_sides(self, char):
        assert denies(f"Disallow: /a%{ord(char):02x}b", f"/a{char}b")
        assert denies(f"Disallow: /a{char}b", f"/a%{ord(char):02X}b")

    @pytest.mark.parametrize("char", list("/?"))
    def test_an_escaped_delimiter_is_no_delimiter_of_the_path(self, char):
        assert not denies(f"Disallow: /a%{ord(char):02X}b", f"/a{char}b")
        assert not denies(f"Disallow: /a{char}b", f"/a%{ord(char):02X}b")
        assert denies(f"Disallow: /a%{ord(char):02x}b", f"/a%{ord(char):02X}b")

    @pytest.mark.parametrize("rule", ["/*a/b", "/*a%2Fb", "/x?*a/b", "/x?y=a%2fb"])
    @pytest.mark.parametrize("path", ["/x?y=a/b", "/x?y=a%2Fb"])
    def test_in_the_query_a_slash_is_the_same_escaped_or_not(self, rule, path):
        assert denies(f"Disallow: {rule}", path)

    def test_octets_that_are_no_utf_8_are_compared_as_octets(self):
        assert denies("Disallow: /caf%E9", "/caf%E9") and not denies("Disallow: /caf%E9", "/caf%E8")

    def test_what_is_escaped_twice_is_not_unescaped_twice(self):
        assert not denies("Disallow: /%2541", "/A") and denies("Disallow: /%2541", "/%2541")

    def test_a_percent_sign_that_escapes_nothing_is_a_percent_sign(self):
        assert denies("Disallow: /100%zz", "/100%zz") and denies("Disallow: /100%zz", "/100%25zz")

    def test_rules_before_any_user_agent_line_should_be_ignored(self):
        text = "Disallow: /x\nAllow: /y/z\nUser-agent: *\nDisallow: /y"
        assert allows(text, "/x") and not allows(text, "/y/z")

    def test_encoding_mismatches_are_bridged_octet_by_octet(self):
        text = b"# caf\xe9 \xff\nUser-agent: *\nDisallow: /caf\xe9\nDisallow: /\xe3\x83\x84"
        assert not allows(text, "/caf%E9") and not allows(text, "/%E3%83%84")
        assert not allows("User-agent: *\nDisallow: /x".encode("utf-16"), "/x")


class TestSection223SpecialCharacters:
    @pytest.mark.parametrize(
        ("rule", "denied", "others"),
        [
            ("/a$", ["/a"], ["/a/", "/ab", "/a?x", "/a$"]),
            ("/a$b", ["/a$b", "/a%24bc"], ["/a", "/ab"]),
            ("/a$$", ["/a$"], ["/a", "/a$$"]),
            ("/this/*/exactly", ["/this/a/exactly", "/this/a/b/exactly2"], ["/this/exactly"]),
            ("/a*", ["/a", "/ab"], ["/ba"]),
            ("/a**b", ["/ab", "/axb"], ["/a"]),
            ("*", ["/", "/x"], []),
            ("*.gif$", ["/a.gif", "/b/.gif"], ["/a.gif?x", "/a.gifs"]),
            ("/*/b/*/d$", ["/a/b/c/d", "/a/b/b/b/d"], ["/a/b/d", "/a/b/c/d/"]),
            ("/*a*a$", ["/aa", "/baba"], ["/a", "/aab"]),
            ("/a*$", ["/a", "/abc"], ["/b"]),
            ("/*?*x=1", ["/y?z&x=1"], ["/x=1"]),
        ],
    )
    def test_star_is_any_octets_and_a_last_dollar_is_the_end(self, rule, denied, others):
        assert [path for path in [*denied, *others] if denies(f"Disallow: {rule}", path)] == denied

    @pytest.mark.parametrize(
        ("rule", "path", "other"),
        [
            ("/file-with-a-%2A.html", "/file-with-a-*.html", "/file-with-a-b.html"),
            ("/file-with-a-%2a.html", "/file-with-a-%2A.html", "/file-with-a-.html"),
            ("/foo-%24", "/foo-$", "/foo-"),
            ("/foo%23", "/foo%23x", "/foo"),
        ],
    )
    def test_special_characters_are_matched_verbatim_when_encoded(self, rule, path, other):
        assert denies(f"Disallow: {rule}", path) and not denies(f"Disallow: {rule}", other)

    def test_many_stars_cost_no_more_than_the_length_of_the_path(self):
        assert not denies("Disallow: /" + "*a" * 20_000 + "b", "/" + "a" * 1_900)


class TestSection224OtherRecords:
    @pytest.mark.parametrize(
        "record", ["Sitemap: https://example.com/s", "Crawl-delay: 1", "Host: x", "?", "# x", ""]
    )
    def test_other_records_must_not_interfere(self, record):
        between_agents = f"User-agent: a\n{record}\nUser-agent: b\n{record}\nDisallow: /x"
        between_rules = f"User-agent: *\nDisallow: /y\n{record}\nDisallow: /x"
        assert not allows(between_agents, "/x", "a") and not allows(between_agents, "/x", "b")
        assert not allows(between_rules, "/x")


class TestSection23Access:
    def test_rules_are_those_of_a_scheme_a_host_and_a_port(self):
        pages = ["http://a.b/x/y?z", "https://a.b/", "http://a.b:8080/x", "http://c.a.b/"]
        assert [robots_url(page) for page in pages] == [
            "http://a.b/robots.txt",
            "https://a.b/robots.txt",
            "http://a.b:8080/robots.txt",
            "http://c.a.b/robots.txt",
        ]


class TestSection231AccessResults:
    @pytest.mark.parametrize("status", [200, 204])
    def test_2_3_1_1_what_was_downloaded_must_be_followed_whatever_its_type(self, status):
        named, body = {"content-type": "text/html"}, b"user-agent:*\ndisallow:/"
        fetched = Fetched(f"{HOST}/robots.txt", status, named, body)
        assert not rules_from_fetch(fetched, NOW).allows(f"{HOST}/x", "x")

    def test_2_3_1_2_more_redirects_than_are_followed_mean_unavailable(self):
        last = Redirected(f"{HOST}/r5", 302, f"{HOST}/r6")
        assert rules_from_fetch(last, NOW).access is RobotsAccess.ALLOW_ALL

    @pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410, 451, 499])
    def test_2_3_1_3_unavailable_may_access_any_resource(self, status):
        fetched = Fetched(f"{HOST}/robots.txt", status, {}, b"user-agent: *\ndisallow: /")
        assert rules_from_fetch(fetched, NOW).allows(f"{HOST}/x", "x")

    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
    def test_2_3_1_4_unreachable_must_be_complete_disallow_and_429_says_no_more(self, status):
        fetched = Fetched(f"{HOST}/robots.txt", status, {}, b"user-agent: *\nallow: /")
        assert not rules_from_fetch(fetched, NOW).allows(f"{HOST}/x", "x")

    def test_2_3_1_4_without_a_copy_all_is_disallowed_until_30_days_are_over(self):
        first = rules_while_unreachable(None, NOW)
        last = rules_while_unreachable(first, NOW + UNREACHABLE_LONG_S - 1)
        after = rules_while_unreachable(last, NOW + UNREACHABLE_LONG_S)
        assert [rules.access for rules in (first, last, after)] == [
            RobotsAccess.DISALLOW_ALL,
            RobotsAccess.DISALLOW_ALL,
            RobotsAccess.ALLOW_ALL,
        ]
        assert after.unreachable_since == NOW

    def test_2_3_1_4_a_copy_is_used_before_and_after_30_days(self):
        copy = RobotsRules(RobotsAccess.RULES, NOW, "User-agent: *\nDisallow: /x")
        soon = rules_while_unreachable(copy, NOW + 1)
        late = rules_while_unreachable(soon, NOW + 2 * UNREACHABLE_LONG_S)
        for rules in (soon, late):
            assert rules.allows(f"{HOST}/y", "b") and not rules.allows(f"{HOST}/x", "b")
        assert NOW + 1 < soon.expires_at < NOW + MAX_AGE_S
        assert late.unreachable_since == NOW + 1

    def test_2_3_1_4_an_answer_ends_the_silence(self):
        failed = rules_while_unreachable(None, NOW)
        assert failed.unreachable_since == NOW
        assert rules_from_fetch(Failed(HOST, FailureKind.GONE), NOW).unreachable_since is None

    def test_2_3_1_5_each_line_must_be_tried_and_what_is_parseable_used(self):
        junk = "<html>\n\x00\x01\x02: y\nDisallow\n:\n: : :\nUser-agent\nfoo: bar\n" + "z" * 30_000
        assert not allows(f"{junk}\nUser-agent: *\n{junk}\nDisallow: /x\n{junk}", "/x")

    def test_2_3_1_5_a_nul_byte_spoils_its_own_line_only(self):
        text = b"User-agent: *\nDis\x00allow: /a\nDisallow: /b\x00c\nDisallow: /d"
        assert allows(text, "/a") and allows(text, "/b") and not allows(text, "/d")


class TestSection24Caching:
    def test_a_copy_should_not_be_used_for_more_than_24_hours(self):
        fetched = Fetched(f"{HOST}/robots.txt", 200, {"cache-control": "max-age=31536000"}, b"")
        assert rules_from_fetch(fetched, NOW).expires_at == NOW + 86_400

    def test_since_when_it_is_unreachable_outlives_a_restart(self):
        silent = rules_while_unreachable(None, NOW)
        assert RobotsRules.from_state(silent.to_state()) == silent


class TestSection25Limits:
    def test_500_kibibytes_must_be_read(self):
        head = "User-agent: *\n"
        last = "\nDisallow: /x\n"
        filler = "#" * (500 * 1024 - len(head) - len(last))
        assert not allows(head + filler + last, "/x")

    @pytest.mark.parametrize("end", ["\n", "\r"])
    def test_a_rule_that_the_limit_cuts_in_two_is_no_rule(self, end):
        head = f"User-agent: *{end}Disallow: /early{end}"
        filler = "#" * (MAX_ROBOTS_BYTES - len(head) - len(f"{end}Disallow: /"))
        text = f"{head}{filler}{end}Disallow: /late{end}"
        assert not allows(text, "/early")
        assert allows(text, "/anything") and allows(text, "/late")


plain_patterns = st.text("ab/*", min_size=0, max_size=8).map(lambda rest: f"/{rest}")


@given(
    st.lists(st.tuples(st.booleans(), plain_patterns), max_size=6),
    st.from_regex(r"/[ab][ab/]{0,8}", fullmatch=True),
)
def test_where_no_escape_is_concerned_protego_decides_the_same(rules, path):
    lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules]
    text = "\n".join(["User-agent: *", *lines])
    assert allows(text, path) is Protego.parse(text).can_fetch(HOST + path, "*")
