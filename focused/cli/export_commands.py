"""``focused export``: a crawl as a corpus. ``focused download``: a crawl on many machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FOLDER, echo
from focused.cli.selection_options import chunk_option, processes_option, selection_options


@click.command()
@click.argument("where", metavar="CRAWL", type=ANY_PATH)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet", "markdown", "text", "csv"]),
    default="jsonl",
    show_default=True,
    help="markdown and text write a file per record, the others one per split.",
)
@click.option(
    "--out", type=FOLDER, help="The output's folder. Default: CRAWL-corpus beside the crawl."
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "zstd"]),
    default="none",
    show_default=True,
    help="Compress jsonl and csv. Parquet always uses zstd.",
)
@chunk_option
@click.option(
    "--validation",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of registered domains in the validation split.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**64 - 1),
    default=0,
    show_default=True,
    help="Random seed of the validation split.",
)
@selection_options
@click.option(
    "--guess-dates",
    is_flag=True,
    help="Search texts for undeclared days of publication: finds more, and wrong ones.",
)
@click.option(
    "--graph",
    type=FOLDER,
    help="The crawl's link graph ('focused graph build'): fills the columns authority and hub.",
)
@processes_option
@click.option("--fresh", is_flag=True, help="Replace an earlier export in the same folder.")
def export(where: Path, form: str, out: Path | None, **options: Any) -> None:
    """Export the pages of a crawl as a corpus: main text, metadata and a data card.

    CRAWL is a crawl's folder or a topic file; the crawl may run. The same command goes on with an
    interrupted export. See docs/how-to/export.md and docs/reference/corpus.md.
    """
    from focused.cli.export_actions import export_crawl

    export_crawl(where, form, out, **options)


@click.command()
@click.argument("url")
@click.argument("folder", type=ANY_PATH)
def download(url: str, folder: Path) -> None:
    """Download a crawl on many machines from its shared storage, also while it runs.

    URL is the crawl's folder there: s3://bucket/crawls/NAME, file:///mnt/crawls/NAME. FOLDER, a new
    one, gets what the last round has committed. See
    docs/how-to/many-machines.md#stop-resume-results.
    """
    from focused.rounds.download import download_crawl

    manifest = download_crawl(url, folder)
    pages = sum(int(each.counters.get("fetched", 0)) for each in manifest.records.values())
    echo(f"{folder}: {pages:,} pages, as of round {manifest.round}")
