"""The shipped embedding gives words of similar meaning similar vectors."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.text.static_embedding import (
    CONTINUATION,
    StaticEmbedding,
    index_pieces,
    load_embedding,
    read_embedding,
    split_word,
)

SCRIPT = Path(__file__).parents[2] / "training" / "embedding.py"
PIECES = ("play", "player", "##er", "##ing", "##s", "cafe", "x", "a", "##n")
INDEX = index_pieces(PIECES)

write_embedding = runpy.run_path(str(SCRIPT))["write_embedding"]


def pieces_of(word: str) -> list[str]:
    return [PIECES[number] for number in split_word(word, INDEX)]


@pytest.fixture(scope="module")
def shipped() -> StaticEmbedding:
    embedding = load_embedding()
    assert embedding is not None
    return embedding


def likeness(embedding: StaticEmbedding, one: str, other: str) -> float:
    left, right = embedding.embed([one, other], most_words=10)
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_a_word_splits_into_its_longest_pieces():
    assert pieces_of("players") == ["player", "##s"]
    assert pieces_of("playing") == ["play", "##ing"]


def test_single_letters_are_pieces_too():
    assert pieces_of("xing") == ["x", "##ing"]
    assert pieces_of("an") == ["a", "##n"]


def test_a_piece_inside_words_begins_none():
    assert pieces_of("ing") == []
    assert pieces_of("playplay") == []


@given(
    st.text("abc", max_size=12),
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=4), st.booleans()), unique=True),
)
def test_the_longest_pieces_come_first(word, vocabulary):
    pieces = [f"{CONTINUATION if is_inside else ''}{letters}" for letters, is_inside in vocabulary]
    found: list[int] = []
    rest, prefix = word, ""
    while rest:
        fitting = [each for each in pieces if f"{prefix}{rest}".startswith(each)]
        if not fitting:
            found = []
            break
        longest = max(fitting, key=len)
        found.append(pieces.index(longest))
        rest, prefix = rest[len(longest) - len(prefix) :], CONTINUATION
    assert split_word(word, index_pieces(pieces)) == found


def test_a_word_with_an_unknown_part_has_no_pieces():
    assert pieces_of("playful") == []
    assert pieces_of("") == []


def test_accents_do_not_matter():
    assert pieces_of("café") == ["cafe"]


def test_words_of_other_scripts_have_no_pieces():
    assert pieces_of("音楽") == []


def test_words_of_one_subject_are_closer_than_others(shipped):
    assert likeness(shipped, "violin", "orchestra") > likeness(shipped, "violin", "aluminium") + 0.2
    assert likeness(shipped, "aluminium", "metal") > likeness(shipped, "aluminium", "baptist") + 0.2


def test_a_text_without_known_words_has_a_zero_vector(shipped):
    assert not shipped.embed(["", "42", "音楽"], most_words=10).any()


def test_only_the_first_words_count(shipped):
    both = shipped.embed(["violin aluminium", "violin"], most_words=1)
    assert both[0] == pytest.approx(both[1])


def test_projections_are_dot_products_of_the_vectors(shipped):
    direction = np.random.default_rng(1).normal(size=shipped.dimensions)
    piece = shipped.pieces.index("violin")
    vector = shipped.vectors[piece] * shipped.scales[piece]
    assert shipped.project(direction)[piece] == pytest.approx(vector @ direction, rel=1e-4)
    assert shipped.squared_norms[piece] == pytest.approx(vector @ vector, rel=1e-4)


def test_a_written_table_is_read_back_within_its_precision():
    vectors = np.random.default_rng(2).normal(size=(len(PIECES), 4)).astype(np.float32)
    found = read_embedding(write_embedding(PIECES, vectors))
    assert found.pieces == PIECES
    assert found.vectors * found.scales[:, None] == pytest.approx(vectors, abs=0.03)


def test_the_name_tells_tables_apart():
    tables = [
        read_embedding(write_embedding(PIECES, np.full((len(PIECES), 4), value, np.float32)))
        for value in (1.0, 1.0, 2.0)
    ]
    assert tables[0].name == tables[1].name != tables[2].name


def test_models_that_were_trained_with_the_shipped_table_know_its_name(shipped):
    assert shipped.name == "3433e9428473"


def test_arrays_that_do_not_fit_are_refused():
    data = write_embedding(PIECES[:-1], np.ones((len(PIECES), 4), np.float32))
    with pytest.raises(ValueError, match="do not fit"):
        read_embedding(data)
