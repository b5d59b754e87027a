"""One sample of a directory: a page, and the category it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import xxhash

_OWN = "sample://"


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One sample: ``url`` is absolute and normalised; texts may be ``""``.

    A sample that brings its page along is not fetched: ``text`` is the page's
    text, or ``file`` the saved page. Without an address on the Web its ``url`` is
    that of :func:`own_address`. ``weight`` is how much it counts, more than 0.
    """

    category: str
    url: str
    title: str = ""
    description: str = ""
    weight: float = 1.0
    text: str = ""
    file: Path | None = None

    @property
    def is_fetched(self) -> bool:
        """Whether its page is to be had from the Web, and only there."""
        return not self.text and self.file is None and not self.url.startswith(_OWN)


def own_address(content: bytes) -> str:
    """The identity of a page that has no address: the same content has the same one.

    In the form of a URL, with a host of its own, that nothing can fetch.
    """
    return f"{_OWN}{xxhash.xxh3_128_hexdigest(content)}/"


def category_path(text: str) -> str:
    """A category as it is compared: no blanks or empty parts around its slashes."""
    return "/".join(part.strip() for part in text.split("/") if part.strip())
