"""The line of a key, for messages."""

import pytest

from focused.topic.topic_file import line_of

TEXT = """name = "whales"
scope.max_depth = 3

[seeds]
urls = [
  "https://a.example/",
]
[ politeness ]  # be kind
delay_s = 2
"user_agent" = "me"
[[login]]
hosts = ["a.example"]
[[login]]
hosts = ["b.example"]
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("name", 1),
        ("scope.max_depth", 2),
        ("seeds", 4),
        ("seeds.urls", 5),
        ("politeness.delay_s", 9),
        ("politeness.user_agent", 10),
        ("politeness.delays.a.example", 8),
        ("login[1].hosts", 12),
        ("login[2].hosts", 14),
        ("login[2].url", 13),
    ],
)
def test_a_key_is_found_or_else_its_section(key, line):
    assert line_of(TEXT, key) == line


def test_a_key_of_a_section_that_is_not_there_is_nowhere():
    assert line_of(TEXT, "budget.pages") is None
