"""The ``focused`` command line: thin commands over the library.

A command's module is imported when the command runs: ``focused --help`` needs none. Installed
distributions add commands by entry points.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from focused.errors import ConfigurationError, FocusedError, MissingExtraError, missing_extra
from focused.installed_features import INSTALL_LAB, LAB, describe, installed_parts, load_entry_point

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS: Mapping[str, tuple[str, str]] = {
    "changes": ("report", "List the new, changed, gone, moved and reappeared pages of a crawl."),
    "crawl": ("crawl", "Crawl the topic of a TOML file; the same command resumes a stopped crawl."),
    "download": ("export", "Download a crawl on many machines from its shared storage."),
    "export": ("export", "Export the pages of a crawl as a corpus: texts, metadata, a data card."),
    "frontier": ("frontier", "Inspect and edit the frontier in a crawl's FOLDER."),
    "graph": ("graph", "Ask who links to whom in crawls, and rate pages by their links."),
    "history": ("report", "Print the history of a page of a continuous crawl."),
    "index": ("export", "Send the pages of a crawl to OpenSearch, Elasticsearch or Solr."),
    "label": ("browser", "Label pages of a crawl as on or off topic."),
    "report": ("report", "Print the report of a crawl, or compare several crawls."),
    "retrain": ("training", "Retrain with the labels of focused label."),
    "search": ("search", "Search the pages of a crawl by words."),
    "topic": ("topic", "Start a topic."),
    "train": ("training", "Train the topic classifier from the topic's directory."),
    "ui": ("browser", "Watch and steer crawls in the browser."),
    "why": ("report", "Explain why a page was fetched."),
}
"""The module of each command, and its line in the help of ``focused``."""

ENTRY_POINT_GROUP = "focused.commands"

_IMPORTED_OBJECTS = 50_000
_LAB_COMMANDS = frozenset({"compare", "compare-revisits", "web"})


class _Commands(click.Group):
    """The commands of :data:`COMMANDS`, imported when they run, and those of distributions.

    An entry point of the group ``focused.commands`` adds a command of its name. Errors that a user
    can fix are printed in one line, without a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in order."""
        return sorted({*COMMANDS, *self._installed(ctx)})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the line of each command, without importing those of the crawler."""
        rows = [(name, self._help_line(ctx, name, 80)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, without importing those of the crawler, and options."""
        found = [
            CompletionItem(name, help=self._help_line(ctx, name, 45))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def _help_line(self, ctx: click.Context, name: str, most_chars: int) -> str:
        if name in COMMANDS:
            return COMMANDS[name][1]
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(most_chars)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or None. Raises MissingExtraError for one of the lab."""
        if cmd_name in COMMANDS:
            return self._import(cmd_name)
        point = self._installed(ctx).get(cmd_name)
        if point is None:
            if cmd_name in _LAB_COMMANDS:
                raise MissingExtraError(
                    f"{cmd_name} needs {LAB}, which is not installed: {INSTALL_LAB}"
                )
            return None
        command = load_entry_point(point)
        if not isinstance(command, click.Command):
            raise ConfigurationError(f"{describe(point)}: {point.value} is no click.Command")
        return command

    def _import(self, name: str) -> click.Command:
        try:
            module = import_module(f"focused.cli.{COMMANDS[name][0]}")
        except ModuleNotFoundError as error:
            raise missing_extra(error, name) or error from None
        command: click.Command = getattr(module, name)
        return command

    def _installed(self, ctx: click.Context) -> Mapping[str, EntryPoint]:
        """Read the entry points once for each invocation."""
        if ENTRY_POINT_GROUP not in ctx.meta:
            ctx.meta[ENTRY_POINT_GROUP] = installed_parts(ENTRY_POINT_GROUP)
        installed: Mapping[str, EntryPoint] = ctx.meta[ENTRY_POINT_GROUP]
        return installed

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; end with status 2 for an error that a user can fix."""
        # What imports create stays; searching it for garbage is a twentieth of a crawl's start.
        gc.set_threshold(_IMPORTED_OBJECTS)
        if isinstance(sys.stdout, TextIOWrapper):  # titles have characters that a locale may lack
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except FocusedError as error:
            click.echo(f"focused: {error}", err=True)
            sys.exit(2)
        except ModuleNotFoundError as error:
            missing = missing_extra(error, ctx.invoked_subcommand or "focused")
            if missing is None:
                raise
            click.echo(f"focused: {missing}", err=True)
            sys.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="focused-crawler")
def main() -> None:
    """Crawl the Web for pages on one topic."""
