"""Vectors and scores of texts by the places of their words in a vocabulary.

The places of a page are ascending, with repeats, in 32 bits each, and -1 for unknown words. Numbers
by place, such as inverse document frequencies, are floats of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Final

from librt.strings import (
    BytesWriter,
    read_f32_le,
    read_f64_le,
    read_i32_le,
    write_f64_le,
    write_i64_le,
)
from mypy_extensions import i64

BEYOND: Final = 0x7FFFFFFF
"""No place is as large."""


def unit_vector(
    text: bytes, head: bytes, idf: bytes, head_weight: float
) -> tuple[bytes, bytes, int]:
    """Return distinct places, ascending, their values, and how many words are known.

    Places and values have 64 bits. The vector is that of the text plus ``head_weight`` times that
    of the head, which are unit vectors of log(1 + count) times ``idf``.
    """
    at: i64 = first_known(text)
    head_at: i64 = first_known(head)
    known: i64 = (len(text) - at + len(head) - head_at) // 4
    length = length_of(text, at, idf)
    head_length = length_of(head, head_at, idf)
    places, sums = BytesWriter(), BytesWriter()
    square = 0.0
    while at < len(text) or head_at < len(head):
        in_text: i64 = place_at(text, at)
        in_head: i64 = place_at(head, head_at)
        place: i64 = min(in_text, in_head)
        weight = read_f32_le(idf, 4 * place)
        value = 0.0
        if in_text == place:
            end: i64 = end_of_run(text, at)
            value = log(1.0 + float((end - at) // 4)) * weight / length
            at = end
        if in_head == place:
            end = end_of_run(head, head_at)
            value += head_weight * (log(1.0 + float((end - head_at) // 4)) * weight / head_length)
            head_at = end
        write_i64_le(places, place)
        write_f64_le(sums, value)
        square += value * value
    values, unscaled, length = BytesWriter(), sums.getvalue(), sqrt(square)
    at = 0
    while at < len(unscaled):
        write_f64_le(values, read_f64_le(unscaled, at) / length)
        at += 8
    return places.getvalue(), values.getvalue(), known


def text_scores(
    words: bytes,
    places: bytes,
    lengths: list[int],
    scores: bytes,
    squares: bytes,
    bias: float,
    slope: float,
    most: float,
    others: dict[int, tuple[float, float]],
    value_of: Callable[[int], tuple[float, float]] | None,
) -> bytes:
    """Return a score per text, in 64 bits: ``slope`` (sum of scores / length + ``bias``).

    It is within ±``most``, and 0 for a text whose words have no length. Hashes and places of words
    are in the texts' order; ``lengths`` has their number per text. ``squares`` are the squared
    lengths of the words' vectors, which count as orthogonal; 1 if it is empty. Score and square of
    a word without a place are in ``others``, by its hash; ``value_of`` adds those of the n-th word
    of all texts. Without, it doesn't count.
    """
    texts = BytesWriter()
    at: i64 = 0
    for length in lengths:
        end: i64 = at + 4 * i64(length)
        total = 0.0
        square = 0.0
        while at < end:
            place: i64 = i64(read_i32_le(places, at))
            if place >= 0:
                total += read_f32_le(scores, 4 * place)
                square += read_f32_le(squares, 4 * place) if squares else 1.0
            elif value_of is not None:
                word = int(i64(read_i32_le(words, at)))
                other = others.get(word)
                if other is None:
                    other = value_of(int(at // 4))
                    others[word] = other
                total += other[0]
                square += other[1]
            at += 4
        score = slope * (total / sqrt(square) + bias) if square > 0.0 else 0.0
        write_f64_le(texts, max(-most, min(most, score)))
    return texts.getvalue()


def lead_score(places: bytes, scores: bytes, squares: bytes, bias: float) -> float:
    """Return the score of a text: that of its known words over their length, plus ``bias``.

    Words weigh log(1 + count); ``squares`` are the squared lengths of their vectors, which count as
    orthogonal. 0 without known words.
    """
    at: i64 = first_known(places)
    if at == len(places):
        return 0.0
    total = 0.0
    square = 0.0
    while at < len(places):
        end: i64 = end_of_run(places, at)
        place: i64 = place_at(places, at)
        weight = log(1.0 + float((end - at) // 4))
        total += weight * read_f32_le(scores, 4 * place)
        square += weight * weight * read_f32_le(squares, 4 * place)
        at = end
    return total / sqrt(square) + bias


def length_of(places: bytes, at: i64, idf: bytes) -> float:
    """Return the length of the vector of known words, which begin at ``at``."""
    square = 0.0
    while at < len(places):
        end: i64 = end_of_run(places, at)
        value = log(1.0 + float((end - at) // 4)) * read_f32_le(idf, 4 * place_at(places, at))
        square += value * value
        at = end
    return sqrt(square)


def first_known(places: bytes) -> i64:
    """Return where the places of known words begin."""
    at: i64 = 0
    while at < len(places) and read_i32_le(places, at) < 0:
        at += 4
    return at


def place_at(places: bytes, at: i64) -> i64:
    """Return the place there, :data:`BEYOND` at the end."""
    return i64(read_i32_le(places, at)) if at < len(places) else BEYOND


def end_of_run(places: bytes, at: i64) -> i64:
    """Return where another place begins."""
    place = read_i32_le(places, at)
    at += 4
    while at < len(places) and read_i32_le(places, at) == place:
        at += 4
    return at
