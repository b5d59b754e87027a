"""Make spam of good texts, to train and to examine the spam classifier.

A family is a way in which spammers make pages that match a topic: Gyöngyi and Garcia-Molina (2005,
"Web spam taxonomy") call them repetition, dumping, weaving and phrase stitching. Randomness is an
argument: the same generator gives the same texts.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

SpamFamily = Callable[[Sequence[str], int, random.Random], str]
"""``(good texts, number of words, random generator)`` to a spam text."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_KEYWORD_CHARS = 5
_KEYWORDS = 300
_FRAGMENT_WORDS = 12


def repeat_keywords(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Repeat some of the texts' frequent words, before or after a piece of a text (stuffing)."""
    keywords = frequent_words(texts, _KEYWORDS)
    chosen = rng.sample(keywords, min(len(keywords), rng.randint(3, 10)))
    stuffed: list[str] = []
    while len(stuffed) < 0.7 * n_words and chosen:
        stuffed += rng.sample(chosen, min(len(chosen), rng.randint(1, 4)))
    piece = rng.choice(texts).split()[: round(0.3 * n_words)]
    return " ".join(stuffed + piece if rng.random() < 0.5 else piece + stuffed)


def shuffle_words(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Draw the texts' words in random order (dumping)."""
    return " ".join(rng.choices([word for text in texts for word in text.split()], k=n_words))


def stitch_sentences(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Put sentences of several texts together (phrase stitching)."""
    sentences = [
        sentence
        for text in texts
        for sentence in _SENTENCE_END.split(text)
        if 4 < len(sentence.split()) < 60
    ] or [
        " ".join(words[first : first + _FRAGMENT_WORDS])
        for words in map(str.split, texts)
        for first in range(0, len(words), _FRAGMENT_WORDS)
    ]
    chosen: list[str] = []
    while len(chosen) < n_words:
        chosen += rng.choice(sentences).split()
    return " ".join(chosen)


def generate_text(texts: Sequence[str], n_words: int, rng: random.Random, *, order: int = 2) -> str:
    """Generate text by a Markov chain over the texts' words, each word after ``order`` others."""
    followers: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for words in map(str.split, texts):
        shifted = [words[first:] for first in range(order + 1)]
        for *before, word in zip(*shifted, strict=False):
            followers[tuple(before)].append(word)
    starts = list(followers)
    generated = list(rng.choice(starts))
    while len(generated) < n_words:
        found = followers.get(tuple(generated[-order:]))
        generated += [rng.choice(found)] if found else rng.choice(starts)
    return " ".join(generated)


TRAINING_FAMILIES: Mapping[str, SpamFamily] = {
    "keywords": repeat_keywords,
    "shuffled": shuffle_words,
    "stitched": stitch_sentences,
    "generated": generate_text,
}
"""The families that the spam classifier is trained on."""


def frequent_words(texts: Sequence[str], most: int) -> list[str]:
    """Return the most frequent longer words of the texts, in lower case."""
    counted = Counter(
        word for text in texts for word in text.lower().split() if len(word) >= _KEYWORD_CHARS
    )
    return [word for word, _ in counted.most_common(most)]
