"""The commands that show a crawl: ``report``, ``ui``, ``why``, ``history``, ``changes``."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER, serving_options


@click.command()
@click.argument("where", type=ANY_PATH, nargs=-1)
@click.option("--web", type=FOLDER, help="A recorded web whose labels score the harvest.")
@click.option(
    "--policies",
    help="With a topic file: compare its crawls by these orderings, such as focused,bfs.",
)
@click.option(
    "--out",
    type=FOLDER,
    help="One crawl: write report.json, harvest.png and reliability.png there.",
)
@click.option(
    "--plot",
    type=FILE,
    help="Several crawls: file of the plot. Default: NAME-comparison.png beside the first crawl.",
)
@click.option(
    "--graph",
    type=FOLDER,
    help="One crawl: its link graph, for hubs and authorities.",
)
def report(
    where: tuple[Path, ...],
    web: Path | None,
    policies: str | None,
    out: Path | None,
    plot: Path | None,
    graph: Path | None,
) -> None:
    """Print the report of a crawl, or compare several crawls.

    WHERE is a crawl's folder or a topic file. Without it the command reports the only crawl under
    crawls/, or lists them. The crawl may run or have been killed; nothing is written into its
    folder. Ratios of several crawls are relative to the breadth-first one, or to the last. See
    docs/reference/report.md.
    """
    from focused.cli.report_actions import crawl_folders_of, show_comparison, show_report

    folders = crawl_folders_of(where, policies)
    if len(folders) == 1:
        show_report(folders[0], web, out, plot, graph)
    else:
        show_comparison(folders, web, out, plot, graph)


@click.command()
@click.argument("folders", type=FOLDER, nargs=-1)
@click.option(
    "--network-mbit",
    type=click.FloatRange(min=0, min_open=True),
    help="Speed of the network, to show a crawl's share. Default: that of the interface, where "
    "Linux knows it.",
)
@serving_options("console")
def ui(
    folders: tuple[Path, ...],
    network_mbit: float | None,
    no_browser: bool,
    port: int,
    host: str,
) -> None:
    """Watch and steer crawls in the browser.

    FOLDERS are crawls' folders, or folders that hold some; by default crawls/. See
    docs/how-to/console.md.
    """
    from focused.console.server import serve_console

    def ready(address: str) -> None:
        click.echo(f"The console is at {address}")
        click.echo("Anyone with this address can steer these crawls. Ctrl-C ends.", err=True)
        if not no_browser:
            webbrowser.open(address)

    serve_console(
        folders or (Path("crawls"),),
        clock=time.time,
        ready=ready,
        host=host,
        port=port,
        network_mbit=network_mbit,
    )


@click.command()
@click.argument("url")
@click.option(
    "--folder", type=FOLDER, help="The crawl's folder. Default: the only one under crawls/."
)
def why(url: str, folder: Path | None) -> None:
    """Explain why a page was fetched.

    Prints the path from a seed with each link's anchor, score and features, the share of links with
    such a score that were on topic, and each page's classification. For a page that was found but
    not fetched: the links to it. URL may lack its scheme.
    """
    from focused.cli.report_actions import show_why

    show_why(url, folder)


@click.command()
@click.argument("url", required=False)
@click.option(
    "--folder", type=FOLDER, help="The crawl's folder. Default: the only one under crawls/."
)
@click.option("--diff", is_flag=True, help="Print the difference between the last two versions.")
@click.option(
    "--versions",
    type=click.IntRange(min=1),
    nargs=2,
    metavar="OLDER NEWER",
    help="With --diff: compare the versions of these numbers.",
)
@click.option(
    "--export",
    type=ANY_PATH,
    help="Write the change histories of all pages into a file, .tsv or .tsv.gz, or into a folder, "
    "a file for each host. See docs/how-to/freshness.md#the-history-of-a-page.",
)
def history(
    url: str | None,
    folder: Path | None,
    diff: bool,
    versions: tuple[int, int] | None,
    export: Path | None,
) -> None:
    """Print the history of a page of a continuous crawl.

    Prints when the page was first and last seen, each visit that brought a change, the change rate,
    and when the next visit and change are due. URL may lack its scheme. The crawl may run.
    """
    from focused.cli.report_actions import export_history, show_diff, show_history

    if export is not None:
        if url is not None or diff:
            raise click.UsageError("--export writes the changes of all pages: leave out URL.")
        export_history(folder, export)
        return
    if url is None:
        raise click.UsageError("Missing argument 'URL'.")
    if diff or versions:
        show_diff(url, folder, versions)
    else:
        show_history(url, folder)


@click.command()
@click.argument("where", type=ANY_PATH)
@click.option(
    "--since",
    default="1d",
    show_default=True,
    help="A date or time (2026-01-31, 2026-01-31T14:00; UTC unless it names an offset), or how "
    "long ago: a number with m, h, d or w, such as 90m.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "atom"]),
    default="jsonl",
    show_default=True,
    help="JSON Lines, or an Atom feed.",
)
@click.option("--relevant-only", is_flag=True, help="Only pages on topic.")
@click.option("--out", type=FILE, help="Replace this file atomically, instead of printing.")
def changes(where: Path, since: str, form: str, relevant_only: bool, out: Path | None) -> None:
    """List the new, changed, gone, moved and reappeared pages of a crawl.

    WHERE is a crawl's folder or a topic file; the crawl may run.
    """
    from focused.cli.report_actions import list_changes

    list_changes(where, since, form, relevant_only=relevant_only, out=out)
