"""``focused frontier ...``: a stopped crawl's frontier looked at and tended."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_CRAWL = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_COUNT = click.IntRange(min=1)


class _ShowByDefault(click.Group):
    """``focused frontier FOLDER`` is short for ``focused frontier show FOLDER``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if own else ["show", *args])


def _finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number.")
    return value


def _probability(name: str, text: str) -> Callable[[Any], Any]:
    # The range alone would let nan through.
    return click.option(name, type=click.FloatRange(0.0, 1.0), callback=_finite, help=text)


@click.group(cls=_ShowByDefault)
def frontier() -> None:
    """What waits in a crawl's FOLDER: looked at, added to, dropped, moved, copied.

    focused frontier FOLDER is short for focused frontier show FOLDER. The crawl
    must be stopped; its next start goes on with the frontier as it was left.
    """


@frontier.command()
@click.argument("folder", type=_CRAWL)
@click.option("--hosts", type=_COUNT, default=20, show_default=True, help="Hosts shown, at most.")
@click.option("--host", help="One host and its best links.")
@click.option(
    "--links", type=_COUNT, default=10, show_default=True, help="Links shown of --host, at most."
)
@click.option("--best", type=_COUNT, metavar="N", help="The N best links of all hosts, too.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def show(
    folder: Path, hosts: int, host: str | None, links: int, best: int | None, as_json: bool
) -> None:
    """Tell what waits: links, hosts, what is due when."""
    from focused.cli.frontier_show import show_frontier

    show_frontier(folder, hosts, host, links, best, as_json=as_json)


@frontier.command()
@click.argument("folder", type=_CRAWL)
@click.argument("urls", nargs=-1)
@click.option("--file", type=_FILE, help="One URL a line; # begins a comment.")
@_probability("--score", "Queue them where such a score puts a link; default: before all.")
@click.option("--again", is_flag=True, help="Also what was fetched, failed or dropped before.")
def add(
    folder: Path, urls: tuple[str, ...], file: Path | None, score: float | None, again: bool
) -> None:
    """Queue URLs, by the scope of the crawl's topic."""
    from focused.cli.frontier_edit import add_urls

    sys.exit(add_urls(folder, urls, file, score, again=again))


def _chosen(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose queued links."""
    for option in (
        click.option("--matching", metavar="REGEX", help="Links whose URL it is found in."),
        click.option("--host", help="Links of this host."),
        click.argument("urls", nargs=-1),
        click.argument("folder", type=_CRAWL),
    ):
        command = option(command)
    return command


@frontier.command()
@_chosen
def drop(folder: Path, urls: tuple[str, ...], host: str | None, matching: str | None) -> None:
    """Take links out of the queue without fetching them; they stay seen."""
    from focused.cli.frontier_edit import drop_links

    sys.exit(drop_links(folder, urls, host, matching))


@frontier.command()
@_chosen
@_probability("--to", "Where such a score puts a link.")
@click.option("--by", type=float, callback=_finite, help="Up or down, in the policy's priorities.")
def move(
    folder: Path,
    urls: tuple[str, ...],
    host: str | None,
    matching: str | None,
    to: float | None,
    by: float | None,
) -> None:
    """Move queued links to another place in the order.

    They stay there: a policy that learns scores them no more by what it knew.
    """
    from focused.cli.frontier_edit import move_links

    sys.exit(move_links(folder, urls, host, matching, to=to, by=by))


@frontier.command("export")
@click.argument("folder", type=_CRAWL)
@click.argument("file", type=_FILE)
def export_(folder: Path, file: Path) -> None:
    """Write all queued links to FILE, .csv or .parquet."""
    from focused.cli.frontier_edit import export_frontier

    export_frontier(folder, file)


@frontier.command("import")
@click.argument("folder", type=_CRAWL)
@click.argument("file", type=_FILE)
def import_(folder: Path, file: Path) -> None:
    """Queue the links of FILE, .csv or .parquet, that were not seen before."""
    from focused.cli.frontier_edit import import_frontier

    sys.exit(import_frontier(folder, file))
