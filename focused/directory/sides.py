"""Which samples are the topic: good categories, and each page on one side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from focused.directory.drawing import Draw
from focused.directory.entry import DirectoryEntry
from focused.errors import TrainingError

_NAMED_AT_MOST = 2_000


def is_below(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or lies below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")


def good_categories(categories: Iterable[str], good_prefixes: Sequence[str]) -> frozenset[str]:
    """Those of ``categories`` that are a good prefix or lie below one.

    Raises :class:`TrainingError` naming ``training.good`` when a prefix has
    no category, with the nearest names there are.
    """
    known = frozenset(categories)
    for prefix in good_prefixes:
        if not any(is_below(category, prefix) for category in known):
            raise _no_sample(prefix, sorted(known))
    return frozenset(category for category in known if _is_good(category, good_prefixes))


def _is_good(category: str, good_prefixes: Sequence[str]) -> bool:
    return any(is_below(category, good) for good in good_prefixes)


def _no_sample(prefix: str, known: Sequence[str]) -> TrainingError:
    return TrainingError(
        f"training.good: {prefix!r} has no sample in the directory; "
        f"its categories are {_some(known)}"
    )


def _some(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The directory's samples, each URL once. ``good[i]`` tells entry i's side.

    ``conflicts`` counts the URLs listed both in a good and in another
    category (they are good: a page may be about more than one thing);
    ``repeats`` counts the further lines dropped, ``left_out`` those that were not
    drawn, ``between`` those that are on neither side. ``remarks`` tell what in the
    directory could not be used.
    """

    entries: tuple[DirectoryEntry, ...]
    good: tuple[bool, ...]
    conflicts: int = 0
    repeats: int = 0
    left_out: int = 0
    between: int = 0
    remarks: tuple[str, ...] = ()


def sample_set(
    entries: Iterable[DirectoryEntry],
    good_prefixes: Sequence[str],
    *,
    limit: int | None = None,
    linked: frozenset[str] = frozenset(),
    seed: int = 0,
    may_lack_good: bool = False,
) -> SampleSet:
    """Put each URL on one side: good if any of its lines is good.

    A URL keeps its first line on that side. With ``limit`` at most so many URLs a side
    are kept, drawn by lot: ``entries`` may be more than memory holds. Those in or below
    the ``linked`` categories, unless they are good, are on neither side. Raises
    :class:`TrainingError` as :func:`good_categories` does, unless ``may_lack_good``.
    """
    draw = Draw(limit, seed)
    unseen, known = set(good_prefixes), set[str]()
    between = 0
    for entry in entries:
        category = entry.category
        if len(known) < _NAMED_AT_MOST:
            known.add(category)
        good = _is_good(category, good_prefixes)
        if good and unseen:
            unseen -= {prefix for prefix in unseen if is_below(category, prefix)}
        if not good and linked and _lies_in(category, linked):
            between += 1
        else:
            draw.add(entry, good)
    for prefix in good_prefixes:
        if prefix in unseen and not may_lack_good:
            raise _no_sample(prefix, sorted(known))
    kept = draw.kept()
    return SampleSet(
        entries=tuple(entry for entry, _ in kept),
        good=tuple(good for _, good in kept),
        conflicts=draw.conflicts,
        repeats=draw.repeats,
        left_out=draw.left_out,
        between=between,
    )


def _lies_in(category: str, places: frozenset[str]) -> bool:
    while category:
        if category in places:
            return True
        category = category.rpartition("/")[0]
    return False
