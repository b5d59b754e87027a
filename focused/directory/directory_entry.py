"""One sample of a directory: a page, and the category it stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

_CONTENT_SCHEME = "sample://"


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One sample: ``url`` is absolute and normalised; texts may be ``""``.

    A sample that brings its page along is not fetched: ``text`` is the page's
    text, or ``file`` the saved page. Without an address on the Web its ``url`` is
    that of :func:`content_url`. ``weight`` is how much it counts, more than 0.
    """

    category: str
    url: str
    title: str = ""
    description: str = ""
    weight: float = 1.0
    text: str = ""
    file: Path | None = None

    @property
    def needs_fetch(self) -> bool:
        """Whether its page is to be had from the Web, and only there."""
        return not self.text and self.file is None and not self.url.startswith(_CONTENT_SCHEME)


def content_url(content: bytes) -> str:
    """The identity of a page that has no address: the same content has the same one.

    In the form of a URL, with a host of its own, that nothing can fetch.
    """
    return f"{_CONTENT_SCHEME}{xxhash.xxh3_128_hexdigest(content)}/"


def normalise_category(text: str) -> str:
    """A category as it is compared: no blanks or empty parts around its slashes."""
    return "/".join(part.strip() for part in text.split("/") if part.strip())


@dataclass(frozen=True, slots=True)
class SkippedRecords:
    """Counts by file and reason; readers of what others wrote add to it."""

    counts: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def add(self, path: Path, reason: str) -> None:
        """Count one more of ``reason``, worded so that a number stands before it."""
        self.counts[path, reason] += 1

    def messages(self) -> tuple[str, ...]:
        """A line for each file and reason: ``content.rdf.u8: 12 entries that …``."""
        return tuple(
            f"{path.name}: {count:,} {reason}"
            for (path, reason), count in sorted(self.counts.items())
        )
