"""Hashes the words of many texts without creating word strings.

The words are those of :func:`focused.text.tokens.tokenize`. Each word has a 32-bit hash:
among 200,000 words about five pairs collide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from focused.kernels.word_hashing import END_OF_TEXT, find_words, hash_words, make_word_table
from focused.text.tokens import MAX_WORD_CHARS, separate_words

WordHashes = NDArray[np.uint32]

MAX_TEXT_CHARS = 200_000
"""Maximum number of characters hashed per text."""

_ENCODING_ERRORS = "surrogatepass"


class HashedTexts(NamedTuple):
    """The word hashes of m texts, concatenated.

    ``hashes`` has shape (n,); ``lengths`` has the number of words per text.
    """

    hashes: WordHashes
    lengths: list[int]


class LazyHashedTexts(Sequence[str]):
    """Texts that are hashed once, at first use."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        return self._texts[place]

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    @property
    def words(self) -> HashedTexts:
        """The hashed words of all texts."""
        return self._located.hashed

    def word(self, place: int) -> str:
        """Return a word by its place in :attr:`words`, as ``tokenize`` gives it."""
        begin, end = self._located.places[place].tolist()
        return self._located.raw[begin:end].lower().decode("utf-8", _ENCODING_ERRORS)

    @cached_property
    def _located(self) -> _LocatedWords:
        return _locate_words(self._texts)


def hash_texts_once(texts: Sequence[str]) -> HashedTexts:
    """Hash texts, or return the hashes of a :class:`LazyHashedTexts`."""
    return texts.words if isinstance(texts, LazyHashedTexts) else hash_texts(texts)


def hash_texts(texts: Sequence[str]) -> HashedTexts:
    """Return the word hashes of each text in order, with repeats."""
    return _locate_words(texts).hashed


@lru_cache(65_536)
def hash_word(word: str) -> int:
    """Return the hash of one word of :func:`focused.text.tokens.tokenize`."""
    raw = word.encode("utf-8", _ENCODING_ERRORS) + END_OF_TEXT
    hashes, _, _ = hash_words(raw, letter_values(), MAX_WORD_CHARS)
    return int.from_bytes(hashes, "little")


class _LocatedWords(NamedTuple):
    """Hashed words; word i is in ``raw``, in UTF-8, in which case it stood.

    ``places``, shape (n, 2), is where each begins and ends.
    """

    hashed: HashedTexts
    raw: bytes
    places: NDArray[np.int32]


def _locate_words(texts: Sequence[str]) -> _LocatedWords:
    whole = "".join(texts)
    is_plain = whole.isascii() and len(whole) <= MAX_TEXT_CHARS
    raw = END_OF_TEXT.join((*map(str.encode if is_plain else _encode_text, texts), b""))
    hashes, places, counts = hash_words(raw, letter_values(), MAX_WORD_CHARS)
    hashed = HashedTexts(np.frombuffer(hashes, np.uint32), np.frombuffer(counts, np.int32).tolist())
    return _LocatedWords(hashed, raw, np.frombuffer(places, np.int32).reshape(-1, 2))


def _encode_text(text: str) -> bytes:
    """Return the beginning of a text in UTF-8, where letters alone are not ASCII."""
    text = text[:MAX_TEXT_CHARS]
    return text.encode() if text.isascii() else separate_words(text)


@cache
def letter_values() -> bytes:
    """Return a number per byte, the same for upper and lower case; 0 for separators.

    Bytes from 0x80 are parts of letters; :data:`focused.kernels.word_hashing.END_OF_TEXT` is none.
    """
    numbers = [xxh32_intdigest(bytes((code,))) for code in range(256)]
    for code in range(0x80):
        letter = chr(code)
        numbers[code] = numbers[ord(letter.lower())] if letter.isalpha() else 0
    numbers[END_OF_TEXT[0]] = 0
    return struct.pack("<256q", *numbers)


class HashIndex:
    """Lookup of many word hashes in a vocabulary.

    If two words share a hash, the later one stands for both. ``table`` is that of the kernel.
    """

    def __init__(self, hashes: WordHashes) -> None:
        """``hashes`` has shape (V,)."""
        self.table = make_word_table(hashes.tobytes())

    def find(self, hashes: WordHashes) -> NDArray[np.int32]:
        """Return the index of each hash in the vocabulary, -1 if absent, shape (n,)."""
        return np.frombuffer(find_words(self.table, hashes.tobytes()), np.int32)

    def find_sorted(self, hashes: WordHashes) -> bytes:
        """Return the indices of :meth:`find`, ascending, in 32 bits each."""
        return np.sort(self.find(hashes)).tobytes()
