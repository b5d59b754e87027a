"""Naive Bayes over word counts, in two kinds: what a word says for a class.

Multinomial naive Bayes takes a class's words from its own samples.
Complement naive Bayes takes them from all other samples, of which there are
more, and evens out the weight of classes with few samples (Rennie, Shih,
Teevan, Karger 2003, "Tackling the poor assumptions of naive Bayes text
classifiers", sections 3.1 and 3.2). Which fits better differs from topic to
topic; validation chooses.
"""

from __future__ import annotations

import numpy as np

from focused.learning.calibration import Floats

KINDS = ("multinomial", "complement")

# Chosen on hosts left out of nine topics of two builds of the documentation web, some 60 good
# and 540 other samples each; flat around this value (docs/explanation/classifier.md).
SMOOTHING = 0.05
"""Added to each word's count."""


def class_words(sums: Floats, kind: str) -> Floats:
    """What each word says for each class, shape (C, V), in nats but for a shift by class.

    ``sums``, shape (C, V), has the words' summed values by class; ``kind`` is
    one of :data:`KINDS`.
    """
    if kind == "multinomial":
        return _log_shares(sums)
    return -_log_shares(sums.sum(axis=0) - sums)


def word_ratio(good: Floats, other: Floats, kind: str) -> Floats:
    """The words' log-likelihood ratio, shape (V,), from their sums on either side.

    Of two classes each is the other's complement: there the kinds differ in
    that complement gives both sides the same total weight.
    """
    ours, theirs = _log_shares(np.stack([good, other]))
    if kind == "multinomial":
        return np.asarray(ours - theirs)
    mean = (np.abs(ours).sum() + np.abs(theirs).sum()) / 2
    return np.asarray((ours / np.abs(ours).sum() - theirs / np.abs(theirs).sum()) * mean)


def _log_shares(sums: Floats) -> Floats:
    counts = np.maximum(sums, 0.0) + SMOOTHING  # differences of sums may fall short of 0
    return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))
