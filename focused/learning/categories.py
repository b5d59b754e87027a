"""The categories that a classifier tells apart: small ones joined with those above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from focused.directory.sides import is_below

MIN_CATEGORY_SAMPLES = 5
MAX_CATEGORIES = 48


def merged_categories(categories: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Each sample's class: its category, or the nearest one above that is large enough.

    A class is good or not as a whole: where a good and another sample would
    meet in one category, the other's class gets a ``(other)`` to its name.
    At most :data:`MAX_CATEGORIES` classes a side: where more are left, what
    counts as large enough is doubled.
    """
    result = [""] * len(categories)
    for side in (True, False):
        places = [i for i, is_good in enumerate(good) if is_good == side]
        merged = _merge([categories[i] for i in places])
        for place, name in zip(places, merged, strict=True):
            result[place] = name
    taken = {name for name, is_good in zip(result, good, strict=True) if is_good}
    return [
        name if is_good or name not in taken else f"{name} (other)"
        for name, is_good in zip(result, good, strict=True)
    ]


def _merge(categories: list[str]) -> list[str]:
    minimum = MIN_CATEGORY_SAMPLES
    while True:
        merged = _merge_once(categories, minimum)
        if len(set(merged)) <= MAX_CATEGORIES:
            return merged
        if minimum > len(categories):
            return [_root(categories) or "(all)"] * len(categories)
        minimum *= 2


def _merge_once(categories: list[str], minimum: int) -> list[str]:
    if not categories:
        return []
    counts = Counter(categories)
    moved: dict[str, str] = {}
    top = _root(categories)
    for depth in range(max(name.count("/") for name in categories), 0, -1):
        for name in [name for name in counts if name.count("/") == depth]:
            parent = name.rpartition("/")[0]
            if counts[name] < minimum and (is_below(parent, top) or not top):
                moved[name] = parent
                counts[parent] += counts.pop(name)
    return [_follow(name, moved) for name in categories]


def _follow(name: str, moved: dict[str, str]) -> str:
    while name in moved:
        name = moved[name]
    return name


def _root(categories: Sequence[str]) -> str:
    """The deepest category that all of ``categories`` are or lie below."""
    paths = [name.split("/") for name in categories]
    first, last = min(paths), max(paths)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return "/".join(first[:shared])
