"""``focused frontier ...``: inspect and edit a stopped crawl's frontier."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from focused.cli.common import FILE, FOLDER

_COUNT = click.IntRange(min=1)


class _ShowByDefault(click.Group):
    """``focused frontier FOLDER`` is short for ``focused frontier show FOLDER``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if own else ["show", *args])


def _finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


def _probability(name: str, text: str) -> Callable[[Any], Any]:
    # The range alone would let nan through.
    return click.option(name, type=click.FloatRange(0.0, 1.0), callback=_finite, help=text)


@click.group(cls=_ShowByDefault)
def frontier() -> None:
    """Inspect and edit the frontier in a crawl's FOLDER.

    focused frontier FOLDER is short for focused frontier show FOLDER. To edit, stop the crawl;
    its next start uses the edited frontier.
    """


@frontier.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--hosts", type=_COUNT, default=20, show_default=True, help="Maximum number of hosts."
)
@click.option("--host", help="Show one host and its best links.")
@click.option(
    "--links",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Maximum number of links with --host.",
)
@click.option("--best", type=_COUNT, metavar="N", help="Also show the N best links of all hosts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    folder: Path, hosts: int, host: str | None, links: int, best: int | None, as_json: bool
) -> None:
    """Show queued links, hosts and due times.

    focused frontier FOLDER is short for it. The crawl may run. See docs/how-to/frontier.md.
    """
    from focused.cli.frontier_actions import show_frontier

    show_frontier(folder, hosts, host, links, best, as_json=as_json)


@frontier.command()
@click.argument("folder", type=FOLDER)
@click.argument("urls", nargs=-1)
@click.option("--file", type=FILE, help="A file of URLs, one per line; # starts a comment.")
@_probability(
    "--score", "Queue the URLs at the position of this score. Default: before all others."
)
@click.option(
    "--again", is_flag=True, help="Also queue URLs that were fetched, failed or dropped before."
)
def add(
    folder: Path, urls: tuple[str, ...], file: Path | None, score: float | None, again: bool
) -> None:
    """Queue URLs in a stopped crawl.

    The topic's scope applies; the command prints each refused URL and the reason.
    """
    from focused.cli.frontier_actions import add_urls

    sys.exit(add_urls(folder, urls, file, score, again=again))


def _selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select queued links."""
    for option in (
        click.option("--matching", metavar="REGEX", help="Select links whose URL matches."),
        click.option("--host", help="Select links of this host."),
        click.argument("urls", nargs=-1),
        click.argument("folder", type=FOLDER),
    ):
        command = option(command)
    return command


@frontier.command()
@_selection_options
def drop(folder: Path, urls: tuple[str, ...], host: str | None, matching: str | None) -> None:
    """Remove links from the queue of a stopped crawl without fetching them; they stay seen.

    Give URLs, or select by --host, --matching or both.
    """
    from focused.cli.frontier_actions import drop_links

    sys.exit(drop_links(folder, urls, host, matching))


@frontier.command()
@_selection_options
@_probability("--to", "Move to the position of this score.")
@click.option(
    "--by",
    type=float,
    callback=_finite,
    help="Add to the priority.",
)
def move(
    folder: Path,
    urls: tuple[str, ...],
    host: str | None,
    matching: str | None,
    to: float | None,
    by: float | None,
) -> None:
    """Change the priority of queued links of a stopped crawl.

    Give URLs, or select by --host, --matching or both, and --to or --by. See
    docs/how-to/frontier.md#moving.
    """
    from focused.cli.frontier_actions import move_links

    sys.exit(move_links(folder, urls, host, matching, to=to, by=by))


@frontier.command("export")
@click.argument("folder", type=FOLDER)
@click.argument("file", type=FILE)
def export_(folder: Path, file: Path) -> None:
    """Write all queued links of a stopped crawl to FILE, a .parquet file."""
    from focused.cli.frontier_actions import export_frontier

    export_frontier(folder, file)


@frontier.command("import")
@click.argument("folder", type=FOLDER)
@click.argument("file", type=FILE)
def import_(folder: Path, file: Path) -> None:
    """Queue links of FILE, a .parquet file, that a stopped crawl has not seen.

    See docs/how-to/frontier.md#carrying-links for the columns.
    """
    from focused.cli.frontier_actions import import_frontier

    sys.exit(import_frontier(folder, file))
