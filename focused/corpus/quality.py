"""Quality rules for texts: which signs of a poor text a document shows.

The rules are those of Rae and others 2021 ("Scaling language models: methods, analysis & insights
from training Gopher", table A1), without the one on English stop words and those on repeated
n-grams.
"""

from __future__ import annotations

import re
from collections import Counter

MIN_WORDS, MAX_WORDS = 50, 100_000

RULES = (
    "too-short",
    "too-long",
    "word-length",
    "few-letters",
    "symbols",
    "bullets",
    "ellipses",
    "repeated-lines",
)
"""The names of the rules."""

_UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})
"""Languages that write no spaces between words."""
_SYMBOL = re.compile(r"#|\.\.\.|…")
_BULLET = re.compile(r"\s*[-*•‣▪]\s")


def count_words(text: str) -> int:
    """Return the number of words between white space."""
    return len(text.split())


def failed_rules(text: str, language: str = "") -> tuple[str, ...]:
    """Return the names of the rules that a text fails, in the order of :data:`RULES`.

    Rules on words are left out for languages that write no spaces between them.
    """
    failed = set()
    words = text.split()
    if language not in _UNSPACED:
        n_words = max(len(words), 1)
        failed |= {"too-short"} if len(words) < MIN_WORDS else set()
        failed |= {"too-long"} if len(words) > MAX_WORDS else set()
        if not 3 <= sum(map(len, words)) / n_words <= 10:
            failed.add("word-length")
        if sum(any(map(str.isalpha, word)) for word in words) < 0.8 * n_words:
            failed.add("few-letters")
        if len(_SYMBOL.findall(text)) > 0.1 * n_words:
            failed.add("symbols")
    lines = [line for line in text.split("\n") if line.strip()]
    n_lines = max(len(lines), 1)
    if sum(_BULLET.match(line) is not None for line in lines) > 0.9 * n_lines:
        failed.add("bullets")
    if sum(line.rstrip().endswith(("...", "…")) for line in lines) > 0.3 * n_lines:
        failed.add("ellipses")
    if sum(count - 1 for count in Counter(lines).values()) > 0.3 * n_lines:
        failed.add("repeated-lines")
    return tuple(rule for rule in RULES if rule in failed)
