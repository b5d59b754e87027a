"""Signals of spam in the words of a text: repetition, and frequent words. Words are hashes."""

from __future__ import annotations

from math import log, sqrt
from typing import Final

from mypy_extensions import i64

EARLY_WORDS: Final = 400
NEAR_WORDS: Final = 15
"""Words between two uses of a word that count as near."""
MAX_RARE_USES: Final = 6
PRESENT_WORDS: Final = 50


def repetition_signals(
    words: list[int],
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return how a text of 4 to 32,768 words repeats itself.

    The share of distinct words at its beginning; of words that are used once; of the most frequent
    word, and of five; of pairs of words, and of fours, that were there before; the similarity of
    both halves; how near words are repeated: the share within :data:`NEAR_WORDS`, and the mean
    logarithm of gaps relative to those of random order.
    """
    n = len(words)
    numbers: dict[int, int] = {}
    text: list[int] = []
    for word in words:
        if word not in numbers:
            numbers[word] = len(numbers)
        text.append(numbers[word])
    early = len(set(text[:EARLY_WORDS]))
    uses = [0] * len(numbers)
    in_first_half = [0] * len(numbers)
    for place, number in enumerate(text):
        uses[number] += 1
        if place < n // 2:
            in_first_half[number] += 1

    pairs: set[int] = set()
    fours: set[int] = set()
    last_four: i64 = 0  # numbers of words, 15 bits each
    for place, number in enumerate(text):
        new: i64 = number
        last_four = (last_four << 15 & 0xFFFFFFFFFFFFFFF) | new
        if place >= 1:
            pairs.add(last_four & 0x3FFFFFFF)
        if place >= 3:
            fours.add(last_four)

    last_use = [-1] * len(numbers)
    gaps = near = 0
    log_gaps = 0.0
    for place, number in enumerate(text):
        before = last_use[number]
        last_use[number] = place
        if before >= 0 and uses[number] <= MAX_RARE_USES:
            gap = place - before
            gaps += 1
            if gap <= NEAR_WORDS:
                near += 1
            log_gaps += log(gap * (uses[number] + 1) / n)

    top = sorted(uses, reverse=True)
    return (
        early / min(n, EARLY_WORDS),
        uses.count(1) / n,
        top[0] / n,
        sum(top[:5]) / n,
        1.0 - len(pairs) / (n - 1),
        1.0 - len(fours) / (n - 3),
        _similarity_of_halves(uses, in_first_half, max(3, n // 100)),
        near / gaps if gaps else 0.0,
        log_gaps / gaps if gaps else -0.5,
    )


def _similarity_of_halves(uses: list[int], in_first_half: list[int], most: int) -> float:
    """Return the cosine of the roots of the counts of words with at most ``most`` uses."""
    both = 0.0
    first = second = 0
    for number, count in enumerate(uses):
        if count <= most:
            first += in_first_half[number]
            second += count - in_first_half[number]
            both += sqrt(float(in_first_half[number] * (count - in_first_half[number])))
    return both / sqrt(float(first * second)) if first and second else 0.0


def popular_signals(
    words: list[int],
    places: dict[int, int],
    frequency_roots: list[float],
    pair_scores: list[float],
) -> tuple[float, float, float, float, float]:
    """Return how a text uses k frequent words of other texts; ``places`` numbers them.

    The share of frequent words, and of pairs of them; the mean score of pairs, by ``pair_scores``
    of shape (k + 1, k + 1), where k stands for all other words; the share of the first
    :data:`PRESENT_WORDS` that are there, and the distance of the roots of their frequencies.
    """
    n = len(words)
    other = len(frequency_roots)
    uses = [0] * (other + 1)
    known = known_pairs = 0
    score = 0.0
    before = -1
    for word in words:
        place = places.get(word, other)
        uses[place] += 1
        if place < other:
            known += 1
            if 0 <= before < other:
                known_pairs += 1
        if before >= 0:
            score += pair_scores[before * (other + 1) + place]
        before = place
    first = min(PRESENT_WORDS, other)
    present = 0
    shift = 0.0
    for place in range(first):
        if uses[place]:
            present += 1
        difference = sqrt(uses[place] / n) - frequency_roots[place]
        shift += difference * difference
    return (
        known / n,
        known_pairs / (n - 1),
        score / (n - 1),
        present / first if first else 0.0,
        sqrt(shift),
    )
