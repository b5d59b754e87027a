"""Site novelty: whether a site's pages still bring new content.

Of the words that a written text uses, about half occur once, however long the text is (Baayen 2001,
"Word frequency distributions"), and the share of such words is the rate at which new ones come
(Good 1953; Heaps 1978 for vocabularies). So it is with the words, and the pairs of adjacent words,
that occur on one page of a site only. Text that a program puts together of other texts, or of lists
of words, has a finite source: once that is used up, nothing occurs on one page only. Random letters
never repeat.

A site keeps a sample of its words and pairs whose hashes are below a limit, which is halved when
the sample is full (Gibbons 2001, "Distinct sampling for highly-accurate answers to distinct values
queries and event reports").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from focused.storage.tables import Tables
from focused.text.shingles import unique_hashes
from focused.text.word_hashes import WordHashes
from focused.web.host_names import site_key

MIN_PAGES = 50
"""Pages of a site from which its novelty is known."""
MIN_WORDS = 30
"""Shorter pages count for nothing."""
ONCE_WORDS = 0.15, 0.25
ONCE_PAIRS = 0.3, 0.45
"""The shares of words and of pairs on one page only at which a site's novelty is 0 and 1.

Of 480 sites and parts of sites of the recorded webs with 50 pages or more, 1% have less than 0.27
and 0.43, and none of less than 10,000 pages less than 0.20 and 0.32.
"""
RANDOM_WORDS = 0.92
MIN_RANDOM_PAGES = 100
"""From so many pages on, a share of words on one page only above it means random letters.

The highest share of those sites after 100 pages is 0.85.
"""
MAX_SAMPLE = 512

_START_BITS = 29  # one hash in eight: a page adds some forty words and pairs
_ROW = struct.Struct("<HHHBB")  # pages, words, pairs, and the bits of both limits
_HASH_BYTES = 4
_TABLE = "site_novelty"
_MAX_COUNTED_PAGES = 0xFFFF
_PAIR_FACTOR, _MIX_FACTOR = np.uint32(0x85EBCA6B), np.uint32(0x9E3779B1)
_MIX_SHIFTS = np.uint32(16), np.uint32(15)


@dataclass(slots=True)
class DistinctSample:
    """A sample of a site's words: those whose hash is below ``2 ** bits``.

    ``hashes``, shape (n,), n at most :data:`MAX_SAMPLE`, ascending; ``repeated``, shape (n,), says
    which occur on several pages.
    """

    hashes: WordHashes
    repeated: np.ndarray[tuple[int], np.dtype[np.bool_]]
    bits: int = _START_BITS

    @classmethod
    def empty(cls) -> DistinctSample:
        """Return the sample of no words."""
        return cls(np.empty(0, np.uint32), np.empty(0, np.bool_))

    @property
    def once(self) -> float:
        """The share in [0, 1] of the words that occur on one page only."""
        return 1.0 - float(self.repeated.mean()) if len(self.hashes) else 1.0

    def add(self, words: WordHashes) -> bool:
        """Add the words of a page; return whether the sample changed."""
        page = unique_hashes(np.sort(words[words < np.uint32(1 << self.bits)]))
        places = self.hashes.searchsorted(page)
        known = places < len(self.hashes)
        known[known] = self.hashes[places[known]] == page[known]
        again = places[known]
        changed = not known.all() or not self.repeated[again].all()
        self.repeated[again] = True
        new = ~known
        self.hashes = np.insert(self.hashes, places[new], page[new])
        self.repeated = np.insert(self.repeated, places[new], False)
        while len(self.hashes) > MAX_SAMPLE:
            self.bits -= 1
            kept = self.hashes.searchsorted(np.uint32(1 << self.bits))
            self.hashes, self.repeated = self.hashes[:kept], self.repeated[:kept]
        return changed

    def packed(self) -> bytes:
        """Encode the sample without its size and limit."""
        return self.hashes.astype("<u4").tobytes() + np.packbits(self.repeated).tobytes()

    @classmethod
    def unpack(cls, raw: bytes, begin: int, size: int, bits: int) -> tuple[DistinctSample, int]:
        """Decode a sample of ``size`` words; return it and where it ends."""
        middle = begin + size * _HASH_BYTES
        end = middle + (size + 7) // 8
        hashes = np.frombuffer(raw, "<u4", size, begin).astype(np.uint32)
        flags = np.frombuffer(raw, np.uint8, end - middle, middle)
        repeated = np.unpackbits(flags, count=size).astype(np.bool_)
        return cls(hashes, repeated, bits), end


@dataclass(slots=True)
class _SiteContent:
    """The pages of a site that were read, and samples of their words and pairs of words."""

    pages: int
    words: DistinctSample
    pairs: DistinctSample

    @classmethod
    def empty(cls) -> _SiteContent:
        return cls(0, DistinctSample.empty(), DistinctSample.empty())

    def packed(self) -> bytes:
        words, pairs = self.words, self.pairs
        sizes = len(words.hashes), len(pairs.hashes)
        head = _ROW.pack(self.pages, *sizes, words.bits, pairs.bits)
        return head + words.packed() + pairs.packed()

    @classmethod
    def unpack(cls, raw: bytes) -> _SiteContent:
        pages, n_words, n_pairs, word_bits, pair_bits = _ROW.unpack_from(raw)
        words, end = DistinctSample.unpack(raw, _ROW.size, n_words, word_bits)
        pairs, _ = DistinctSample.unpack(raw, end, n_pairs, pair_bits)
        return cls(pages, words, pairs)

    @property
    def novelty(self) -> float:
        if self.pages < MIN_PAGES:
            return 1.0
        of_words = self.words.once
        if self.pages >= MIN_RANDOM_PAGES and of_words > RANDOM_WORDS:
            return 0.0
        return min(_between(of_words, ONCE_WORDS), _between(self.pairs.once, ONCE_PAIRS))


class SiteNovelty:
    """The content of each site's pages on topic; persistent, the caller commits.

    A site is a registered domain, with a row of at most 4.3 kB. The crawl's memory holds none.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def novelty(self, url: str) -> float:
        """Return the novelty in [0, 1] of the site of ``url``: 1 like a written site, 0 none."""
        raw = self._tables.get(_TABLE, site_key(url))
        # Most sites have few pages: their samples stay packed.
        if raw is None or _ROW.unpack_from(raw)[0] < MIN_PAGES:
            return 1.0
        return _SiteContent.unpack(raw).novelty

    def learn(self, url: str, words: WordHashes) -> float:
        """Add a page's words, in their order; return the site's novelty."""
        if len(words) < MIN_WORDS:
            return self.novelty(url)
        key = site_key(url)
        raw = self._tables.get(_TABLE, key)
        content = _SiteContent.empty() if raw is None else _SiteContent.unpack(raw)
        changed = content.words.add(words)
        changed |= content.pairs.add(_pair_hashes(words))
        if changed or content.pages < MIN_RANDOM_PAGES:
            content.pages = min(content.pages + 1, _MAX_COUNTED_PAGES)
            self._tables.put(_TABLE, key, content.packed())
        return content.novelty


def _pair_hashes(words: WordHashes) -> WordHashes:
    pairs = words[:-1] * _PAIR_FACTOR
    pairs ^= words[1:]
    pairs ^= pairs >> _MIX_SHIFTS[0]
    pairs *= _MIX_FACTOR
    pairs ^= pairs >> _MIX_SHIFTS[1]
    return pairs


def _between(share: float, limits: tuple[float, float]) -> float:
    low, high = limits
    return min(max((share - low) / (high - low), 0.0), 1.0)
