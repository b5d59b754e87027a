"""A static word embedding: a vector for each word piece, distilled from a sentence transformer.

``training/embedding.py`` makes the table (``focused/text/embeddings/``): the transformer's outputs
for single word pieces, reduced by PCA and weighted by frequency (Minish Lab 2024, "Model2Vec").
The vector of a text is the sum of its pieces' vectors, so that a linear model over vectors is a
weight per piece, and needs no vectors at crawl time.
"""

from __future__ import annotations

import hashlib
import io
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from focused.text.tokens import tokenize
from focused.text.word_hashes import PieceIndex

TABLE_FILE = "all-minilm-l6-v2.npz"
CONTINUATION = "##"
"""Prefix of the pieces inside a word, as in the vocabularies of BERT."""

_NAME_CHARS = 12
_BATCH_PIECES = 512

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The pieces of letters, and their ``indices`` among all pieces of an embedding, shape (n,)."""

    index: PieceIndex
    indices: NDArray[np.intp]

    def split(self, word: str) -> list[int]:
        """Return the places in :attr:`index` of a word's pieces; empty if a part of it has none.

        The longest piece first, from the left (Schuster, Nakajima 2012, "Japanese and Korean voice
        search"), without accents, as the tokenizer of BERT splits the words of
        :func:`focused.text.tokens.tokenize`.
        """
        if not word.isascii():
            decomposed = unicodedata.normalize("NFKD", word)
            word = "".join(char for char in decomposed if not unicodedata.combining(char))
        return self.index.split(word.encode()) if word.isascii() else []


@dataclass(frozen=True)
class StaticEmbedding:
    """Word pieces and their vectors.

    ``pieces`` are V distinct lower-case strings; ``vectors`` has shape (V, d) in 8-bit integers,
    to be multiplied by ``scales``, shape (V,). ``name`` identifies the table.
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
    def words(self) -> WordPieces:
        """The pieces of which words consist."""
        indices = [i for i, piece in enumerate(self.pieces) if _is_of_letters(piece)]
        own = [self.pieces[i] for i in indices]
        return WordPieces(PieceIndex(own, CONTINUATION), np.array(indices, np.intp))

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
        pieces = {word: self.words.split(word) for word in set(chain.from_iterable(words))}
        for row, own in zip(rows, words, strict=True):
            known = self.words.indices[[piece for word in own for piece in pieces[word]]]
            if len(known):
                row += (self.vectors[known] * self.scales[known, None]).sum(axis=0)
                row /= np.sqrt(squares[known].sum())
        return rows


def _is_of_letters(piece: str) -> bool:
    letters = piece.removeprefix(CONTINUATION)
    return letters.isalpha() and letters.isascii()


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


def write_embedding(pieces: Iterable[str], vectors: NDArray[np.float32]) -> bytes:
    """Return the content of a table file, vectors rounded to 8 bits; ASCII pieces only.

    It is named by a digest. Not compressed, which would cost a twentieth of a crawl's start.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1) / 127, 1e-6).astype(np.float16)
    rounded = np.round(vectors / scales[:, None].astype(np.float32)).clip(-127, 127)
    joined, rows = "\n".join(pieces).encode("ascii"), rounded.astype(np.int8)
    digest = hashlib.sha256(b"\0".join((joined, rows.tobytes(), scales.tobytes()))).hexdigest()
    buffer = io.BytesIO()
    np.savez(
        buffer,
        name=np.frombuffer(digest[:_NAME_CHARS].encode("ascii"), np.uint8),
        pieces=np.frombuffer(joined, np.uint8),
        vectors=rows,
        scales=scales,
    )
    return buffer.getvalue()
