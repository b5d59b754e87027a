"""One sample of a directory: a page, and the category it stands for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One sample: ``url`` is absolute and normalised; texts may be ``""``."""

    category: str
    url: str
    title: str = ""
    description: str = ""
