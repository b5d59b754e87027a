"""Similarity of recorded pages by their words alone, without the crawl's sketches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duplicates import page_of

from focused.recorded_web.recorded_web import RecordedWeb
from focused.web.url_patterns import prefixes_and_suffixes

_WORD = re.compile(r"\w+")
_WORDS = 5

Shingles = frozenset[tuple[str, ...]]


@dataclass
class Truth:
    """Which pages are similar; ``bases`` maps each base URL of a manual to all its base URLs."""

    web: RecordedWeb
    bases: Mapping[str, Sequence[str]]
    _kept: dict[str, Shingles] = field(default_factory=dict)

    def likeness(self, url: str, among: frozenset[str]) -> float:
        """The largest share with any of ``among`` at the URL's path below a base URL of its
        manual.
        """
        return max((self.share(url, other) for other in self._places(url) & among), default=0.0)

    def share(self, one: str, other: str) -> float:
        """The share of runs of five words, of title and text, that both pages have, in [0, 1]."""
        mine, theirs = self._shingles(one), self._shingles(other)
        return len(mine & theirs) / max(1, len(mine | theirs))

    def forget(self) -> None:
        """Drop the cached texts."""
        self._kept.clear()

    def _places(self, url: str) -> frozenset[str]:
        ways = (
            (self.bases.get(prefix + "/"), rest[1:]) for prefix, rest in prefixes_and_suffixes(url)
        )
        places = {base + rest for bases, rest in ways for base in bases or ()}
        return frozenset(places - {url})

    def _shingles(self, url: str) -> Shingles:
        if url not in self._kept:
            page = page_of(self.web, url)
            words = _WORD.findall(f"{page.title} {page.text}".lower()) if page is not None else []
            runs = range(max(1, len(words) - _WORDS + 1))
            self._kept[url] = frozenset(tuple(words[i : i + _WORDS]) for i in runs)
        return self._kept[url]
