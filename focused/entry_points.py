"""Parts of installed distributions, by the groups of their entry points.

Commands (``focused.commands``), orderings (``focused.orderings``), revisit policies
(``focused.revisit_policies``) and changing webs (``focused.changing_webs``) may come from packages
of their own. What a name of a group stands for is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from focused.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # slow to import

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
    "focused.changing_webs": "changing web",
    "focused.commands": "command",
    "focused.features": "feature",
    "focused.orderings": "policy",
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
