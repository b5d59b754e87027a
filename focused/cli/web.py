"""``focused web``: import, inspect and serve recorded webs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.cli import ExtensibleGroup
from focused.cli.common import FILE, FOLDER, changing_web_options, echo
from focused.errors import ConfigurationError
from focused.recorded_web.changing_web import ReplayClock, changing_web_type
from focused.recorded_web.recorded_web import RecordedWeb, read_web_label_lines
from focused.recorded_web.replay_faults import FaultPlan, parse_fault
from focused.recorded_web.replay_server import serve_forever
from focused.recorded_web.web_import import ImportedWeb, import_html, import_warc
from focused.reports.formatting import single_line
from focused.web.urls import host_of

_SHARE = click.FloatRange(0, 1)
_MAX_ROWS = 20


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
    lines = () if labels is None else read_web_label_lines(labels)
    if len(sources) == 1 and sources[0].is_dir():
        if base_url is None:
            raise ConfigurationError(
                f"--base-url is missing: what is the URL of {sources[0]}? "
                "For example --base-url https://docs.example.org/"
            )
        _print_import(import_html(sources[0], base_url, folder, folder.name, lines))
        return
    for source in sources:
        if source.is_dir():
            raise ConfigurationError(f"{source} is a folder: give one folder alone, or WARC files")
    _print_import(import_warc(sources, folder, folder.name, lines))


@web.command("info")
@click.argument("folder", type=FOLDER)
def show_info(folder: Path) -> None:
    """Print pages, redirects, hosts, categories and damage of a recorded web."""
    with RecordedWeb.open(folder) as opened:
        redirects = sum(300 <= (opened.status(url) or 0) < 400 for url in opened.urls)
        hosts = Counter(host_of(url) for url in opened.page_urls)
        categories = Counter(chain.from_iterable(opened.labels.values()))
        rows = {
            "pages": len(opened.page_urls),
            "redirects": redirects,
            "other responses": len(opened) - len(opened.page_urls) - redirects,
            "hosts": len(hosts),
            "labelled pages": len(opened.labels),
            "damaged records": opened.damaged,
            "bytes": sum(file.stat().st_size for file in folder.glob("*.warc.gz")),
        }
        name = str(opened.details.get("name", folder.name))
    table = Table(title=Text(single_line(name)), title_justify="left", show_header=False)
    for row, count in rows.items():
        table.add_row(row, f"{count:,}")
    console = Console()
    console.print(table)
    for title, counts in (("Hosts", hosts), ("Categories", categories)):
        console.print(_counts(title, counts.most_common()))


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
    type=_SHARE,
    default=0.5,
    show_default=True,
    help="With --changes: share of hosts with a sitemap.",
)
@click.option(
    "--feeds",
    type=_SHARE,
    default=0.25,
    show_default=True,
    help="With --changes: share of hosts with a feed.",
)
@click.option(
    "--announced",
    type=_SHARE,
    default=0.5,
    show_default=True,
    help="With --changes: share of changes in sitemap and feed; half of the hosts state all.",
)
@click.option(
    "--noise",
    type=_SHARE,
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

    living = None
    if truth is not None and not changes:
        raise click.UsageError("--truth needs --changes.")
    if changes:
        living = changing_web_type().from_options(
            changes, speed, day=day, truth=truth, seed=seed, **options
        )
    clocks: list[ReplayClock] = []

    def ready(port: int) -> None:
        options = [f"FOCUSED_REPLAY={host}:{port}", *(f"FOCUSED_CLOCK={each}" for each in clocks)]
        settings = "".join(f" -s {option}" for option in options)
        echo(f"serving {folder} on {host}:{port}; crawl it with: focused crawl FILE{settings}")

    serve_forever(
        folder,
        host=host,
        port=port,
        faults=FaultPlan(tuple(map(parse_fault, faults)), seed),
        access_log=access_log,
        living=living,
        on_clock=clocks.append,
        on_ready=ready,
    )


def _counts(title: str, counts: Sequence[tuple[str, int]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    for name, count in counts[:_MAX_ROWS]:
        table.add_row(Text(single_line(name)), f"{count:,}")
    if len(counts) > _MAX_ROWS:
        rest = sum(count for _, count in counts[_MAX_ROWS:])
        table.add_row(f"{len(counts) - _MAX_ROWS} more", f"{rest:,}")
    return table


def _print_import(imported: ImportedWeb) -> None:
    echo(
        f"{imported.folder}: {imported.responses:,} responses; skipped: "
        f"{imported.skipped:,} without a page, {imported.damaged:,} damaged, "
        f"{imported.duplicates:,} repeated; {imported.unknown_labels:,} labels of unknown URLs"
    )
