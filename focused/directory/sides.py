"""Which samples are the topic: good categories, and each page on one side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from focused.directory.entry import DirectoryEntry
from focused.errors import TrainingError


def is_below(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or lies below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")


def good_categories(categories: Iterable[str], good_prefixes: Sequence[str]) -> frozenset[str]:
    """Those of ``categories`` that are a good prefix or lie below one.

    Raises :class:`TrainingError` naming ``training.good`` when a prefix has
    no category, with the nearest names there are.
    """
    known = sorted(set(categories))
    for prefix in good_prefixes:
        if not any(is_below(category, prefix) for category in known):
            raise TrainingError(
                f"training.good: {prefix!r} has no sample in the directory; "
                f"its categories are {_some(known)}"
            )
    return frozenset(
        category for category in known if any(is_below(category, good) for good in good_prefixes)
    )


def _some(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The directory's samples, each URL once. ``good[i]`` tells entry i's side.

    ``conflicts`` counts the URLs listed both in a good and in another
    category (they are good: a page may be about more than one thing);
    ``repeats`` counts the further lines dropped.
    """

    entries: tuple[DirectoryEntry, ...]
    good: tuple[bool, ...]
    conflicts: int = 0
    repeats: int = 0


def sample_set(entries: Sequence[DirectoryEntry], good_prefixes: Sequence[str]) -> SampleSet:
    """Put each URL on one side: good if any of its lines is good.

    A URL keeps its first line on that side. Raises :class:`TrainingError`
    as :func:`good_categories` does.
    """
    good = good_categories((entry.category for entry in entries), good_prefixes)
    chosen: dict[str, DirectoryEntry] = {}
    sides: dict[str, set[bool]] = {}
    for entry in entries:
        side = entry.category in good
        seen = sides.setdefault(entry.url, set())
        if not seen or (side and True not in seen):
            chosen[entry.url] = entry
        seen.add(side)
    return SampleSet(
        entries=tuple(chosen.values()),
        good=tuple(entry.category in good for entry in chosen.values()),
        conflicts=sum(len(seen) > 1 for seen in sides.values()),
        repeats=len(entries) - len(chosen),
    )
