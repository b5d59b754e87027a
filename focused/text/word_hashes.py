"""Hashes the words of many texts with array arithmetic, without creating word strings.

The words are those of :func:`focused.text.tokens.tokenize`. Each word has a 32-bit hash:
among 200,000 words about five pairs collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from focused.text.tokens import MAX_WORD_CHARS, has_only_ascii_letters, tokenize

WordHashes = NDArray[np.uint32]

MAX_TEXT_CHARS = 200_000
"""Maximum number of characters hashed per text."""

_MAX_BYTES_PER_CHAR = 4
_MAX_BATCH_BYTES = 1 << 20
_BASE = np.uint32(0x9E3779B1)
_MIX_FACTOR = np.uint32(0x85EBCA6B)
_ENCODING_ERRORS = "surrogatepass"
_HIGH_SHIFT, _LOW_SHIFT = np.uint32(15), np.uint32(13)


class HashedTexts(NamedTuple):
    """The word hashes of m texts, concatenated.

    ``hashes`` has shape (n,); ``lengths``, shape (m,), is the number of words per text.
    """

    hashes: WordHashes
    lengths: NDArray[np.intp]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The index of each word's text, shape (n,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def slice_texts(self, first: int, end: int) -> HashedTexts:
        """Return the words of texts ``first`` to ``end`` (exclusive)."""
        begins, ends = (int(self.lengths[:place].sum()) for place in (first, end))
        return HashedTexts(self.hashes[begins:ends], self.lengths[first:end])

    def truncate(self, most: NDArray[np.intp]) -> HashedTexts:
        """Keep the first ``most[i]`` words of text i."""
        if (self.lengths <= most).all():
            return self
        begins = self.lengths.cumsum() - self.lengths
        left = np.arange(len(self.hashes)) < np.repeat(begins + most, self.lengths)
        return HashedTexts(self.hashes[left], np.minimum(self.lengths, most))


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
        located = self._located
        raw = located.raw[located.begins[place] : located.ends[place]]
        return raw.lower().decode("utf-8", _ENCODING_ERRORS)

    @cached_property
    def _located(self) -> _LocatedWords:
        return _hash_located(self._texts)


def hash_texts_once(texts: Sequence[str]) -> HashedTexts:
    """Hash texts, or return the hashes of a :class:`LazyHashedTexts`."""
    return texts.words if isinstance(texts, LazyHashedTexts) else hash_texts(texts)


def hash_texts(texts: Sequence[str]) -> HashedTexts:
    """Return the word hashes of each text in order, with repeats."""
    return _hash_located(texts).hashed


def _hash_located(texts: Sequence[str]) -> _LocatedWords:
    """Hash texts in batches of bounded memory."""
    if _MAX_BYTES_PER_CHAR * (sum(map(len, texts)) + len(texts)) <= _MAX_BATCH_BYTES:
        return _hash_batch(texts)
    parts, first, size = [], 0, 0
    for place, text in enumerate(texts):
        bytes_ = _MAX_BYTES_PER_CHAR * (min(len(text), MAX_TEXT_CHARS) + 1)
        if size + bytes_ > _MAX_BATCH_BYTES:
            parts.append(_hash_batch(texts[first:place]))
            first, size = place, 0
        size += bytes_
    parts.append(_hash_batch(texts[first:]))
    return _LocatedWords.join(parts)


def hash_short_text(text: str) -> list[int]:
    """Hash one short text without arrays, which is faster."""
    return [hash_word(word) for word in tokenize(text)]


@lru_cache(65_536)
def hash_word(word: str) -> int:
    """Return the hash of one word of :func:`focused.text.tokens.tokenize`."""
    values = _letter_values().take(np.frombuffer(word.encode("utf-8", _ENCODING_ERRORS), np.uint8))
    values *= powers(_BASE, len(values))[0][: len(values)]
    return int(_mix_bits(values.sum(dtype=np.uint32, keepdims=True))[0])


class _LocatedWords(NamedTuple):
    """Hashed words; word i is ``raw[begins[i]:ends[i]]``, in UTF-8, in which case it stood."""

    hashed: HashedTexts
    raw: bytes
    begins: NDArray[np.intp]
    ends: NDArray[np.intp]

    @classmethod
    def join(cls, parts: Sequence[_LocatedWords]) -> _LocatedWords:
        """Join the words of consecutive texts."""
        hashed, raws, begins, ends = zip(*parts, strict=True)
        offsets = np.cumsum([0, *map(len, raws[:-1])])
        return cls(
            HashedTexts(*map(np.concatenate, zip(*hashed, strict=True))),
            b"".join(raws),
            *(
                np.concatenate(
                    [place + offset for place, offset in zip(each, offsets, strict=True)]
                )
                for each in (begins, ends)
            ),
        )


def _hash_batch(texts: Sequence[str]) -> _LocatedWords:
    if not texts:
        nowhere = np.empty(0, np.intp)
        return _LocatedWords(HashedTexts(np.empty(0, np.uint32), nowhere), b"", nowhere, nowhere)
    text = _EncodedTexts.of(texts)
    codes = np.frombuffer(text.raw, np.uint8)
    values = _letter_values(beyond_ascii=text.beyond_ascii).take(codes)
    is_letter = values != 0
    # The first and the last byte are separators.
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1])
    before, last = edges[::2], edges[1::2]
    forth, back = powers(_BASE, len(values))
    values *= forth[: len(values)]
    # Prefix sum at the word's end less that at its start, times the inverse power of the start:
    # the polynomial of the word's letters modulo 2**32.
    up_to = np.cumsum(values, dtype=np.uint32)
    hashes = up_to[last]
    hashes -= up_to[before]
    hashes *= back[before + 1]
    lengths = last - before
    chars = _char_counts(codes, before, last) if text.beyond_ascii else lengths
    is_word = (lengths > 1) & (chars <= MAX_WORD_CHARS)
    hashes, before, last = hashes[is_word], before[is_word], last[is_word]
    counts = np.diff(before.searchsorted(text.ends), prepend=0)
    return _LocatedWords(HashedTexts(_mix_bits(hashes), counts), text.raw, before + 1, last + 1)


class _EncodedTexts(NamedTuple):
    """Texts in UTF-8 with separators, and where each ends.

    With ``beyond_ascii`` all non-ASCII bytes are letters, else all separate.
    """

    raw: bytes
    ends: NDArray[np.intp]
    beyond_ascii: bool = False

    @classmethod
    def of(cls, texts: Sequence[str]) -> _EncodedTexts:
        together = "\n".join(texts)
        if len(together) <= MAX_TEXT_CHARS and has_only_ascii_letters(together):
            raw = f"\n{together}\n".encode("utf-8", _ENCODING_ERRORS)
            sizes = [
                len(text) if text.isascii() else len(text.encode("utf-8", _ENCODING_ERRORS))
                for text in texts
            ]
            return cls(raw, _end_offsets(sizes))
        # Texts with other letters are tokenised first.
        pieces = [_encode_text(text[:MAX_TEXT_CHARS]) for text in texts]
        return cls(
            b"\n".join((b"", *pieces, b"")), _end_offsets(map(len, pieces)), beyond_ascii=True
        )


def _end_offsets(sizes: Iterable[int]) -> NDArray[np.intp]:
    ends = np.array(list(sizes), np.intp)
    ends += 1
    return ends.cumsum(out=ends)


def _encode_text(text: str) -> bytes:
    if has_only_ascii_letters(text):
        return text.encode("ascii", "replace")
    return " ".join(tokenize(text)).encode("utf-8", _ENCODING_ERRORS)


def _char_counts(
    codes: NDArray[np.uint8], before: NDArray[np.intp], last: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the number of characters in each run of bytes."""
    begins = np.cumsum((codes & 0xC0) != 0x80)
    return np.asarray(begins[last] - begins[before])


def _mix_bits(hashes: WordHashes) -> WordHashes:
    """Spread the entropy to the high bits (after Appleby's MurmurHash3)."""
    hashes ^= hashes >> _HIGH_SHIFT
    hashes *= _MIX_FACTOR
    hashes ^= hashes >> _LOW_SHIFT
    return hashes * _BASE


@cache
def _letter_values(*, beyond_ascii: bool = True) -> WordHashes:
    """Return a number per byte value, the same for upper and lower case; 0 for separators."""
    numbers = np.array([xxh32_intdigest(bytes((code,))) for code in range(256)], np.uint32)
    for code in range(0x80):
        letter = chr(code)
        numbers[code] = numbers[ord(letter.lower())] if letter.isalpha() else 0
    if not beyond_ascii:
        numbers[0x80:] = 0
    return numbers


_SLOTS_PER_WORD = 8
_MIN_BITS = 4


class HashIndex:
    """Vectorised lookup of word hashes in a vocabulary: a hash table with open addressing.

    If two words share a hash, the later one may stand for both.
    """

    def __init__(self, hashes: WordHashes) -> None:
        """``hashes`` has shape (V,)."""
        self.hashes = hashes
        bits = max(_MIN_BITS, (_SLOTS_PER_WORD * len(hashes)).bit_length())
        self._shift = np.uint32(32 - bits)
        self._last = (1 << bits) - 1
        self._table = np.full(1 << bits, -1, np.int32)
        left = np.arange(len(hashes), dtype=np.int32)
        slots = self._slots(hashes)
        while len(left):
            free = self._table[slots] < 0
            self._table[slots[free]] = left[free]
            unplaced = self._table[slots] != left
            left, slots = left[unplaced], (slots[unplaced] + 1) & self._last

    def find(self, hashes: WordHashes) -> NDArray[np.int32]:
        """Return the index of each hash in the vocabulary, -1 if absent, shape (n,)."""
        slots = self._slots(hashes)
        found = self._table[slots]
        wrong = self._with_other_hash(found, hashes, np.arange(len(found)))
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & self._last
            found[wrong] = self._table[slots[wrong]]
            wrong = self._with_other_hash(found, hashes, wrong)
        return found

    def _slots(self, hashes: WordHashes) -> NDArray[np.intp]:
        return (hashes >> self._shift).astype(np.intp)

    def _with_other_hash(
        self, found: NDArray[np.int32], hashes: WordHashes, among: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return those positions of ``among`` whose slot holds another hash."""
        places_found = found[among]
        taken = places_found >= 0
        among, places_found = among[taken], places_found[taken]
        return np.asarray(among[self.hashes[places_found] != hashes[among]])


_Number = TypeVar("_Number", np.uint32, np.uint64)

_MIN_POWERS = 1 << 16


def powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    """Return at least ``count`` powers of an odd base, from 0, and of its modular inverse.

    Cached by size: the arrays take megabytes.
    """
    return _powers(base, max(_MIN_POWERS, 1 << (count - 1).bit_length()))


@cache
def _powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    inverse = type(base)(pow(int(base), -1, 1 << 8 * base.nbytes))
    return _cumulative_powers(base, count), _cumulative_powers(inverse, count)


def _cumulative_powers(factor: _Number, count: int) -> NDArray[_Number]:
    factors = np.full(count, factor)
    factors[0] = 1
    return np.cumprod(factors, dtype=type(factor))
