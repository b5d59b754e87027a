"""Commands of installed distributions: entry points of the group ``focused.commands``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from focused.errors import ConfigurationError, MissingExtraError
from focused.installed_features import INSTALL_LAB, LAB, describe, installed_parts, load_entry_point

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "focused.commands"

_LAB_COMMANDS = frozenset({"compare", "compare-revisits", "web.build"})


class ExtensibleGroup(click.Group):
    """A group to which installed distributions add commands.

    An entry point ``NAME`` adds a command to ``focused``; ``GROUP.NAME`` adds one to ``focused
    GROUP``, whose ``prefix`` is ``GROUP.``.
    """

    def __init__(self, *arguments: Any, prefix: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in order."""
        found = (name for name in self._installed(ctx) if name.startswith(self._prefix))
        names = (name.removeprefix(self._prefix) for name in found)
        return sorted({*self.commands, *(name for name in names if "." not in name)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or None. Raises MissingExtraError for one of the lab."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or "." in cmd_name:
            return own
        name = self._prefix + cmd_name
        point = self._installed(ctx).get(name)
        if point is None:
            if name in _LAB_COMMANDS:
                shown = name.replace(".", " ")
                raise MissingExtraError(
                    f"{shown} needs {LAB}, which is not installed: {INSTALL_LAB}"
                )
            return None
        command = load_entry_point(point)
        if not isinstance(command, click.Command):
            raise ConfigurationError(f"{describe(point)}: {point.value} is no click.Command")
        return command

    def _installed(self, ctx: click.Context) -> Mapping[str, EntryPoint]:
        """Read the entry points once for each invocation."""
        if ENTRY_POINT_GROUP not in ctx.meta:
            ctx.meta[ENTRY_POINT_GROUP] = installed_parts(ENTRY_POINT_GROUP)
        installed: Mapping[str, EntryPoint] = ctx.meta[ENTRY_POINT_GROUP]
        return installed
