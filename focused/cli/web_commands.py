"""``focused web ...``: commands for recorded webs."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, changing_web_options, echo

SHARE = click.FloatRange(0, 1)


@click.group()
def web() -> None:
    """Build, import, inspect and serve recorded webs."""


@web.command("build")
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
    help="Folder of the recorded web. Default: webs/docweb-TIER or webs/KIND.",
)
@click.option(
    "--cache",
    type=FOLDER,
    default=Path("webs/packages"),
    show_default=True,
    help="Folder of downloaded packages and package lists.",
)
def web_build(kind: str, tier: str, folder: Path | None, cache: Path) -> None:
    """Make a recorded web from Debian packages.

    docweb: documentation on many hosts. foldoc, wordnet: dictionaries, one host each. debian: the
    pages of Debian's package index. Needs apt-get, apt-cache and dpkg-deb, but not root. A web
    that is up to date is left unchanged.
    """
    from focused.cli.web_actions import store_link_count
    from focused.recorded_web.builders.debian_site import build_debian_site
    from focused.recorded_web.builders.docweb import build_docweb
    from focused.recorded_web.builders.foldoc import build_foldoc
    from focused.recorded_web.builders.wordnet import build_wordnet

    others = {"foldoc": build_foldoc, "wordnet": build_wordnet, "debian": build_debian_site}
    if kind == "docweb":
        built = build_docweb(folder or Path("webs") / f"docweb-{tier}", tier, cache, echo)
    else:
        built = others[kind](folder or Path("webs") / kind, cache, echo)
    store_link_count(built.folder)
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
    help="A labels.tsv: URL, tab, category. Labels of unknown URLs are counted and ignored.",
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
    help="Port to listen on; 0 takes a free one and prints it.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Inject faults: HOSTPATTERN:kind=503,rate=0.1. Repeatable. See "
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
    help="With --changes: day of the replayed years at which the clock begins.",
)
@click.option(
    "--years",
    type=click.FloatRange(0, 100, min_open=True),
    default=1.0,
    show_default=True,
    help="With --changes: how many last years of the histories are replayed.",
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
    help="With --changes: share of changes in sitemap and feed; half of the hosts announce all.",
)
@click.option(
    "--noise",
    type=SHARE,
    default=0.25,
    show_default=True,
    help="With --changes: share of hosts whose pages contain date, counter and rotating "
    "navigation.",
)
@click.option(
    "--truth",
    type=FOLDER,
    help="With --changes: write the true change history of each host there, to evaluate crawls.",
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
    from focused.recorded_web.living_options import LivingOptions, LivingReplay

    living = None
    if truth is not None and not changes:
        raise click.UsageError("--truth needs --changes.")
    if changes:
        living = LivingReplay(changes, LivingOptions(seed=seed, **options), speed, day, truth)
    serve_web(folder, host, port, faults, seed, access_log, living)
