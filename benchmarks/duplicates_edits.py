"""Copies of a page with known differences, as on the Web; pure functions of words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

Edit = Callable[[Sequence[str], Sequence[str], random.Random], list[str]]
"""Maps a page's words, and those of a page of another site, to the copy's words."""

_NUMBER = re.compile(r"\d+")
_MENU_WORDS, _TEMPLATE_WORDS = 60, 300


def date_and_version(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Increment version numbers, and append the date of the visit."""
    moved = [
        _NUMBER.sub(lambda found: str(int(found[0][:9]) + 1), word)
        if "." in word.strip(".") and _NUMBER.search(word)
        else word
        for word in words
    ]
    return [*moved, "Last", "updated", str(rng.randint(1, 28)), "May", str(rng.randint(2001, 2030))]


def menus(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Put sixty words of another site's page in front and thirty at the end."""
    return [*other[:_MENU_WORDS], *words, *other[-_MENU_WORDS // 2 :]]


def template(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Put three hundred words in front, and drop the page's first and last thirty."""
    return [*other[:_TEMPLATE_WORDS], *words[30:-30]]


def added(share: float) -> Edit:
    """Insert a passage, its length relative to the page's."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        length = max(1, round(share * len(words)))
        passage = [other[i % len(other)] for i in range(length)]
        place = rng.randint(0, len(words))
        return [*words[:place], *passage, *words[place:]]

    return edit


def removed(share: float) -> Edit:
    """Remove a passage, its length relative to the page's."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        length = max(1, round(share * len(words)))
        place = rng.randint(0, len(words) - length)
        return [*words[:place], *words[place + length :]]

    return edit


def replaced(share: float) -> Edit:
    """Replace single words all over the page."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        found = list(words)
        for place in rng.sample(range(len(words)), max(1, round(share * len(words)))):
            found[place] = f"{rng.choice(other)}x"
        return found

    return edit


def shuffled(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Shuffle the sentences."""
    sentences: list[list[str]] = [[]]
    for word in words:
        sentences[-1].append(word)
        if word.endswith((".", "!", "?")):
            sentences.append([])
    rng.shuffle(sentences)
    return [word for sentence in sentences for word in sentence]


EDITS: Mapping[str, Edit] = {
    "date and version": date_and_version,
    "menus": menus,
    "template": template,
    **{f"passage added, {share:.0%}": added(share) for share in (0.01, 0.05, 0.1, 0.2, 0.3)},
    **{f"passage removed, {share:.0%}": removed(share) for share in (0.01, 0.05, 0.1, 0.2, 0.3)},
    **{f"single words, {share:.0%}": replaced(share) for share in (0.01, 0.05)},
    "sentences shuffled": shuffled,
}
"""The kinds of edit by the names in the tables."""
