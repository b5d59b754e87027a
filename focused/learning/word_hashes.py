"""The words of many texts as numbers, by arithmetic on arrays: no word is made a string.

The words are those of :func:`focused.learning.tokens.words`, each known by 32 bits of it: of
200,000 words five pairs or so share a number, which tells less than a misspelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from focused.learning.tokens import MAX_WORD_CHARS, is_in_ascii_letters, words
from focused.web.powers import powers

Hashes = NDArray[np.uint32]

MAX_TEXT_CHARS = 200_000
"""So much of one text counts."""

_FOUR = 4  # bytes a character at most
_MAX_BYTES = 1 << 20
_BASE = np.uint32(0x9E3779B1)
_SPREAD = np.uint32(0x85EBCA6B)
_ANY = "surrogatepass"
_HIGH, _LOW = np.uint32(15), np.uint32(13)


class Words(NamedTuple):
    """The words of m texts one after the other.

    ``hashes`` has shape (n,); ``lengths``, shape (m,), tells how many are of each text.
    """

    hashes: Hashes
    lengths: NDArray[np.intp]

    @property
    def owners(self) -> NDArray[np.intp]:
        """Whose text each word is of, shape (n,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def of_texts(self, first: int, end: int) -> Words:
        """Those of the texts from ``first`` to before ``end``."""
        begins, ends = (int(self.lengths[:place].sum()) for place in (first, end))
        return Words(self.hashes[begins:ends], self.lengths[first:end])

    def at_most(self, most: NDArray[np.intp]) -> Words:
        """The first words of each text, ``most[i]`` of text i."""
        if (self.lengths <= most).all():
            return self
        begins = self.lengths.cumsum() - self.lengths
        left = np.arange(len(self.hashes)) < np.repeat(begins + most, self.lengths)
        return Words(self.hashes[left], np.minimum(self.lengths, most))


class Texts(Sequence[str]):
    """Texts whose words are looked for once, by whoever asks first."""

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

    @cached_property
    def words(self) -> Words:
        """The words of all texts."""
        return hash_words(self._texts)


def words_of(texts: Sequence[str]) -> Words:
    """The words of texts, which may know them already."""
    return texts.words if isinstance(texts, Texts) else hash_words(texts)


def hash_words(texts: Sequence[str]) -> Words:
    """The hashes of the words of each text, in order, repeats kept."""
    if _FOUR * (sum(map(len, texts)) + len(texts)) <= _MAX_BYTES:
        return _hash_together(texts)
    parts, first, size = [], 0, 0
    for place, text in enumerate(texts):
        bytes_ = _FOUR * (min(len(text), MAX_TEXT_CHARS) + 1)
        if size + bytes_ > _MAX_BYTES:
            parts.append(_hash_together(texts[first:place]))
            first, size = place, 0
        size += bytes_
    parts.append(_hash_together(texts[first:]))
    return Words(*map(np.concatenate, zip(*parts, strict=True)))


def hashes_of(text: str) -> list[int]:
    """:func:`hash_words` of one short text, for which arrays are not worth their making."""
    return [hash_of(word) for word in words(text)]


@lru_cache(65_536)
def hash_of(word: str) -> int:
    """The hash of one word, as :func:`focused.learning.tokens.words` gives it."""
    values = _letters().take(np.frombuffer(word.encode("utf-8", _ANY), np.uint8))
    values *= powers(_BASE, len(values))[0][: len(values)]
    return int(_mixed(values.sum(dtype=np.uint32, keepdims=True))[0])


def _hash_together(texts: Sequence[str]) -> Words:
    if not texts:
        return Words(np.empty(0, np.uint32), np.empty(0, np.intp))
    text = _Raw.of(texts)
    codes = np.frombuffer(text.raw, np.uint8)
    values = _letters(beyond_ascii=text.beyond_ascii).take(codes)
    is_letter = values != 0
    # The first byte and the last are separators.
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1])
    before, last = edges[::2], edges[1::2]
    forth, back = powers(_BASE, len(values))
    values *= forth[: len(values)]
    # Sums up to each word's end less those up to its beginning, by the power of its place: the
    # polynomial of its letters, modulo 2**32.
    up_to = np.cumsum(values, dtype=np.uint32)
    hashes = up_to[last]
    hashes -= up_to[before]
    hashes *= back[before + 1]
    lengths = last - before
    chars = _chars(codes, before, last) if text.beyond_ascii else lengths
    is_word = (lengths > 1) & (chars <= MAX_WORD_CHARS)
    hashes, before = hashes[is_word], before[is_word]
    return Words(_mixed(hashes), np.diff(before.searchsorted(text.ends), prepend=0))


class _Raw(NamedTuple):
    """Texts in UTF-8 between separators, and where each ends.

    ``beyond_ascii`` tells that all that is beyond ASCII is letters; else all that separates.
    """

    raw: bytes
    ends: NDArray[np.intp]
    beyond_ascii: bool = False

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Raw:
        together = "\n".join(texts)
        if len(together) <= MAX_TEXT_CHARS and is_in_ascii_letters(together):
            raw = f"\n{together}\n".encode("utf-8", _ANY)
            sizes = [
                len(text) if text.isascii() else len(text.encode("utf-8", _ANY)) for text in texts
            ]
            return cls(raw, _ends(sizes))
        # Of a text with other letters its words are written.
        pieces = [_piece(text[:MAX_TEXT_CHARS]) for text in texts]
        return cls(b"\n".join((b"", *pieces, b"")), _ends(map(len, pieces)), beyond_ascii=True)


def _ends(sizes: Iterable[int]) -> NDArray[np.intp]:
    ends = np.array(list(sizes), np.intp)
    ends += 1
    return ends.cumsum(out=ends)


def _piece(text: str) -> bytes:
    if is_in_ascii_letters(text):
        return text.encode("ascii", "replace")
    return " ".join(words(text)).encode("utf-8", _ANY)


def _chars(
    codes: NDArray[np.uint8], before: NDArray[np.intp], last: NDArray[np.intp]
) -> NDArray[np.intp]:
    """How many characters each run of bytes has."""
    begins = np.cumsum((codes & 0xC0) != 0x80)
    return np.asarray(begins[last] - begins[before])


def _mixed(hashes: Hashes) -> Hashes:
    """Hashes whose high bits depend on all of theirs (after Appleby's MurmurHash3)."""
    hashes ^= hashes >> _HIGH
    hashes *= _SPREAD
    hashes ^= hashes >> _LOW
    return hashes * _BASE


@cache
def _letters(*, beyond_ascii: bool = True) -> Hashes:
    """A number for each byte of a word, upper and lower case alike, 0 for what separates."""
    numbers = np.array([xxh32_intdigest(bytes((code,))) for code in range(256)], np.uint32)
    for code in range(0x80):
        letter = chr(code)
        numbers[code] = numbers[ord(letter.lower())] if letter.isalpha() else 0
    if not beyond_ascii:
        numbers[0x80:] = 0
    return numbers
