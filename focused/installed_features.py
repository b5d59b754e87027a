"""The features of installed distributions: entry points of the group ``focused.features``.

A :class:`Feature` says when a topic switches it on, how it enters a crawl
(:mod:`focused.crawl.features` has the seams), and what it adds elsewhere: a section of the topic
file, lines of the report, a tab of the console. Its module is imported by every command that asks
for features, so it imports what it needs in its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focused.entry_points import describe, installed_parts, load_entry_point
from focused.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "focused.features"

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class ConsoleTab:
    """A tab of the console with one table.

    ``read`` takes the folder of a crawl, which may be running, and returns the headings and the
    rows of the table. The console shows all cells as text.
    """

    title: str
    read: Callable[[Path], tuple[Sequence[str], Sequence[Sequence[Cell]]]]


@dataclass(frozen=True, slots=True)
class Feature:
    """A capability that a topic switches on.

    ``is_on`` takes a :class:`focused.topic.Topic`. ``connect`` takes the
    :class:`focused.crawl.features.CrawlCore` of a crawl that uses the feature, and returns
    :class:`focused.crawl.features.FeatureParts`.

    ``section`` is a frozen dataclass: the keys, types and defaults of the section of the topic file
    that has the feature's name; :meth:`focused.topic.Topic.section` returns its instance.
    ``report`` takes the feature's table of ``stats.json`` and returns names and values for the
    report of a crawl.
    """

    is_on: Callable[[Any], bool]
    connect: Callable[[Any], Any]
    section: type[Any] | None = None
    report: Callable[[Mapping[str, Any]], Sequence[tuple[str, str]]] | None = None
    console_tab: ConsoleTab | None = None


@cache
def installed_features() -> Mapping[str, Feature]:
    """Return the installed features by name, in the order of their names.

    Raises ConfigurationError for one that cannot be imported.
    """
    return {name: _load(point) for name, point in installed_parts(ENTRY_POINT_GROUP).items()}


def _load(point: EntryPoint) -> Feature:
    feature = load_entry_point(point)
    if not isinstance(feature, Feature):
        raise ConfigurationError(
            f"{describe(point)}: {point.value} is no focused.installed_features.Feature"
        )
    return feature
