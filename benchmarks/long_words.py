"""Words for a generated web: the model's own, by category, and unknown ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import LinearTopicClassifier

DRAWS = 1 << 16
"""Words sampled in advance for each subject: two bytes of a hash select one."""

_UNKNOWN_WORDS = 50_000
_OF_SUBJECT, _OF_ALL = 0.5, 0.2
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]

Words = NDArray[np.object_]


def drawn_words(model: LinearTopicClassifier, seed: int) -> Sequence[Words]:
    """For each category of the model, :data:`DRAWS` words of a page on it, shape (DRAWS,).

    Half are sampled from the category's word frequencies, a fifth from those of all categories; the
    rest are generated, with Zipf-distributed frequencies.
    """
    drawing = np.random.default_rng(seed)
    known = np.array(model.vocabulary.words, dtype=object)
    unknown = np.array([made_up(number) for number in range(_UNKNOWN_WORDS)], dtype=object)
    likely = np.exp(model.taxonomy.log_likelihood[: len(model.taxonomy.categories)])
    shares = likely / likely.sum(axis=1, keepdims=True)
    ranks = 1.0 / (np.arange(_UNKNOWN_WORDS) + 20.0)
    subjects = []
    for share in shares:
        of_subject = int(DRAWS * _OF_SUBJECT)
        of_all = int(DRAWS * _OF_ALL)
        words = np.concatenate(
            [
                drawing.choice(known, of_subject, p=share / share.sum()),
                drawing.choice(known, of_all, p=shares.mean(axis=0) / shares.mean(axis=0).sum()),
                drawing.choice(unknown, DRAWS - of_subject - of_all, p=ranks / ranks.sum()),
            ]
        )
        drawing.shuffle(words)
        subjects.append(words)
    return subjects


def made_up(number: int) -> str:
    """The generated word of that number, a syllable or more."""
    parts = []
    left = number + len(_SYLLABLES)
    while left:
        left, syllable = divmod(left, len(_SYLLABLES))
        parts.append(_SYLLABLES[syllable])
    return "".join(parts)
