"""Labels as samples: what somebody said of a page beats what a directory says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from focused.directory.entry import DirectoryEntry
from focused.directory.sides import SampleSet, is_below
from focused.labels.label import Label
from focused.labels.roles import teaching
from focused.web.url import normalise

OTHER = "Top/Labelled/Other"
"""Where a page goes that was labelled no without a category."""


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Labels that taught: yes and no, and how many of them overruled the directory."""

    yes: int = 0
    no: int = 0
    overruled: int = 0


def with_labels(
    listed: SampleSet,
    labels: Iterable[Label],
    good_prefixes: Sequence[str],
    weight: float | None = None,
) -> tuple[SampleSet, LabelCounts]:
    """The samples with those that labels teach, each URL once; the label wins.

    Only labels that may teach are taken in. Yes puts a page into the label's
    category, where that is good, else into the first of ``good_prefixes``; no
    into the label's category, where that is not good, else into :data:`OTHER`.
    A page that is in the directory keeps its category when the label agrees
    with its side. ``weight``, > 0, is that of a labelled sample; None leaves it
    as it is listed, or 1.
    """
    sides = dict(zip((entry.url for entry in listed.entries), listed.good, strict=True))
    entries = {entry.url: entry for entry in listed.entries}
    overruled = 0
    said: dict[str, bool] = {}
    for label in teaching(labels):
        url, good = normalise(label.url) or label.url, label.verdict == "yes"
        said[url] = good
        old = entries.get(url)
        if old is not None and weight is not None:
            entries[url] = old = replace(old, weight=weight)
        if old is not None and sides[url] == good and not label.category:
            continue
        overruled += old is not None and sides[url] != good
        sides[url] = good
        category = _category(label, good, good_prefixes)
        entries[url] = (
            replace(old, category=category)
            if old is not None
            else DirectoryEntry(category, url, label.title, weight=weight or 1.0)
        )
    counts = LabelCounts(sum(said.values()), len(said) - sum(said.values()), overruled)
    return replace(listed, entries=tuple(entries.values()), good=tuple(sides.values())), counts


def _category(label: Label, good: bool, good_prefixes: Sequence[str]) -> str:
    named = label.category.strip("/")
    fits = any(is_below(named, prefix) for prefix in good_prefixes) == good
    if named and fits:
        return named
    return good_prefixes[0] if good else OTHER
