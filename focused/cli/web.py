"""``focused web ...``: the commands for recorded webs."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.options import FILE, FOLDER
from focused.cli.output import echo


@click.group()
def web() -> None:
    """Recorded webs: build, import, look at, serve."""


@web.command("build")
@click.argument("kind", type=click.Choice(["docweb", "foldoc", "wordnet", "debian"]))
@click.option("--tier", type=click.Choice(["small", "medium", "full"]), default="small")
@click.option("--folder", type=FOLDER, help="Default: webs/docweb-TIER or webs/KIND.")
@click.option(
    "--cache", type=FOLDER, default=Path("webs/packages"), help="Keeps what was downloaded."
)
def web_build(kind: str, tier: str, folder: Path | None, cache: Path) -> None:
    """Make a recorded web from Debian packages.

    docweb: documentation on many hosts. foldoc, wordnet: dictionaries, one host each.
    debian: the pages of Debian's package index.
    """
    from focused.cli.webs import count_links_of
    from focused.recorded.debian_site import build_debian_site
    from focused.recorded.docweb import build_docweb
    from focused.recorded.foldoc import build_foldoc
    from focused.recorded.wordnet import build_wordnet

    others = {"foldoc": build_foldoc, "wordnet": build_wordnet, "debian": build_debian_site}
    if kind == "docweb":
        built = build_docweb(folder or Path("webs") / f"docweb-{tier}", tier, cache, echo)
    else:
        built = others[kind](folder or Path("webs") / kind, cache, echo)
    count_links_of(built.folder)
    echo(
        f"{built.folder}: {built.pages:,} pages on {built.hosts:,} hosts, "
        f"{built.redirects:,} redirects, from {built.download_bytes / 1e6:.1f} MB of packages"
    )


@web.command("import")
@click.argument("sources", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--folder", type=FOLDER, required=True, help="Where the recorded web goes.")
@click.option("--base-url", help="For a folder of HTML: the address of its top.")
@click.option("--labels", type=FILE, help="A labels.tsv: url, tab, category.")
def web_import(
    sources: tuple[Path, ...], folder: Path, base_url: str | None, labels: Path | None
) -> None:
    """Make a recorded web from a folder of HTML, or from WARC files of others."""
    from focused.cli.webs import import_sources

    import_sources(sources, folder, base_url, labels)


@web.command("info")
@click.argument("folder", type=FOLDER)
def web_info(folder: Path) -> None:
    """Print pages, hosts, links and categories of a recorded web."""
    from focused.cli.webs import show_web

    show_web(folder)


@web.command("serve")
@click.argument("folder", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True)
@click.option("--fault", "faults", multiple=True, help="HOSTPATTERN:kind=503,rate=0.1; see docs.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the faults' dice.")
@click.option("--access-log", type=FILE, help="One JSON line per request.")
def web_serve(
    folder: Path,
    host: str,
    port: int,
    faults: tuple[str, ...],
    seed: int,
    access_log: Path | None,
) -> None:
    """Answer for all hosts of a recorded web on one loopback port."""
    from focused.cli.webs import serve_web

    serve_web(folder, host, port, faults, seed, access_log)
