"""The general background among the other samples, as long as a topic has few of its own."""

from __future__ import annotations

from dataclasses import replace

from focused.directory.background import background_samples
from focused.directory.sides import SampleSet

ENOUGH_OTHERS = 300
"""So many other samples are wanted; what a directory has fewer of them, the background stands for.

From here on it is left out: a topic's own neighbours tell more than the Web at large.
"""

_PAGES = 600


def with_background(listed: SampleSet) -> SampleSet:
    """The samples, and the background as others that together weigh what is missing."""
    missing = ENOUGH_OTHERS - sum(not good for good in listed.good)
    if missing <= 0:
        return listed
    added = background_samples(_PAGES)
    weighed = tuple(replace(entry, weight=missing / len(added)) for entry in added)
    return replace(
        listed, entries=(*listed.entries, *weighed), good=(*listed.good, *(False for _ in weighed))
    )
