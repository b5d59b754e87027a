"""The command ``focused export``: a crawl as a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FOLDER


@click.command()
@click.argument("where", metavar="CRAWL", type=ANY_PATH)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet", "markdown", "text", "csv"]),
    default="jsonl",
    show_default=True,
    help="markdown and text write a file for each record, the others a file for each split.",
)
@click.option(
    "--out", type=FOLDER, help="The output's folder. Default: CRAWL-corpus beside the crawl."
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "zstd"]),
    default="none",
    show_default=True,
    help="Compress the files of jsonl and csv. Parquet always uses zstd inside.",
)
@click.option(
    "--chunk-chars",
    type=click.IntRange(min=100),
    help="Cut pages into chunks of at most so many characters, for retrieval.",
)
@click.option(
    "--validation",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of the registered domains whose pages go to the validation split.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**64 - 1),
    default=0,
    show_default=True,
    help="Random seed of the validation split.",
)
@click.option(
    "--min-relevance",
    type=click.FloatRange(min=0, max=1),
    help="Export the pages of at least this relevance, instead of those on topic. 0: all pages.",
)
@click.option(
    "--language", "languages", multiple=True, help="Only this language (ISO 639-1). Repeatable."
)
@click.option(
    "--host", "hosts", multiple=True, help="Only this host, or the hosts below. Repeatable."
)
@click.option(
    "--not-host", "not_hosts", multiple=True, help="Not this host, nor those below. Repeatable."
)
@click.option(
    "--fetched-since",
    help="Only pages fetched from then on: a date or time in ISO 8601 (2026-01-31, "
    "2026-01-31T14:00; UTC unless it names an offset).",
)
@click.option("--fetched-until", help="Only pages fetched before.")
@click.option(
    "--published-since",
    help="Only pages that declare to be published from that day on (2026-01-31).",
)
@click.option("--published-until", help="Only pages that declare to be published before that day.")
@click.option(
    "--min-words",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Minimum number of words in the main text.",
)
@click.option(
    "--good-quality", is_flag=True, help="Leave out pages that fail a quality rule (see below)."
)
@click.option(
    "--not-robots",
    "robots",
    multiple=True,
    help="Leave out pages with this robots directive, such as noarchive, noai or tdm-reservation. "
    "Repeatable.",
)
@click.option("--duplicates", is_flag=True, help="Include duplicates of other pages.")
@click.option("--no-samples", is_flag=True, help="Leave out training samples of the classifier.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Parser processes. Default: one for each core.",
)
@click.option("--fresh", is_flag=True, help="Replace an earlier export in the same folder.")
def export(where: Path, form: str, out: Path | None, **options: Any) -> None:
    """Export the pages of a crawl as a corpus: main text, metadata and a data card.

    CRAWL is a crawl's folder or a topic file. The command works on a running crawl. The same
    command goes on with an interrupted export. See docs/how-to/export.md, and
    docs/reference/corpus.md for the columns and the quality rules.
    """
    from focused.cli.export_actions import export_crawl

    export_crawl(where, form, out, **options)
