"""The words of many texts as numbers, by arithmetic on arrays: no word is made a string.

The words are those of :func:`focused.text.tokens.tokenize`, each known by 32 bits of it: of
200,000 words five pairs or so share a number, which tells less than a misspelling.
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
"""So much of one text counts."""

_MAX_BYTES_PER_CHAR = 4  # bytes a character at most
_MAX_BATCH_BYTES = 1 << 20
_BASE = np.uint32(0x9E3779B1)
_SPREAD = np.uint32(0x85EBCA6B)
_ENCODING_ERRORS = "surrogatepass"
_HIGH, _LOW = np.uint32(15), np.uint32(13)


class HashedTexts(NamedTuple):
    """The words of m texts one after the other.

    ``hashes`` has shape (n,); ``lengths``, shape (m,), tells how many are of each text.
    """

    hashes: WordHashes
    lengths: NDArray[np.intp]

    @property
    def owners(self) -> NDArray[np.intp]:
        """Whose text each word is of, shape (n,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def slice_texts(self, first: int, end: int) -> HashedTexts:
        """Those of the texts from ``first`` to before ``end``."""
        begins, ends = (int(self.lengths[:place].sum()) for place in (first, end))
        return HashedTexts(self.hashes[begins:ends], self.lengths[first:end])

    def truncate(self, most: NDArray[np.intp]) -> HashedTexts:
        """The first words of each text, ``most[i]`` of text i."""
        if (self.lengths <= most).all():
            return self
        begins = self.lengths.cumsum() - self.lengths
        left = np.arange(len(self.hashes)) < np.repeat(begins + most, self.lengths)
        return HashedTexts(self.hashes[left], np.minimum(self.lengths, most))


class LazyHashedTexts(Sequence[str]):
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
    def words(self) -> HashedTexts:
        """The words of all texts."""
        return hash_texts(self._texts)


def hash_texts_once(texts: Sequence[str]) -> HashedTexts:
    """The words of texts, which may know them already."""
    return texts.words if isinstance(texts, LazyHashedTexts) else hash_texts(texts)


def hash_texts(texts: Sequence[str]) -> HashedTexts:
    """The hashes of the words of each text, in order, repeats kept."""
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
    return HashedTexts(*map(np.concatenate, zip(*parts, strict=True)))


def hash_short_text(text: str) -> list[int]:
    """:func:`hash_texts` of one short text, for which arrays are not worth their making."""
    return [hash_word(word) for word in tokenize(text)]


@lru_cache(65_536)
def hash_word(word: str) -> int:
    """The hash of one word, as :func:`focused.text.tokens.tokenize` gives it."""
    values = _letter_values().take(np.frombuffer(word.encode("utf-8", _ENCODING_ERRORS), np.uint8))
    values *= powers(_BASE, len(values))[0][: len(values)]
    return int(_mix_bits(values.sum(dtype=np.uint32, keepdims=True))[0])


def _hash_batch(texts: Sequence[str]) -> HashedTexts:
    if not texts:
        return HashedTexts(np.empty(0, np.uint32), np.empty(0, np.intp))
    text = _EncodedTexts.of(texts)
    codes = np.frombuffer(text.raw, np.uint8)
    values = _letter_values(beyond_ascii=text.beyond_ascii).take(codes)
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
    chars = _char_counts(codes, before, last) if text.beyond_ascii else lengths
    is_word = (lengths > 1) & (chars <= MAX_WORD_CHARS)
    hashes, before = hashes[is_word], before[is_word]
    return HashedTexts(_mix_bits(hashes), np.diff(before.searchsorted(text.ends), prepend=0))


class _EncodedTexts(NamedTuple):
    """Texts in UTF-8 between separators, and where each ends.

    ``beyond_ascii`` tells that all that is beyond ASCII is letters; else all that separates.
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
        # Of a text with other letters its words are written.
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
    """How many characters each run of bytes has."""
    begins = np.cumsum((codes & 0xC0) != 0x80)
    return np.asarray(begins[last] - begins[before])


def _mix_bits(hashes: WordHashes) -> WordHashes:
    """Hashes whose high bits depend on all of theirs (after Appleby's MurmurHash3)."""
    hashes ^= hashes >> _HIGH
    hashes *= _SPREAD
    hashes ^= hashes >> _LOW
    return hashes * _BASE


@cache
def _letter_values(*, beyond_ascii: bool = True) -> WordHashes:
    """A number for each byte of a word, upper and lower case alike, 0 for what separates."""
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
    """Places of hashes: a table with open addressing, mostly empty.

    Of two words with one hash the later one may stand for both.
    """

    def __init__(self, hashes: WordHashes) -> None:
        """``hashes`` has shape (V,)."""
        self._hashes = hashes
        bits = max(_MIN_BITS, (_SLOTS_PER_WORD * len(hashes)).bit_length())
        self._shift = np.uint32(32 - bits)
        self._last = (1 << bits) - 1
        self._table = np.full(1 << bits, -1, np.int32)
        left = np.arange(len(hashes), dtype=np.int32)
        slots = self._slots(hashes)
        while len(left):
            free = self._table[slots] < 0
            self._table[slots[free]] = left[free]
            homeless = self._table[slots] != left
            left, slots = left[homeless], (slots[homeless] + 1) & self._last

    def places(self, hashes: WordHashes) -> NDArray[np.int32]:
        """The place of each in the vocabulary, -1 for those that are not in it, shape (n,)."""
        slots = self._slots(hashes)
        found = self._table[slots]
        wrong = self._others(found, hashes, np.arange(len(found)))
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & self._last
            found[wrong] = self._table[slots[wrong]]
            wrong = self._others(found, hashes, wrong)
        return found

    def _slots(self, hashes: WordHashes) -> NDArray[np.intp]:
        return (hashes >> self._shift).astype(np.intp)

    def _others(
        self, found: NDArray[np.int32], hashes: WordHashes, among: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Those of the places in ``among`` whose slot holds another hash."""
        told = found[among]
        taken = told >= 0
        among, told = among[taken], told[taken]
        return np.asarray(among[self._hashes[told] != hashes[among]])


_Number = TypeVar("_Number", np.uint32, np.uint64)

_FEWEST = 1 << 16


def powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    """The powers of an odd base from 0 on, and of its inverse: ``count`` at least of each."""
    return _powers(base, max(_FEWEST, 1 << (count - 1).bit_length()))


@cache
def _powers(base: _Number, count: int) -> tuple[NDArray[_Number], NDArray[_Number]]:
    inverse = type(base)(pow(int(base), -1, 1 << 8 * base.nbytes))
    return _of(base, count), _of(inverse, count)


def _of(factor: _Number, count: int) -> NDArray[_Number]:
    factors = np.full(count, factor)
    factors[0] = 1
    return np.cumprod(factors, dtype=type(factor))
