"""``focused web ...``: commands for recorded webs."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, changing_web_options
from focused.cli.installed_commands import ExtensibleGroup

SHARE = click.FloatRange(0, 1)


@click.group(cls=ExtensibleGroup, prefix="web.")
def web() -> None:
    """Build, import, inspect and serve recorded webs."""


@web.command("import")
@click.argument("sources", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--folder", type=FOLDER, required=True, help="Folder of the recorded web.")
@click.option("--base-url", help="URL of the HTML folder's top. Required for a folder.")
@click.option(
    "--labels",
    type=FILE,
    help="Lines of URL, tab, category. Unknown URLs are counted and ignored.",
)
def web_import(
    sources: tuple[Path, ...], folder: Path, base_url: str | None, labels: Path | None
) -> None:
    """Make a recorded web from one folder of HTML, or from WARC files."""
    from focused.cli.web_actions import import_sources

    import_sources(sources, folder, base_url, labels)


@web.command("info")
@click.argument("folder", type=FOLDER)
def web_info(folder: Path) -> None:
    """Print pages, redirects, hosts, links, categories and damage of a recorded web."""
    from focused.cli.web_actions import show_web

    show_web(folder)


@web.command("serve")
@click.argument("folder", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8100,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Inject faults, such as HOSTPATTERN:kind=503,rate=0.1. Repeatable. See "
    "docs/how-to/recorded-webs.md#faults.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of faults and changes."
)
@click.option("--access-log", type=FILE, help="Append one line of JSON per request to this file.")
@changing_web_options
@click.option(
    "--day",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="With --changes: first day of the clock in the replayed years.",
)
@click.option(
    "--years",
    type=click.FloatRange(0, 100, min_open=True),
    default=1.0,
    show_default=True,
    help="With --changes: last years of the histories to replay.",
)
@click.option(
    "--sitemaps",
    type=SHARE,
    default=0.5,
    show_default=True,
    help="With --changes: share of hosts with a sitemap.",
)
@click.option(
    "--feeds",
    type=SHARE,
    default=0.25,
    show_default=True,
    help="With --changes: share of hosts with a feed.",
)
@click.option(
    "--announced",
    type=SHARE,
    default=0.5,
    show_default=True,
    help="With --changes: share of changes in sitemap and feed; half of the hosts state all.",
)
@click.option(
    "--noise",
    type=SHARE,
    default=0.25,
    show_default=True,
    help="With --changes: share of hosts with dates, counters and rotating navigation.",
)
@click.option(
    "--truth",
    type=FOLDER,
    help="With --changes: write each host's true change history there.",
)
def web_serve(
    folder: Path,
    host: str,
    port: int,
    faults: tuple[str, ...],
    seed: int,
    access_log: Path | None,
    changes: tuple[Path, ...],
    speed: float,
    day: float,
    truth: Path | None,
    **options: float,
) -> None:
    """Serve all hosts of a recorded web on one port until Ctrl-C."""
    from focused.cli.web_actions import serve_web
    from focused.recorded_web.changing_web import changing_web_type

    living = None
    if truth is not None and not changes:
        raise click.UsageError("--truth needs --changes.")
    if changes:
        living = changing_web_type().from_options(
            changes, speed, day=day, truth=truth, seed=seed, **options
        )
    serve_web(folder, host, port, faults, seed, access_log, living)
