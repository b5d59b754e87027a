"""Change detection: whether a page's content differs from the stored version, and by how much.

A version is stored as a :class:`VersionSignature` of some 80 bytes. It ignores declared navigation
and advertising (:func:`~focused.web.html.text_blocks.text_blocks`), dates, times, counters, and the
host's boilerplate: blocks that occur on three pages or more
(:class:`HostBoilerplate`). Boilerplate is learned while pages are stored, so that old signatures
contain blocks that are boilerplate today. A signature's block hashes are therefore summed, and a
sum can be corrected for blocks that were learned later.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
import numpy as np
import xxhash

from focused.archive.page_history import VisitResult
from focused.text.shingles import shingles

MAX_BOILERPLATE_BLOCKS = 400
MAX_CANDIDATE_BLOCKS = 800
MIN_BOILERPLATE_PAGES = 3
"""A block is boilerplate from this number of pages on."""

MIN_BOILERPLATE_WORDS = 3
"""Shorter blocks are boilerplate only when they are new to the host, or gone from all its pages.

Many pages share a status such as "open" or "sold out", and its change is content.
"""

SENTENCE_WORDS = 8
"""Blocks with as many words are sentences, whose numbers are content."""

SKETCH_BINS = 40

_MASK = (1 << 64) - 1
_UNUSED_FOR_PAGES = 200
_BLOCKS_FROM_START, _BLOCKS_FROM_END = 200, 100
_MAX_CORRECTED = 2
_MAX_CAME, _MAX_GONE = 24, 60


@dataclass(frozen=True, slots=True)
class ContentChange:
    """The result of a comparison.

    ``kind`` is ``IDENTICAL``, ``COSMETIC`` or ``CHANGED``. ``size`` estimates the share of the
    words of both versions that were added or removed, in [0, 1]; 0 unless the kind is ``CHANGED``.
    ``only_numbers``: the words are the same. ``is_soft_404``: the page says that it is missing.
    """

    kind: VisitResult
    size: float = 0.0
    only_numbers: bool = False
    is_soft_404: bool = False


class VersionSignature(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a version to compare it with later ones; some 80 bytes.

    ``fingerprint`` is the beginning of the page's content fingerprint. ``blocks`` and ``numbers``
    are sums of the distinct block hashes modulo 2**64, without and with numbers. ``words`` counts
    all words. ``sketch`` samples the shingles. ``clock`` is that of the host's boilerplate.
    """

    fingerprint: bytes
    blocks: int
    numbers: int
    words: int
    sketch: bytes
    clock: int


@dataclass(frozen=True, slots=True)
class VersionBlock:
    """A block without dates, times and counters.

    ``words`` are in lower case. ``digest`` hashes them, ``number_digest`` the numbers too; 0
    without words or numbers.
    """

    words: str
    digest: int
    number_digest: int


@dataclass(frozen=True, slots=True)
class VersionText:
    """The text of a version that :func:`sign_version` and :func:`detect_change` compare."""

    fingerprint: bytes
    blocks: tuple[VersionBlock, ...]

    @property
    def words(self) -> int:
        """The number of words."""
        return sum(block.words.count(" ") + 1 for block in self.blocks if block.words)


_FINGERPRINT_BYTES = 8


def read_version(fingerprint: bytes, title: str, blocks: Sequence[str]) -> VersionText:
    """Prepare a page for comparison.

    ``fingerprint`` is :func:`~focused.text.content_signatures.content_fingerprint` of the page,
    ``blocks`` are :func:`~focused.web.html.text_blocks.text_blocks`.
    """
    read = [_read_block(text) for text in (title, *blocks)]
    kept = tuple(block for block in read if block.digest or block.number_digest)
    return VersionText(fingerprint[:_FINGERPRINT_BYTES], kept)


class _Candidate(msgspec.Struct, array_like=True, gc=False):
    """A block that was seen on one or two pages, by their hashes; ``seen`` is the clock then."""

    seen: int
    first_page: int
    second_page: int = 0


class _BoilerplateBlock(msgspec.Struct, array_like=True, gc=False):
    """A block that was seen on three pages, and the clock when it was first seen, learned, used."""

    first_seen: int
    learned: int
    last_seen: int
    is_short: bool

    def is_left_out(self, clock: int) -> bool:
        """Whether signatures made at ``clock`` don't contain the block."""
        return not self.is_short and self.learned <= clock


class PageBlocks(msgspec.Struct, frozen=True, array_like=True):
    """What a host's boilerplate learns from a fetched page; 8 bytes a block, at most 300 blocks.

    ``page`` is a hash of the URL. ``long_digests`` and ``short_digests`` are the distinct block
    hashes. ``differs``: the fetch was a revisit that found another version; ``only_numbers`` as in
    :class:`ContentChange`.
    """

    page: int
    long_digests: bytes
    short_digests: bytes
    differs: bool
    only_numbers: bool

    @property
    def blocks(self) -> Sequence[int]:
        """The hashes of the longer blocks."""
        return array("Q", self.long_digests)

    @property
    def short_blocks(self) -> Sequence[int]:
        """The hashes of the blocks with fewer than :data:`MIN_BOILERPLATE_WORDS` words."""
        return array("Q", self.short_digests)


class HostBoilerplate(msgspec.Struct, array_like=True):
    """Blocks that a host's pages share, and how often only numbers change; at most 30 kB.

    ``clock`` counts the recorded pages.
    """

    clock: int = 0
    known: dict[int, _BoilerplateBlock] = {}
    candidates: dict[int, _Candidate] = {}
    visits: float = 0.0
    number_changes: float = 0.0

    def learn(self, page: PageBlocks) -> None:
        """Learn from the blocks of a fetched page."""
        self.clock += 1
        for digest in page.short_blocks:
            self._see(digest, page.page, is_short=True)
        for digest in page.blocks:
            self._see(digest, page.page, is_short=False)
        while len(self.candidates) > MAX_CANDIDATE_BLOCKS:
            del self.candidates[next(iter(self.candidates))]
        if page.differs:
            self.visits = 0.95 * self.visits + 1.0
            self.number_changes = 0.95 * self.number_changes + page.only_numbers

    @property
    def numbers_are_counters(self) -> bool:
        """Whether most differences between versions are of numbers only."""
        return self.number_changes + 0.5 > 0.5 * (self.visits + 2.0)

    def _see(self, digest: int, page: int, *, is_short: bool) -> None:
        known = self.known.get(digest)
        if known is not None:
            known.last_seen = self.clock
            return
        candidate = self.candidates.pop(digest, None) or _Candidate(self.clock, page)
        if page not in (candidate.first_page, candidate.second_page):
            if candidate.second_page:
                self._learn(digest, candidate, is_short=is_short)
                return
            candidate.second_page = page
        self.candidates[digest] = candidate  # now the last to be dropped

    def _learn(self, digest: int, candidate: _Candidate, *, is_short: bool) -> None:
        if len(self.known) >= MAX_BOILERPLATE_BLOCKS:
            oldest = min(self.known, key=lambda each: self.known[each].last_seen)
            if self.clock - self.known[oldest].last_seen < _UNUSED_FOR_PAGES:
                return
            del self.known[oldest]
        self.known[digest] = _BoilerplateBlock(candidate.seen, self.clock, self.clock, is_short)


def page_blocks(url: str, version: VersionText, change: ContentChange | None = None) -> PageBlocks:
    """Return what a host's boilerplate learns from a fetched page.

    ``change`` is the result of :func:`detect_change` if the fetch was a revisit.
    """
    blocks = version.blocks
    if len(blocks) > _BLOCKS_FROM_START + _BLOCKS_FROM_END:
        blocks = (*blocks[:_BLOCKS_FROM_START], *blocks[-_BLOCKS_FROM_END:])
    long, short = array("Q"), array("Q")
    for digest, words in {each.digest: each.words for each in blocks if each.digest}.items():
        is_short = words.count(" ") + 1 < MIN_BOILERPLATE_WORDS
        (short if is_short else long).append(digest)
    return PageBlocks(
        xxhash.xxh32_intdigest(url.encode("utf-8", "replace")) or 1,
        long.tobytes(),
        short.tobytes(),
        change is not None and change.kind is not VisitResult.IDENTICAL,
        change is not None and change.only_numbers,
    )


def sign_version(version: VersionText, boilerplate: HostBoilerplate) -> VersionSignature:
    """Return the signature of a version.

    The boilerplate learns from pages of the host first, and not from other responses.
    """
    own = _own_blocks(version, boilerplate, boilerplate.clock)
    return VersionSignature(
        version.fingerprint,
        _sum(block.digest for block in own),
        _sum(block.number_digest for block in own),
        version.words,
        _sketch(own),
        boilerplate.clock,
    )


def detect_change(
    before: VersionSignature, now: VersionText, boilerplate: HostBoilerplate
) -> ContentChange:
    """Compare a page with the stored version of it."""
    if before.fingerprint == now.fingerprint:
        return ContentChange(VisitResult.IDENTICAL)
    # Blocks that were boilerplate when the signature was made are not in it. Of those that were
    # learned since, it has those that the page had: all, or all but those first seen since.
    own = _own_blocks(now, boilerplate, before.clock)
    older = [
        block
        for block in own
        if (found := boilerplate.known.get(block.digest)) is None
        or found.first_seen <= before.clock
    ]
    for blocks in (older, own):
        difference = (before.blocks - _sum(block.digest for block in blocks)) & _MASK
        if difference == 0:
            return _compare_numbers(before, now, blocks, boilerplate)
        if _is_boilerplate_difference(difference, before.clock, blocks, boilerplate):
            return ContentChange(VisitResult.COSMETIC)
    return ContentChange(VisitResult.CHANGED, _size(before, now, older))


def _own_blocks(
    version: VersionText, boilerplate: HostBoilerplate, clock: int
) -> list[VersionBlock]:
    """Return the blocks that a signature made at ``clock`` contains."""
    known = boilerplate.known
    return [
        block
        for block in version.blocks
        if (found := known.get(block.digest)) is None or not found.is_left_out(clock)
    ]


def _compare_numbers(
    before: VersionSignature,
    now: VersionText,
    own: Sequence[VersionBlock],
    boilerplate: HostBoilerplate,
) -> ContentChange:
    """Compare versions with the same words."""
    if before.numbers == _sum(block.number_digest for block in own):
        return ContentChange(VisitResult.COSMETIC)
    if boilerplate.numbers_are_counters:
        return ContentChange(VisitResult.COSMETIC, only_numbers=True)
    size = 1.0 / max(1, before.words + now.words)
    return ContentChange(VisitResult.CHANGED, size, only_numbers=True)


def _is_boilerplate_difference(
    difference: int, clock: int, own: Sequence[VersionBlock], boilerplate: HostBoilerplate
) -> bool:
    """Whether at most two blocks of boilerplate came, and two or one template's blocks went."""
    here = {block.digest for block in own}
    came, gone = [], []
    for digest, known in boilerplate.known.items():  # the last learned last
        if digest in here:
            if known.learned > clock and not known.is_short:
                came.append(digest)
        elif known.last_seen + MIN_BOILERPLATE_PAGES <= boilerplate.clock or (
            known.learned > clock and not known.is_short
        ):
            gone.append(digest)
    came, gone = came[-_MAX_CAME:], gone[-_MAX_GONE:]
    lost = {0, *gone, *((one + other) & _MASK for one, other in combinations(gone, 2))}
    # A template brings several blocks at once.
    together: dict[tuple[int, int], int] = {}
    for digest in gone:
        found = boilerplate.known[digest]
        group = found.first_seen, found.learned
        together[group] = (together.get(group, 0) + digest) & _MASK
    lost.update(together.values())
    return any(
        ((difference + sum(some)) & _MASK) in lost
        for number in range(_MAX_CORRECTED + 1)
        for some in combinations(came, number)
    )


def _size(before: VersionSignature, now: VersionText, own: Sequence[VersionBlock]) -> float:
    words = max(1, before.words + now.words)
    at_least = max(1, abs(before.words - now.words)) / words
    resemblance = _resemblance(before.sketch, _sketch(own))
    share = 0.0 if resemblance is None else (1.0 - resemblance) / (1.0 + resemblance)
    return min(1.0, max(share, at_least))


def _sum(digests: Iterable[int]) -> int:
    # Each block counts once: tables of contents come and go with templates.
    return sum(set(digests)) & _MASK


def _sketch(blocks: Sequence[VersionBlock]) -> bytes:
    """Sample shingles: eight bits of the smallest hash in each of 40 ranges; 0 for none.

    One permutation hashing (Li, Owen and Zhang 2012) with b-bit values (Li and Koenig 2010).
    """
    hashes = shingles(" ".join(block.words for block in blocks if block.words))
    bins = ((hashes >> np.uint64(32)) * np.uint64(SKETCH_BINS)) >> np.uint64(32)
    used, first = np.unique(bins, return_index=True)
    sketch = np.zeros(SKETCH_BINS, np.uint8)
    sketch[used.astype(np.intp)] = np.maximum(hashes[first] & np.uint64(0xFF), np.uint64(1))
    return sketch.tobytes()


def _resemblance(one: bytes, other: bytes) -> float | None:
    """Return the estimated Jaccard similarity of the shingles; None without any."""
    mine, theirs = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    used = (mine > 0) | (theirs > 0)
    compared = int(used.sum())
    if not compared:
        return None
    equal = int((mine[used] == theirs[used]).sum()) / compared
    by_chance = 1.0 / 255.0
    return max(0.0, (equal - by_chance) / (1.0 - by_chance))


_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_YEAR = r"(?:19|20)\d\d"
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"  # English; see below
_NAME = r"[^\W\d_]{3,12}"
_COUNTED = (
    r"(?:views?|visitors?|visits?|hits?|reads?|downloads?|comments?|repl(?:y|ies)|likes?|shares?"
    r"|votes?|points?|users?|members?|guests?|followers?|subscribers?|online|times)"
)
# Dates in any language that writes day, month name and year in this or the reverse order. Masked in
# lower case. Repetitions are bounded, so that matching takes linear time.
_VOLATILE = re.compile(
    rf"""
    (?:\b{_NAME},?\s)?\b{_MONTHS}\s\d{{1,2}}\s\d{{1,2}}:\d\d:\d\d(?:\s[a-z]{{2,5}})?\s{_YEAR}\b
    | \b{_YEAR}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:t(?=\d))?
    | \b\d{{1,2}}[-/.]\d{{1,2}}[-/.]{_YEAR}\b
    | \b\d{{1,2}}/\d{{1,2}}/\d\d\b
    | \d{{1,2}}:\d\d(?::\d\d(?:\.\d{{1,9}})?)?(?:\s?[ap]\.?m\b\.?)?
      (?:\s?(?:utc|gmt|z\b|[a-z]{{1,3}}t\b))?(?:\s?[+-]\d\d:?\d\d\b)?
    | {_YEAR}\s?年\s?\d{{1,2}}\s?月(?:\s?\d{{1,2}}\s?日)?
    | (?:\b{_NAME},\s)?\b\d{{1,2}}(?:st|nd|rd|th|\.)?[\s-](?:de\s|of\s)?
      {_NAME}\.?,?[\s-](?:de\s)?{_YEAR}\b
    | (?:\b{_NAME},\s)?\b{_NAME}\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s{_YEAR}\b
    | \b{_MONTHS}\.?\s(?:\d{{1,2}}(?:st|nd|rd|th)?|{_YEAR})\b
    | (?:©|\(c\)|\bcopyright)\s{{0,3}}(?:©\s?|\(c\)\s?)?{_YEAR}(?:\s?[-–,]\s?{_YEAR})?
    | \b(?:\d{{1,4}}|an?)\s?(?:sec|min|hour|hr|day|week|month|year)[a-z]{{0,5}}\sago\b
    | \b\d[\d.,]{{0,12}}k?\s{_COUNTED}\b
    | \b{_COUNTED}(?:\s(?:number|no\.?|count))?\s?[:#]?\s?\d[\d.,]{{0,12}}
    """,
    re.VERBOSE,
)


def _read_block(text: str) -> VersionBlock:
    text = text.lower()
    if _DIGIT.search(text) is None and " ago" not in text:
        words = " ".join(_LETTERS.findall(text))
        return VersionBlock(words, _digest(words), 0)
    text = _VOLATILE.sub(" ", text)
    found = _WORD.findall(text)
    if len(found) >= SENTENCE_WORDS:
        words = " ".join(found)
        return VersionBlock(words, _digest(words), 0)
    words = " ".join(_LETTERS.findall(text))
    numbers = " ".join(_NUMBER.findall(text))
    return VersionBlock(words, _digest(words), _digest(f"{words} {numbers}") if numbers else 0)


def _digest(words: str) -> int:
    return xxhash.xxh3_64_intdigest(words.encode("utf-8", "replace")) if words else 0
