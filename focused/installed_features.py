"""The features of installed distributions: entry points of the group ``focused.features``.

A :class:`Feature` says when a topic switches it on, how it enters a crawl
(:mod:`focused.crawl.features` has the seams), and what it adds elsewhere: a section of the topic
file, lines of the report, a tab of the console. Its module is imported by every command that asks
for features, so it imports what it needs in its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from focused.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_Kind = TypeVar("_Kind")

LAB = "focused_lab"
"""The package of the extra ``experiments``."""

INSTALL_LAB = "pip install 'focused-crawler[experiments]'"


def installed_parts(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of their names."""
    from importlib.metadata import entry_points

    points = sorted(entry_points(group=group), key=lambda each: each.name)
    return {point.name: point for point in points}


def load_entry_point(point: EntryPoint) -> Any:
    """Import what an entry point names; raises ConfigurationError, which names its package."""
    try:
        return point.load()
    except Exception as error:  # a plug-in may raise anything
        raise ConfigurationError(
            f"{describe(point)} cannot be imported ({error!r}): update or uninstall its package"
        ) from error


def describe(point: EntryPoint) -> str:
    """Return kind, name and package of an entry point, for messages."""
    kind = _KINDS.get(point.group, point.group)
    return f"the {kind} {point.name}" + ("" if point.dist is None else f" of {point.dist.name}")


_KINDS = {
    "focused.commands": "command",
    "focused.features": "feature",
    "focused.orderings": "policy",
    "focused.recorded_webs": "reader of recorded webs",
    "focused.revisit_policies": "revisit policy",
    "focused.scrapy_features": "feature",
}


def more_from_lab() -> str:
    """Return where to get more names of a group; empty if the lab is installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution("focused-lab")
    except PackageNotFoundError:
        return f". More come with {INSTALL_LAB}"
    return ""


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
    report of a crawl. ``counts`` are the names of what the feature counts
    (:meth:`focused.crawl.crawl_stats.Counters.count`) with their meaning in Markdown, ``NAME/KIND``
    for what it counts by kind; ``tables`` are those of its tables of ``stats.json``. ``downloads``
    is the name, of a count by kind, of its downloads that bring no new page, if it has any.
    """

    is_on: Callable[[Any], bool]
    connect: Callable[[Any], Any]
    section: type[Any] | None = None
    report: Callable[[Mapping[str, Any]], Sequence[tuple[str, str]]] | None = None
    console_tab: ConsoleTab | None = None
    counts: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    downloads: str = ""


@cache
def installed_features() -> Mapping[str, Feature]:
    """Return the installed features by name, in the order of their names.

    Raises ConfigurationError for one that cannot be imported.
    """
    points = installed_parts(ENTRY_POINT_GROUP)
    return {name: load_feature(point, Feature) for name, point in points.items()}


def load_feature(point: EntryPoint, kind: type[_Kind]) -> _Kind:
    """Import a feature. Raises ConfigurationError if it cannot be, or is not of that ``kind``."""
    feature = load_entry_point(point)
    if not isinstance(feature, kind):
        raise ConfigurationError(
            f"{describe(point)}: {point.value} is no {kind.__module__}.{kind.__name__}"
        )
    return feature
