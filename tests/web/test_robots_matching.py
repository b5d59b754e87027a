"""The robots.txt matcher agrees with a simple one, whatever the size of the file."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from focused.web.page import Fetched
from focused.web.robots.robots_file import PathMatcher, PathRule
from focused.web.robots.robots_rules import MAX_ROBOTS_BYTES, RobotsRules, rules_from_fetch
from tests.support import plain_robots
from tests.support.examples import examples

HOST = "http://a.test"


def read(text: str) -> RobotsRules:
    return rules_from_fetch(Fetched(f"{HOST}/robots.txt", 200, {}, text.encode()), 0.0)


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
        assert known.allows(HOST + path, name) is plain_robots.allowed(text, name, path)


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
    assert read(text).allows(HOST + path, "x") is plain_robots.allowed(text, "x", path)


def words(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def full_file(shape: str) -> list[PathRule]:
    """500 KiB of rules, random letters in the place of each ``?``."""
    rng = random.Random(7)
    lines, size = [], 0
    while size < MAX_ROBOTS_BYTES:
        lines.append("".join(words(rng, 1) if char == "?" else char for char in shape))
        size += len(f"Disallow: {lines[-1]}\n")
    return [PathRule.of(line, allow=False) for line in lines]


@pytest.mark.parametrize(
    "shape", ["/*??????", "/*?????$", "/*???*???", "/wiki/*?????", "/*aaaaaaaa?????aaaaaaaa"]
)
def test_of_a_file_full_of_stars_one_rule_in_a_hundred_is_tried_at_most(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = full_file(shape)
    group = PathMatcher.of(rules)
    tried: list[PathRule] = []
    matches = PathRule.matches
    monkeypatch.setattr(
        PathRule, "matches", lambda rule, path: tried.append(rule) or matches(rule, path)
    )
    path = "/wiki/" + words(random.Random(8), 80) + "?q=" + words(random.Random(9), 20)
    group.allow(path)
    assert len(tried) * 100 <= len(rules)


def test_stars_in_a_row_are_one() -> None:
    assert len(PathRule.of("/a" + "*" * 100_000 + "b", allow=False).pieces) == 2
