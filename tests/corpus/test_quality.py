"""Quality rules name the signs of a poor text."""

import pytest

from focused.corpus.page_records import RULES, failed_rules

GOOD = "\n".join(f"The whale number {n} swims far out in the sea." for n in range(20))


def test_a_good_text_fails_no_rule():
    assert failed_rules(GOOD, "en") == ()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("The whale swims.", "too-short"),
        ("whale sea fish " * 34_000, "too-long"),
        ("a b " * 50, "word-length"),
        ("1234 5678 whale " * 30, "few-letters"),
        ("#whale #sea fish " * 30, "symbols"),
        ("\n".join(f"- whale number {n} is far out" for n in range(20)), "bullets"),
        ("\n".join(f"The whale number {n} swims..." for n in range(20)), "ellipses"),
        ("The whale swims far out in the sea.\n" * 20, "repeated-lines"),
    ],
)
def test_each_rule_finds_its_sign(text, rule):
    assert rule in failed_rules(text, "en")
    assert rule in RULES


def test_rules_on_words_spare_languages_without_spaces():
    assert failed_rules("鲸鱼生活在海里。" * 20, "zh") == ()
