"""The ``focused`` command line: thin commands over the library.

A command's module is imported when the command runs: ``focused --help`` needs none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from focused.cli.installed_commands import ExtensibleGroup
from focused.errors import FocusedError, missing_extra

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
    "web": ("web", "Build, import, inspect and serve recorded webs."),
    "why": ("report", "Explain why a page was fetched."),
}
"""The module of each command, and its line in the help of ``focused``."""


class _PlainErrors(ExtensibleGroup):
    """Prints errors that a user can fix in one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
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


@click.group(
    cls=_PlainErrors, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="focused-crawler")
def main() -> None:
    """Crawl the Web for pages on one topic."""
