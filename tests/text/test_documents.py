"""A page's words as a vector."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.text.documents import HEAD_WEIGHT, HashedPage, Vocabulary
from focused.text.word_hashes import hash_texts

KNOWN = ("lock", "thread", "queue", "pool", "gpu")
IDF = np.array([1.5, 0.5, 2.25, 3.0, 1.0], np.float32)
texts = st.lists(st.sampled_from([*KNOWN, "rose", "tulip"]))


def weighed(words: list[str]) -> dict[str, float]:
    """Word by word, as the module's docstring tells."""
    values = {
        word: math.log1p(count) * float(IDF[KNOWN.index(word)])
        for word, count in Counter(words).items()
        if word in KNOWN
    }
    return of_length_one(values)


def of_length_one(values: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(value**2 for value in values.values()))
    return {word: value / length for word, value in values.items()}


@given(texts, texts)
def test_a_vector_joins_text_and_head_word_by_word(text, head):
    of_text, of_head = weighed(text), weighed(head)
    joined = of_length_one(
        {
            word: of_text.get(word, 0.0) + HEAD_WEIGHT * of_head.get(word, 0.0)
            for word in KNOWN
            if word in of_text or word in of_head
        }
    )
    hashed = HashedPage(hash_texts(text).hashes, hash_texts(head).hashes)
    vector = Vocabulary(KNOWN, IDF).vectorize_page(hashed)
    assert [KNOWN[i] for i in vector.ids] == list(joined)
    assert vector.values == pytest.approx(list(joined.values()))
    known = sum(word in KNOWN for word in text + head)
    assert vector.known_share == pytest.approx(known / max(len(text + head), 1))
