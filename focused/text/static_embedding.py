"""A static word embedding: a vector for each word piece, distilled from a sentence transformer.

``training/embedding.py`` makes the table (``focused/text/embeddings/``): the transformer's outputs
for single word pieces, reduced by PCA and weighted by frequency (Minish Lab 2024, "Model2Vec").
The vector of a text is the sum of its pieces' vectors, so that a linear model over vectors is a
weight per piece, and needs no vectors at crawl time.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from focused.kernels import word_hashing
from focused.text.tokens import tokenize
from focused.text.word_hashes import HashIndex, letter_values

TABLE_FILE = "all-minilm-l6-v2.npz"
CONTINUATION = "##"
"""Prefix of the pieces inside a word, as in the vocabularies of BERT."""

_BATCH_PIECES = 512

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class StaticEmbedding:
    """Word pieces and their vectors.

    ``pieces`` are V distinct runs of ASCII letters in lower case, some after :data:`CONTINUATION`;
    ``vectors`` has shape (V, d) in 8-bit integers, to be multiplied by ``scales``, shape (V,).
    ``name`` identifies the table.
    """

    name: str
    pieces: tuple[str, ...]
    vectors: NDArray[np.int8]
    scales: FloatArray

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def index(self) -> HashIndex:
        """The pieces by hash; a word that is one piece has the piece's hash."""
        return index_pieces(self.pieces)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """The squared length of each piece's vector, shape (V,)."""
        squares = np.einsum("vd,vd->v", self.vectors, self.vectors, dtype=np.float32)
        return np.asarray(squares * self.scales**2)

    def project(self, direction: NDArray[np.float64]) -> FloatArray:
        """Return the dot product of each piece's vector and ``direction``, shape (d,)."""
        single = direction.astype(np.float32)
        # The converted vectors of a batch fit into the core's cache.
        batches = range(0, len(self.vectors), _BATCH_PIECES)
        products = [self.vectors[first : first + _BATCH_PIECES] @ single for first in batches]
        return np.asarray(np.concatenate(products) * self.scales)

    def embed(self, texts: Sequence[str], most_words: int) -> FloatArray:
        """Return a vector per text, from its first ``most_words`` words, shape (n, d).

        The sum of the pieces' vectors over the root of their squared lengths' sum: a unit vector
        if they are orthogonal. A text without known pieces has a zero vector.
        """
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        squares = self.squared_norms
        words = [tokenize(text)[:most_words] for text in texts]
        pieces = {word: split_word(word, self.index) for word in set(chain.from_iterable(words))}
        for row, own in zip(rows, words, strict=True):
            known = [piece for word in own for piece in pieces[word]]
            if known:
                row += (self.vectors[known] * self.scales[known, None]).sum(axis=0)
                row /= np.sqrt(squares[known].sum())
        return rows


def index_pieces(pieces: Sequence[str]) -> HashIndex:
    """Return an index of pieces by the hashes of their letters."""
    values, hashes = letter_values(), []
    for piece in pieces:
        begin = len(CONTINUATION) if piece.startswith(CONTINUATION) else 0
        hashes.append(word_hashing.hash_piece(piece.encode(), begin, len(piece), values))
    return HashIndex(np.array(hashes, np.uint32))


def split_word(word: str, index: HashIndex) -> list[int]:
    """Return the indices of a word's pieces; empty if a part of it has none.

    The longest piece first, from the left (Schuster, Nakajima 2012, "Japanese and Korean voice
    search"), without accents, as the tokenizer of BERT splits the words of
    :func:`focused.text.tokens.tokenize`. Cubic in the word's length. ``index`` is one of
    :func:`index_pieces`.
    """
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", word)
        word = "".join(char for char in decomposed if not unicodedata.combining(char))
    if not word.isascii():
        return []
    places = word_hashing.split_word(index.table, word.encode(), letter_values())
    return memoryview(places).cast("i").tolist()


_TABLE = files("focused.text").joinpath("embeddings", TABLE_FILE)
_in_use: WeakValueDictionary[str, StaticEmbedding] = WeakValueDictionary()


def has_embedding() -> bool:
    """Return whether this installation has a table."""
    return _TABLE.is_file()


def load_embedding() -> StaticEmbedding | None:
    """Load the shipped table, or return the one in use; None if this installation has none.

    A crawl needs its vectors while it builds the classifier, and then not their 7 MB.
    """
    embedding = _in_use.get(TABLE_FILE)
    if embedding is None and has_embedding():
        embedding = _in_use[TABLE_FILE] = read_embedding(_TABLE.read_bytes())
    return embedding


def read_embedding(data: bytes) -> StaticEmbedding:
    """Read the content of a table file; raises ValueError if it is none."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        pieces = arrays["pieces"].tobytes().decode("ascii").split("\n")
        name = arrays["name"].tobytes().decode("ascii")
        vectors, scales = arrays["vectors"], arrays["scales"].astype(np.float32)
    if vectors.dtype != np.int8 or vectors.shape[:1] != scales.shape or len(pieces) != len(scales):
        raise ValueError("the arrays of the embedding table do not fit each other")
    return StaticEmbedding(name, tuple(pieces), vectors, scales)
