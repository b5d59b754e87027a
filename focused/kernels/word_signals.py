"""Signals of spam in the words of a text: repetition, and frequent words.

Words are hashes, places of words those in a list of frequent words, in 32 bits each.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

from librt.strings import read_f64_le, read_i32_le
from librt.vecs import vec
from mypy_extensions import i64

EARLY_WORDS: Final = 400
NEAR_WORDS: Final = 15
"""Words between two uses of a word that count as near."""
MAX_RARE_USES: Final = 6
PRESENT_WORDS: Final = 50
TOP_WORDS: Final = 5
MIX_FACTOR: Final = 0x9E3779B1


def repetition_signals(
    words: bytes,
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return how a text of 4 to 32,768 words repeats itself.

    The share of distinct words at its beginning; of words that are used once; of the most frequent
    word, and of five; of pairs of words, and of fours, that were there before; the similarity of
    both halves; how near words are repeated: the share within :data:`NEAR_WORDS`, and the mean
    logarithm of gaps relative to those of random order.
    """
    n: i64 = len(words) // 4
    hashes = vec[i64]([0] * n)
    place: i64 = 0
    while place < n:
        hashes[place] = i64(read_i32_le(words, 4 * place)) & 0xFFFFFFFF
        place += 1
    text = number_distinct(hashes)
    early = max_of(text, min(n, EARLY_WORDS)) + 1
    distinct = max_of(text, n) + 1

    uses = vec[i64]([0] * distinct)
    in_first_half = vec[i64]([0] * distinct)
    last_use = vec[i64]([-1] * distinct)
    pairs = vec[i64]([0] * (n - 1))
    fours = vec[i64]([0] * (n - 3))
    last_four: i64 = 0  # numbers of words, 15 bits each
    place = 0
    while place < n:
        number: i64 = text[place]
        uses[number] += 1
        if place < n // 2:
            in_first_half[number] += 1
        last_four = (last_four << 15 & 0xFFFFFFFFFFFFFFF) | number
        if place >= 1:
            pairs[place - 1] = last_four & 0x3FFFFFFF
        if place >= 3:
            fours[place - 3] = last_four
        place += 1
    distinct_pairs = max_of(number_distinct(pairs), n - 1) + 1
    distinct_fours = max_of(number_distinct(fours), n - 3) + 1

    gaps: i64 = 0
    near: i64 = 0
    log_gaps = 0.0
    place = 0
    while place < n:
        number = text[place]
        before: i64 = last_use[number]
        last_use[number] = place
        if before >= 0 and uses[number] <= MAX_RARE_USES:
            gap: i64 = place - before
            gaps += 1
            if gap <= NEAR_WORDS:
                near += 1
            log_gaps += log(float(gap * (uses[number] + 1)) / float(n))
        place += 1

    halves = similarity_of_halves(uses, in_first_half, max(3, n // 100))
    once: i64 = 0
    for count in uses:
        if count == 1:
            once += 1
    top, of_top = top_uses(uses)
    total = float(n)
    return (
        float(early) / float(min(n, EARLY_WORDS)),
        float(once) / total,
        float(top) / total,
        float(of_top) / total,
        1.0 - float(distinct_pairs) / float(n - 1),
        1.0 - float(distinct_fours) / float(n - 3),
        halves,
        float(near) / float(gaps) if gaps != 0 else 0.0,
        log_gaps / float(gaps) if gaps != 0 else -0.5,
    )


def number_distinct(keys: vec[i64]) -> vec[i64]:
    """Number distinct keys of 60 bits by their first occurrence; return the number of each key."""
    n: i64 = len(keys)
    bits: i64 = 4
    while (1 << bits) < 2 * n:
        bits += 1
    mask: i64 = (1 << bits) - 1
    slots = vec[i64]([0] * (mask + 1))  # numbers of keys, and 1
    first_of = vec[i64]([0] * n)
    numbers = vec[i64]([0] * n)
    distinct: i64 = 0
    place: i64 = 0
    while place < n:
        key: i64 = keys[place]
        slot: i64 = ((key ^ key >> 30) & 0x3FFFFFFF) * MIX_FACTOR >> 16 & mask
        while slots[slot] != 0 and first_of[slots[slot] - 1] != key:
            slot = slot + 1 & mask
        if slots[slot] == 0:
            first_of[distinct] = key
            distinct += 1
            slots[slot] = distinct
        numbers[place] = slots[slot] - 1
        place += 1
    return numbers


def max_of(numbers: vec[i64], count: i64) -> i64:
    """Return the largest of the first numbers."""
    found: i64 = 0
    place: i64 = 0
    while place < count:
        found = max(found, numbers[place])
        place += 1
    return found


def top_uses(uses: vec[i64]) -> tuple[i64, i64]:
    """Return the largest number, and the sum of the :data:`TOP_WORDS` largest."""
    largest = vec[i64]([0] * TOP_WORDS)
    for count in uses:
        smaller: i64 = count
        rank: i64 = 0
        while rank < TOP_WORDS and smaller != 0:
            if smaller > largest[rank]:
                other: i64 = largest[rank]
                largest[rank] = smaller
                smaller = other
            rank += 1
    total: i64 = 0
    for count in largest:
        total += count
    return largest[0], total


def similarity_of_halves(uses: vec[i64], in_first_half: vec[i64], most: i64) -> float:
    """Return the cosine of the roots of the counts of words with at most ``most`` uses."""
    both = 0.0
    first: i64 = 0
    second: i64 = 0
    distinct: i64 = len(uses)
    number: i64 = 0
    while number < distinct:
        count: i64 = uses[number]
        if count <= most:
            here: i64 = in_first_half[number]
            first += here
            second += count - here
            both += sqrt(float(here * (count - here)))
        number += 1
    return both / sqrt(float(first * second)) if first != 0 and second != 0 else 0.0


def popular_signals(
    places: bytes, frequency_roots: bytes, pair_scores: bytes
) -> tuple[float, float, float, float, float]:
    """Return how a text of two words or more uses k frequent words of other texts.

    ``places`` are those of the text's words among them, -1 for others. The share of frequent words,
    and of pairs of them; the mean score of pairs, by ``pair_scores`` of shape (k + 1, k + 1), where
    k stands for all other words; the share of the first :data:`PRESENT_WORDS` that are there, and
    the distance of the roots of their frequencies, which are floats of 64 bits like scores.
    """
    n: i64 = len(places) // 4
    other: i64 = len(frequency_roots) // 8
    uses = vec[i64]([0] * (other + 1))
    known: i64 = 0
    known_pairs: i64 = 0
    score = 0.0
    before: i64 = -1
    at: i64 = 0
    while at < n:
        place: i64 = i64(read_i32_le(places, 4 * at))
        if place < 0:
            place = other
        uses[place] += 1
        if place < other:
            known += 1
            if 0 <= before < other:
                known_pairs += 1
        if before >= 0:
            score += read_f64_le(pair_scores, 8 * (before * (other + 1) + place))
        before = place
        at += 1
    first: i64 = min(PRESENT_WORDS, other)
    present: i64 = 0
    shift = 0.0
    place = 0
    while place < first:
        if uses[place] != 0:
            present += 1
        difference = sqrt(float(uses[place]) / float(n)) - read_f64_le(frequency_roots, 8 * place)
        shift += difference * difference
        place += 1
    return (
        float(known) / float(n),
        float(known_pairs) / float(n - 1),
        score / float(n - 1),
        float(present) / float(first) if first != 0 else 0.0,
        sqrt(shift),
    )
