"""``focused export``, ``index`` and ``download``: the pages of a crawl for other programs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import click

from focused.cli.common import (
    ANY_PATH,
    FILE,
    FOLDER,
    Converted,
    add_options,
    crawl_folder,
    echo,
    parse_time,
    writing,
)
from focused.cli.progress_bars import page_progress, step_progress
from focused.corpus.data_card import ExportResult
from focused.corpus.export import CARD_FILE, export_corpus
from focused.corpus.page_selection import ExportOptions, PageFilter
from focused.corpus.writers import COMPRESSIONS, FORMATS, has_compression
from focused.errors import ConfigurationError, SearchError
from focused.parser_process import cores
from focused.search.search_servers import connect, parse_address
from focused.search.server_update import update_server


def _language(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2}", text):
        raise ValueError
    return text


_TIME = Converted("TIME", parse_time, "is no date or time in ISO 8601, such as 2026-01-31")
_DAY = Converted(
    "DAY", lambda text: date.fromisoformat(text).isoformat(), "is no date, such as 2026-01-31"
)
_LANGUAGE = Converted("TEXT", _language, "is no code of ISO 639-1, such as en or de")
_LOWER = Converted("TEXT", str.lower)

_chunk_option = click.option(
    "--chunk-chars",
    type=click.IntRange(min=100),
    help="Cut pages into chunks of at most so many characters.",
)
_processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=cores,
    help="Parser processes. Default: one for each core.",
)
_selection_options = add_options(
    click.option(
        "--min-relevance",
        type=click.FloatRange(min=0, max=1),
        help="Pages of at least this relevance, instead of those on topic. 0: all pages.",
    ),
    click.option(
        "--language",
        "languages",
        multiple=True,
        type=_LANGUAGE,
        help="Only this language (ISO 639-1). Repeatable.",
    ),
    click.option(
        "--host",
        "hosts",
        multiple=True,
        type=_LOWER,
        help="Only this host and its subdomains. Repeatable.",
    ),
    click.option(
        "--not-host",
        "not_hosts",
        multiple=True,
        type=_LOWER,
        help="Not this host, nor its subdomains. Repeatable.",
    ),
    click.option(
        "--fetched-since",
        type=_TIME,
        help="Only pages fetched from then on: 2026-01-31 or 2026-01-31T14:00, UTC unless it names "
        "an offset.",
    ),
    click.option("--fetched-until", type=_TIME, help="Only pages fetched before."),
    click.option("--published-since", type=_DAY, help="Only pages published from that day on."),
    click.option("--published-until", type=_DAY, help="Only pages published before that day."),
    click.option(
        "--min-words",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Minimum number of words in the main text.",
    ),
    click.option(
        "--good-quality",
        is_flag=True,
        help="Leave out pages that fail a rule of docs/reference/corpus.md#quality-rules.",
    ),
    click.option(
        "--not-robots",
        "robots",
        multiple=True,
        type=_LOWER,
        help="Leave out pages with this robots directive, such as noai. Repeatable.",
    ),
    click.option("--duplicates", is_flag=True, help="Include duplicates of other pages."),
    click.option(
        "--no-samples",
        "samples",
        flag_value=False,
        default=True,
        help="Leave out training samples of the classifier.",
    ),
)
"""Options with the names of the fields of :class:`PageFilter`."""


def _page_filter(options: dict[str, Any]) -> PageFilter:
    """Take the options of a :class:`PageFilter` out of ``options``."""
    return PageFilter(**{name: options.pop(name) for name in PageFilter.__struct_fields__})


@click.command()
@click.argument("where", metavar="CRAWL", type=ANY_PATH)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="markdown and text write a file per record, the others one per split.",
)
@click.option(
    "--out", type=FOLDER, help="The output's folder. Default: CRAWL-corpus beside the crawl."
)
@click.option(
    "--compression",
    type=click.Choice(list(COMPRESSIONS)),
    default="none",
    show_default=True,
    help="Compress jsonl and csv. Parquet always uses zstd.",
)
@_chunk_option
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
@_selection_options
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
@_processes_option
@click.option("--fresh", is_flag=True, help="Replace an earlier export in the same folder.")
def export(
    where: Path, out: Path | None, graph: Path | None, processes: int, fresh: bool, **options: Any
) -> None:
    """Export the pages of a crawl as a corpus: main text, metadata and a data card.

    CRAWL is a crawl's folder or a topic file; the crawl may run. The same command goes on with an
    interrupted export. See docs/how-to/export.md and docs/reference/corpus.md.
    """
    if options["compression"] != "none" and not has_compression(options["form"]):
        raise ConfigurationError(f"--compression: {options['form']} has none; leave the option out")
    crawl = crawl_folder(where)
    named = crawl.resolve()  # "." has no name
    folder = out or named.with_name(f"{named.name}-corpus")
    with step_progress() as progress, writing(folder):
        result = export_corpus(
            crawl,
            folder,
            ExportOptions(
                pages=_page_filter(options),
                graph=None if graph is None else str(graph.resolve()),
                **options,
            ),
            now=time.time(),
            processes=processes,
            progress=progress,
            fresh=fresh,
        )
    for line in _result_lines(folder, result):
        echo(f"focused: {line}", err=True)


@click.command()
@click.argument("url")
@click.argument("folder", type=ANY_PATH)
def download(url: str, folder: Path) -> None:
    """Download a crawl on many machines from its shared storage, also while it runs.

    URL is the crawl's folder there: s3://bucket/crawls/NAME, file:///mnt/crawls/NAME. FOLDER, a new
    one, gets what the last round has committed. See
    docs/how-to/many-machines.md#stop-resume-results.
    """
    from focused.rounds.replication import download_crawl

    manifest = download_crawl(url, folder)
    pages = sum(int(each.counters.get("fetched", 0)) for each in manifest.records.values())
    echo(f"{folder}: {pages:,} pages, as of round {manifest.round}")


@click.command()
@click.argument("where", metavar="CRAWL", type=ANY_PATH)
@click.argument("server")
@click.option("--ca-certs", type=FILE, help="Certificates (PEM) to trust.")
@_chunk_option
@_selection_options
@_processes_option
@click.option("--fresh", is_flag=True, help="Send also the pages that the server has.")
def index(
    where: Path,
    server: str,
    ca_certs: Path | None,
    chunk_chars: int | None,
    processes: int,
    fresh: bool,
    **conditions: Any,
) -> None:
    """Send the pages of a crawl to OpenSearch, Elasticsearch or Solr.

    CRAWL is a crawl's folder or a topic file; the crawl may run. SERVER is the address of the
    index: opensearch+https://USER@HOST:9200/INDEX, elasticsearch+https://... or
    solr+http://HOST:8983/solr/CORE. FOCUSED_INDEX_PASSWORD in the environment has the password.
    The same command later sends what changed. See docs/how-to/search-servers.md.
    """
    crawl = crawl_folder(where)
    try:
        address = parse_address(server, os.environ, None if ca_certs is None else str(ca_certs))
    except ConfigurationError as error:
        raise ConfigurationError(f"SERVER: {error}") from None
    with closing(connect(address)) as connected, page_progress(str(crawl), "indexing") as progress:
        result = update_server(
            crawl,
            connected,
            address,
            _page_filter(conditions),
            now=time.time(),
            chunk_chars=chunk_chars,
            processes=processes,
            fresh=fresh,
            progress=progress,
        )
    lines = [
        f"sent {result.documents:,} documents of {result.pages:,} pages to {address}, "
        f"removed {result.removed:,} pages"
    ]
    if result.empty:
        lines.append(f"left out {result.empty:,} pages without text or by conditions on it")
    for line in (*lines, *(f"refused {each.id}: {each.reason}" for each in result.reasons)):
        echo(f"focused: {line}", err=True)
    if result.rejected:
        raise SearchError(f"{address}: refused {result.rejected:,} documents")


def _result_lines(folder: Path, result: ExportResult) -> Iterator[str]:
    if result.was_complete:
        yield f"{folder} holds this export already; --fresh makes it anew"
        return
    yield (
        f"wrote {result.records:,} records of {result.pages:,} pages with {result.words:,} words "
        f"to {folder}"
    )
    if result.filtered:
        yield f"left out {result.filtered:,} pages by conditions on their text"
    for reason, pages in sorted(result.reasons.items()):
        yield f"no document of {pages:,} pages: {reason}"
    yield f"the data card is {folder / CARD_FILE}"
