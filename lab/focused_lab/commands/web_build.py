"""``focused web build``: recorded webs from Debian packages."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.common import FOLDER, echo


@click.command()
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
