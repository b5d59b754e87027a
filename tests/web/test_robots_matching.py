"""The robots.txt matcher agrees with a simple one, whatever the size of the file."""

import random
import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from focused.web.robots.robots_file import PathMatcher, PathRule
from focused.web.robots.robots_rules import MAX_ROBOTS_BYTES
from tests.support.examples import examples

# An octet in the spelling that rules and paths are compared in, and as files and URLs spell it.
SPELLINGS = {
    "a": ("a", "%61"),
    "b": ("b",),
    "/": ("/",),
    "?": ("?",),
    "~": ("~", "%7E", "%7e"),
    "=": ("=", "%3D"),
    "%C3%A9": ("é", "%C3%A9", "%c3%a9"),
    "%E9": ("%E9", "%e9"),
    "%24": ("%24",),
    "%2A": ("%2A", "%2a"),
}
octets = st.sampled_from(
    [(octet, spelled) for octet, spellings in SPELLINGS.items() for spelled in spellings]
)
stars = st.just(("*", "*"))


def joined(pieces: list[tuple[str, str]]) -> tuple[str, str]:
    """A path or rule in the spelling that is compared, and as it is written."""
    return "/" + "".join(octet for octet, _ in pieces), "/" + "".join(text for _, text in pieces)


paths = st.lists(octets, max_size=8).map(joined)
rules = st.tuples(
    st.booleans(), st.lists(octets | stars, max_size=8).map(joined), st.sampled_from(["", "$"])
)


def decides(compared: list[tuple[bool, str]], path: str) -> bool:
    """Try each rule: of those that match, the longest decides, and of these one that allows."""

    def matches(rule: str) -> bool:
        pattern = re.escape(rule.removesuffix("$")).replace(r"\*", ".*")
        return re.match(pattern + r"\Z" * rule.endswith("$"), path) is not None

    return max(
        ((len(rule), allow) for allow, rule in compared if matches(rule)), default=(0, True)
    )[1]


@settings(max_examples=examples(800))
@given(st.lists(rules, max_size=12), st.lists(paths, min_size=1, max_size=4))
def test_a_group_decides_as_when_each_of_its_rules_is_tried(group, asked):
    compared = [(allow, rule + end) for allow, (rule, _), end in group]
    matcher = PathMatcher.of(
        [PathRule.of(text + end, allow=allow) for allow, (_, text), end in group]
    )
    for path, text in asked:
        assert matcher.allow(text) is decides(compared, path)


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(st.booleans(), st.from_regex(r"/[ab*]{0,12}\$?", fullmatch=True)), max_size=30
    ),
    st.from_regex(r"/[ab]{0,20}", fullmatch=True),
)
@example([(False, "/a**b"), (True, "/a*b")], "/ab")
@example([(False, "/"), (False, "/aa"), (True, "/*")], "/")
def test_many_rules_of_few_letters_decide_as_when_each_is_tried(group, path):
    matcher = PathMatcher.of([PathRule.of(rule, allow=allow) for allow, rule in group])
    assert matcher.allow(path) is decides(group, path)


def test_an_escaped_slash_of_a_rule_is_one_of_the_query():
    assert not PathMatcher.of([PathRule.of("/*a%2Fb", allow=False)]).allow("/x?a/b")


def words(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def full_file(shape: str) -> list[str]:
    """500 KiB of rules, random letters in the place of each ``?``."""
    rng = random.Random(7)
    lines, size = [], 0
    while size < MAX_ROBOTS_BYTES:
        lines.append("".join(words(rng, 1) if char == "?" else char for char in shape))
        size += len(f"Disallow: {lines[-1]}\n")
    return lines


@pytest.mark.parametrize(
    "shape", ["/*??????", "/*?????$", "/*???*???", "/wiki/*?????", "/*aaaaaaaa?????aaaaaaaa"]
)
def test_of_a_file_full_of_stars_one_rule_in_a_hundred_is_tried_at_most(shape):
    tried: list[PathRule] = []

    class CountedRule(PathRule, frozen=True, array_like=True):
        def matches(self, path: str) -> bool:
            tried.append(self)
            return super().matches(path)

    lines = full_file(shape)
    group = PathMatcher.of([CountedRule.of(line, allow=False) for line in lines])
    assert not group.allow(lines[0].replace("*", "").rstrip("$"))
    assert tried
    tried.clear()
    path = "/wiki/" + words(random.Random(8), 80) + "?q=" + words(random.Random(9), 20)
    group.allow(path)
    assert len(tried) * 100 <= len(lines)


def test_stars_in_a_row_are_one():
    assert len(PathRule.of("/a" + "*" * 100_000 + "b", allow=False).pieces) == 2
