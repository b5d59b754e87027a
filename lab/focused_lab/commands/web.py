"""``focused web``: build, import, inspect and serve recorded webs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER, echo, writing
from focused.errors import ConfigurationError

# What reads and serves webs is imported by the commands: the help of ``focused`` needs none of it.
if TYPE_CHECKING:
    from focused_lab.recorded_web.replay_clock import ReplayClock
    from focused_lab.recorded_web.web_import import ImportedWeb

_SHARE = click.FloatRange(0, 1)


@click.group()
def web() -> None:
    """Build, import, inspect and serve recorded webs."""


@web.command()
@click.argument("kind", type=click.Choice(["docweb", "foldoc", "wordnet", "debian"]))
@click.option(
    "--tier",
    type=click.Choice(["small", "medium", "full"]),
    default="small",
    show_default=True,
    help="Size of docweb.",
)
@click.option(
    "--folder",
    type=FOLDER,
    help="Default: webs/docweb-TIER or webs/KIND.",
)
@click.option(
    "--cache",
    type=FOLDER,
    default=Path("webs/packages"),
    show_default=True,
    help="Folder of packages and package lists.",
)
def build(kind: str, tier: str, folder: Path | None, cache: Path) -> None:
    """Make a recorded web from Debian packages.

    Needs apt-get, apt-cache and dpkg-deb, but not root. A web that is up to date is left unchanged.
    See docs/how-to/recorded-webs.md.
    """
    from focused_lab.builders.debian_site import build_debian_site
    from focused_lab.builders.docweb import build_docweb
    from focused_lab.builders.foldoc import build_foldoc
    from focused_lab.builders.wordnet import build_wordnet

    others = {"foldoc": build_foldoc, "wordnet": build_wordnet, "debian": build_debian_site}
    if kind == "docweb":
        built = build_docweb(folder or Path("webs") / f"docweb-{tier}", tier, cache, echo)
    else:
        built = others[kind](folder or Path("webs") / kind, cache, echo)
    echo(
        f"{built.folder}: {built.pages:,} pages on {built.hosts:,} hosts, "
        f"{built.redirects:,} redirects, from {built.download_bytes / 1e6:.1f} MB of packages"
    )


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
    from focused_lab.recorded_web.recorded_web import read_web_label_lines
    from focused_lab.recorded_web.web_import import import_html, import_warc

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
    from focused_lab.commands.web_info import print_web_info

    print_web_info(folder)


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
@click.option(
    "--changes",
    type=FILE,
    multiple=True,
    help="Let the pages change by this change history. Repeatable. See "
    "docs/how-to/recorded-webs.md#pages-that-change.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="With --changes: factor of the clock to real time.",
)
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
    from focused_lab.changing_web.change_options import ChangeOptions, ChangingReplay
    from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
    from focused_lab.recorded_web.replay_server import serve_forever

    changing = None
    if truth is not None and not changes:
        raise click.UsageError("--truth needs --changes.")
    if changes:
        changing = ChangingReplay(changes, ChangeOptions(seed=seed, **options), speed, day, truth)
    clocks: list[ReplayClock] = []

    def ready(port: int) -> None:
        options = [
            f"FOCUSED_RECORDED_WEB={folder}",
            f"FOCUSED_REPLAY={host}:{port}",
            *(f"FOCUSED_CLOCK={each}" for each in clocks),
        ]
        settings = "".join(f" -s {option}" for option in options)
        echo(f"serving {folder} on {host}:{port}; crawl it with: focused crawl FILE{settings}")

    serve_forever(
        folder,
        host=host,
        port=port,
        faults=FaultPlan(tuple(map(parse_fault, faults)), seed),
        access_log=access_log,
        changing=changing,
        on_clock=clocks.append,
        on_ready=ready,
    )


@web.command("changes")
@click.argument("folder", type=FOLDER)
@click.option(
    "--out",
    type=ANY_PATH,
    required=True,
    help="A file, .tsv or .tsv.gz, for all pages together, or a folder, for a file for each host.",
)
def web_changes(folder: Path, out: Path) -> None:
    """Write the changes that the crawl in FOLDER observed, as change histories.

    They are for focused web serve and focused compare-revisits. The crawl may run.
    """
    from focused_lab.freshness.observed_changes import export_changes

    with writing(out):
        written = export_changes(folder, out)
    echo(f"focused: wrote {len(written):,} change histories to {out}", err=True)


def _print_import(imported: ImportedWeb) -> None:
    echo(
        f"{imported.folder}: {imported.responses:,} responses; skipped: "
        f"{imported.skipped:,} without a page, {imported.damaged:,} damaged, "
        f"{imported.duplicates:,} repeated; {imported.unknown_labels:,} labels of unknown URLs"
    )
