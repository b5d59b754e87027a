"""``focused download``: read a crawl on many machines while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from focused.cli.common import ANY_PATH, echo


@click.command()
@click.argument("url")
@click.argument("folder", type=ANY_PATH)
def download(url: str, folder: Path) -> None:
    """Download a crawl on many machines from its shared storage, also while it runs.

    URL is the crawl's folder there: s3://bucket/crawls/NAME, file:///mnt/crawls/NAME. FOLDER, a new
    one, gets what the last round of the crawl has committed. report, why, export, search, index and
    graph take it like the folder of any crawl. See
    docs/how-to/many-machines.md#stop-resume-results.
    """
    from focused.rounds.download import download_crawl

    manifest = download_crawl(url, folder)
    pages = sum(int(each.counters.get("fetched", 0)) for each in manifest.records.values())
    echo(f"{folder}: {pages:,} pages, as of round {manifest.round}")
