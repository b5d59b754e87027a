"""The samples of a topic: good and other samples, each URL once.

The general background is shipped: samples of unrelated text in more than fifty languages, each a
bag of about a hundred words. With it a topic can be trained from good samples alone, and a page in
another language is not mistaken for one of them. ``training/background.py`` builds the file;
``training/README.md`` lists its sources.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from importlib.resources import files

import msgspec
import xxhash

from focused.directory import DirectoryEntry, content_url, is_in_category
from focused.errors import TrainingError
from focused.text import hash_fraction

_MAX_KNOWN_CATEGORIES = 2_000


def _is_good(category: str, good_prefixes: Sequence[str]) -> bool:
    return any(is_in_category(category, good) for good in good_prefixes)


def _empty_category_error(prefix: str, known: Sequence[str]) -> TrainingError:
    return TrainingError(
        f"training.good: {prefix!r} has no sample in the directory; "
        f"its categories are {_format_names(known)}"
    )


def _format_names(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A directory's samples, each URL once; ``good[i]`` is the class of entry i.

    ``conflicts`` counts URLs listed both in a good and in another category (they count as
    good), ``repeats`` dropped duplicate lines, ``left_out`` samples not drawn, ``between``
    samples of neither class. ``messages`` describe unusable records.
    """

    entries: tuple[DirectoryEntry, ...]
    good: tuple[bool, ...]
    conflicts: int = 0
    repeats: int = 0
    left_out: int = 0
    between: int = 0
    messages: tuple[str, ...] = ()


def make_sample_set(
    entries: Iterable[DirectoryEntry],
    good_prefixes: Sequence[str],
    *,
    limit: int | None = None,
    linked: frozenset[str] = frozenset(),
    seed: int = 0,
    allow_no_good: bool = False,
) -> SampleSet:
    """Assign each URL to one class: good if any of its lines is good.

    A URL keeps its first line of that class. ``limit`` bounds the number of URLs per class; they
    are sampled by hash while ``entries`` stream by. Samples in or below ``linked`` categories
    that are not good belong to neither class. Raises :class:`TrainingError` for a prefix without
    samples, with existing names, unless ``allow_no_good``.
    """
    draw = HashSampler(limit, seed)
    unseen, known = set(good_prefixes), set[str]()
    between = 0
    for entry in entries:
        category = entry.category
        if len(known) < _MAX_KNOWN_CATEGORIES:
            known.add(category)
        good = _is_good(category, good_prefixes)
        if good and unseen:
            unseen -= {prefix for prefix in unseen if is_in_category(category, prefix)}
        if not good and linked and _is_in_any(category, linked):
            between += 1
        else:
            draw.add(entry, good)
    for prefix in good_prefixes:
        if prefix in unseen and not allow_no_good:
            raise _empty_category_error(prefix, sorted(known))
    kept = draw.kept()
    return SampleSet(
        entries=tuple(entry for entry, _ in kept),
        good=tuple(good for _, good in kept),
        conflicts=draw.conflicts,
        repeats=draw.repeats,
        left_out=draw.left_out,
        between=between,
    )


def _is_in_any(category: str, among: frozenset[str]) -> bool:
    while category:
        if category in among:
            return True
        category = category.rpartition("/")[0]
    return False


class _ClassSample:
    """The URLs of one class with the smallest hashes, with position and entry."""

    def __init__(self, limit: int | None, seed: int) -> None:
        self._limit = limit
        self._seed = seed
        self._largest: list[tuple[float, str]] = []
        self.samples: dict[str, tuple[int, DirectoryEntry]] = {}

    def add(self, position: int, entry: DirectoryEntry) -> str | None:
        """Add an entry; return the URL it displaces, which may be its own."""
        self.samples[entry.url] = position, entry
        if self._limit is None:
            return None
        heappush(self._largest, (-hash_fraction(entry.url, self._seed), entry.url))
        while len(self.samples) > self._limit:
            url = heappop(self._largest)[1]
            if self.samples.pop(url, None) is not None:
                return url
        return None


class HashSampler:
    """Samples at most ``limit`` URLs per class by hash; a URL in both classes is good.

    The sample is uniform over distinct URLs and independent of their order and repetitions.
    ``repeats`` counts lines with a known URL, ``left_out`` those not drawn. Hashes of all good
    URLs are kept, so that they do not reappear as others.
    """

    def __init__(self, limit: int | None, seed: int) -> None:
        self._good = _ClassSample(limit, seed)
        self._other = _ClassSample(limit, seed)
        self._good_left_out: set[int] = set()
        self._on_both: set[str] = set()
        self._entries = 0
        self.repeats = 0
        self.left_out = 0

    @property
    def conflicts(self) -> int:
        """Number of sampled URLs listed in both classes."""
        return len(self._on_both)

    def add(self, entry: DirectoryEntry, good: bool) -> None:
        """Add one entry to its class, or drop it."""
        position, url = self._entries, entry.url
        self._entries += 1
        if url in self._good.samples:
            self.repeats += 1
            if not good:
                self._on_both.add(url)
        elif self._good_left_out and _url_hash(url) in self._good_left_out:
            self.left_out += 1
        elif good:
            earlier = self._other.samples.pop(url, None)
            if earlier is not None:
                position = earlier[0]
                self.repeats += 1
                self._on_both.add(url)
            self._left_out_good(self._good.add(position, entry))
        elif url in self._other.samples:
            self.repeats += 1
        else:
            self.left_out += self._other.add(position, entry) is not None

    def kept(self) -> list[tuple[DirectoryEntry, bool]]:
        """Return the sample in the order of the URLs, with its class."""
        samples = [
            (position, entry, good)
            for side, good in ((self._good, True), (self._other, False))
            for position, entry in side.samples.values()
        ]
        samples.sort(key=lambda sample: sample[0])
        return [(entry, good) for _, entry, good in samples]

    def _left_out_good(self, url: str | None) -> None:
        if url is not None:
            self.left_out += 1
            self._on_both.discard(url)
            self._good_left_out.add(_url_hash(url))


def _url_hash(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode())


BACKGROUND_CATEGORY = "Background"
"""The parent category: ``Background/de`` is the German part."""


class _BackgroundLine(msgspec.Struct):
    language: str
    source: str
    text: str


def background_samples(number: int | None = None, seed: int = 0) -> tuple[DirectoryEntry, ...]:
    """Return up to ``number`` background samples (None: all), with text, not to be fetched.

    A deterministic hash sample: fewer samples with the same seed are the first of more. Half of
    them are English. Words are in alphabetical order.
    """
    lines = _load_lines()
    chosen = sorted(lines, key=lambda line: hash_fraction(line.text, seed))[:number]
    return tuple(
        DirectoryEntry(
            f"{BACKGROUND_CATEGORY}/{line.language}",
            content_url(line.text.encode()),
            text=line.text,
        )
        for line in chosen
    )


@cache
def _load_lines() -> tuple[_BackgroundLine, ...]:
    packed = files(__package__).joinpath("data", "background.jsonl.xz").read_bytes()
    decoder = msgspec.json.Decoder(_BackgroundLine)
    return tuple(decoder.decode_lines(lzma.decompress(packed)))


def is_background(category: str) -> bool:
    """Whether ``category`` is part of the background."""
    return is_in_category(category, BACKGROUND_CATEGORY)
