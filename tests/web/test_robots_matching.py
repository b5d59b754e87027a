"""The robots.txt matcher agrees with a simple one, whatever the size of the file."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from focused.web.page import Fetched
from focused.web.robots.robots_file import PathMatcher, PathRule
from focused.web.robots.robots_rules import MAX_ROBOTS_BYTES, RobotsRules, rules_from_fetch
from tests.support.examples import examples

HOST = "http://a.test"


def read(text: str) -> RobotsRules:
    return rules_from_fetch(Fetched(f"{HOST}/robots.txt", 200, {}, text.encode()), 0.0)


# robots.txt read and matched the slow, plain way, from RFC 9309 alone: every rule is tried on every
# path, octet by octet. It reads well-formed lines only.

ESCAPED = 256  # added to an octet that is not the delimiter it looks like
SAME_ESCAPED_OR_NOT = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!&'()+,:;=@[]/?"
)
HEX = "0123456789ABCDEFabcdef"


def plainly_allowed(text: str, name: str, path: str) -> bool:
    """Whether the robot ``name`` may ask for a path with its query: the longest rule decides."""
    if path == "/robots.txt":
        return True
    rules = [
        (length_of(rule), allow)
        for allow, rule in rules_for(text, name)
        if any(expression_of(rule).match(reading) for reading in readings(path))
    ]
    return max(rules, default=(0, True))[1]


def rules_for(text: str, name: str) -> Sequence[tuple[bool, str]]:
    """The rules of all groups that name the robot, else of all that name ``*``."""
    by_agent: dict[str, list[tuple[bool, str]]] = {}
    named: list[str] = []
    in_rules = False
    for line in text.split("\n"):
        field, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if field.lower() == "user-agent":
            named = [] if in_rules else named
            in_rules = False
            named.append(value.lower())
            by_agent.setdefault(value.lower(), [])
        elif field.lower() in ("allow", "disallow"):
            in_rules = True
            for each in named if value else ():
                by_agent[each].append((field.lower() == "allow", value))
    return by_agent.get(name.lower(), by_agent.get("*", []))


def expression_of(rule: str) -> re.Pattern[str]:
    """A rule as a regular expression over octets."""
    octets = "".join(
        ".*" if (char, escaped) == ("*", False) else re.escape(chr(octet))
        for char, octet, escaped in spelled(rule.removesuffix("$"))
    )
    return re.compile(octets + r"\Z" * rule.endswith("$"), re.DOTALL)


def length_of(rule: str) -> int:
    """The length of a rule, in which what has to be escaped counts three."""
    return rule.endswith("$") + sum(
        1 if (char, escaped) == ("*", False) or octet in SAME_ESCAPED_OR_NOT else 3
        for char, octet, escaped in spelled(rule.removesuffix("$"))
    )


def readings(path: str) -> Iterator[str]:
    """The octets of a path: a slash in its query is one escaped or not, but one way throughout."""
    path = path.partition("#")[0]
    if not path.partition("?")[0]:
        path = f"/{path}"
    octets = "".join(chr(octet) for _, octet, _ in spelled(path))
    yield octets
    start, mark, query = octets.partition("?")
    escaped = {ord(char): ord(char) + ESCAPED for char in "/?"}
    yield start + mark + query.translate(escaped)


def spelled(text: str) -> Iterator[tuple[str, int, bool]]:
    """Each octet with the character it begins with, and whether it was escaped."""
    in_query = False
    for found in re.finditer(f"%([{HEX}]{{2}})|(.)", text, re.DOTALL):
        if found[1]:
            octet = int(found[1], 16)
            yield "%", octet + (ESCAPED if octet in b"/?" and not in_query else 0), True
            continue
        in_query = in_query or found[2] == "?"
        for octet in found[2].encode():
            yield found[2], octet, False


# fmt: off
pieces = st.lists(
    st.sampled_from(
        [*"/ab*$?=;%é~", "ab", "%2F", "%3f", "%61", "%2A", "%24", "%4", "%C3%A9", "%E9", "%7e",
         "index.html", "robots.txt"],
    ),
    max_size=8,
).map("".join)
# fmt: on
names = st.sampled_from(["*", "WhaleBot", "whalebot", "WhaleBot-Images", "Whale", "Bot2", "Bot"])
lines = st.one_of(
    st.tuples(st.sampled_from(["User-agent"]), names),
    st.tuples(
        st.sampled_from(["Allow", "Disallow", "disallow"]),
        st.one_of(st.just(""), pieces.map("/".__add__), pieces.map("*".__add__)),
    ),
    st.tuples(st.sampled_from(["Crawl-delay", "Sitemap", "Noindex", "Host"]), st.just("1")),
).map(": ".join)
files = st.lists(lines, max_size=12).map("\n".join)
paths = pieces.map(lambda rest: f"/{rest}")


@settings(max_examples=examples(500))
@given(files, names.filter("*".__ne__), st.lists(paths, min_size=1, max_size=4))
@example("User-agent: *\nDisallow: /*a%2Fb", "WhaleBot", ["/x?a/b"])
@example("User-agent: *\nDisallow: /\nDisallow: /aa\nAllow: /*", "WhaleBot", ["/"])
@example("User-agent: *\nDisallow: /a**b\nAllow: /a*b", "WhaleBot", ["/ab"])
def test_a_file_decides_as_it_does_read_plainly(text: str, name: str, asked: list[str]) -> None:
    known = read(text)
    for path in asked:
        assert known.allows(HOST + path, name) is plainly_allowed(text, name, path)


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(st.booleans(), st.from_regex(r"/[ab*]{0,12}\$?", fullmatch=True)), max_size=30
    ),
    st.from_regex(r"/[ab]{0,20}", fullmatch=True),
)
def test_many_rules_of_few_letters_decide_as_when_each_is_tried(
    given_rules: list[tuple[bool, str]], path: str
) -> None:
    text = "\n".join(f"{'Allow' if allow else 'Disallow'}: {rule}" for allow, rule in given_rules)
    text = f"User-agent: *\n{text}"
    assert read(text).allows(HOST + path, "x") is plainly_allowed(text, "x", path)


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
def test_of_a_file_full_of_stars_one_rule_in_a_hundred_is_tried_at_most(
    shape: str,
) -> None:
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


def test_stars_in_a_row_are_one() -> None:
    assert len(PathRule.of("/a" + "*" * 100_000 + "b", allow=False).pieces) == 2
