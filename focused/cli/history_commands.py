"""``focused history`` and ``focused changes``."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER


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
    help="Instead of a page's history, write the changes of all pages as change histories: into a "
    "file NAME.tsv or NAME.tsv.gz, or into a folder, one file for each host. See "
    "docs/how-to/freshness.md#the-history-of-a-page.",
)
def history(
    url: str | None,
    folder: Path | None,
    diff: bool,
    versions: tuple[int, int] | None,
    export: Path | None,
) -> None:
    """Print the history of a page of a continuous crawl.

    Prints when the page was first and last seen, each visit that brought a change with result,
    size of the change and relevance, the change rate, and when the next visit is due and the next
    change expected. URL may lack its scheme. Works while the crawl runs.
    """
    from focused.cli.history_actions import export_history, show_diff, show_history

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
    help="A date or time in ISO 8601 (2026-01-31, 2026-01-31T14:00; UTC unless it names an "
    "offset), or how long ago: a number with m, h, d or w for minutes, hours, days or weeks.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "atom"]),
    default="jsonl",
    show_default=True,
    help="JSON Lines, or an Atom feed.",
)
@click.option("--relevant-only", is_flag=True, help="Leave out pages that are off topic.")
@click.option(
    "--out", type=FILE, help="Write to this file, replaced atomically, and not to the output."
)
def changes(where: Path, since: str, form: str, relevant_only: bool, out: Path | None) -> None:
    """List the new, changed, gone, moved and reappeared pages of a crawl.

    WHERE is a crawl's folder or a topic file. Works while the crawl runs.
    """
    from focused.cli.history_actions import list_changes

    list_changes(where, since, form, relevant_only=relevant_only, out=out)
