"""``focused export``, ``index`` and ``download``: the pages of a crawl for other programs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER, crawl_folder, echo, parse_time, writing
from focused.cli.progress_bars import page_progress, progress_bar
from focused.corpus.export import CARD_FILE, ExportResult, ProgressCallback, export_corpus
from focused.corpus.page_selection import ExportOptions, PageFilter
from focused.corpus.writers import has_compression
from focused.errors import ConfigurationError, SearchError
from focused.parser_process import cores
from focused.search.search_servers import connect, parse_address
from focused.search.server_update import update_server

_chunk_option = click.option(
    "--chunk-chars",
    type=click.IntRange(min=100),
    help="Cut pages into chunks of at most so many characters.",
)
_processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Parser processes. Default: one for each core.",
)
_OPTIONS = (
    click.option(
        "--min-relevance",
        type=click.FloatRange(min=0, max=1),
        help="Pages of at least this relevance, instead of those on topic. 0: all pages.",
    ),
    click.option(
        "--language", "languages", multiple=True, help="Only this language (ISO 639-1). Repeatable."
    ),
    click.option(
        "--host", "hosts", multiple=True, help="Only this host and its subdomains. Repeatable."
    ),
    click.option(
        "--not-host",
        "not_hosts",
        multiple=True,
        help="Not this host, nor its subdomains. Repeatable.",
    ),
    click.option(
        "--fetched-since",
        help="Only pages fetched from then on: 2026-01-31 or 2026-01-31T14:00, UTC unless it names "
        "an offset.",
    ),
    click.option("--fetched-until", help="Only pages fetched before."),
    click.option(
        "--published-since",
        help="Only pages published from that day on.",
    ),
    click.option("--published-until", help="Only pages published before that day."),
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
        help="Leave out pages with this robots directive, such as noai. Repeatable.",
    ),
    click.option("--duplicates", is_flag=True, help="Include duplicates of other pages."),
    click.option(
        "--no-samples", is_flag=True, help="Leave out training samples of the classifier."
    ),
)


def _selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :func:`_page_filter`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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
    where: Path, form: str, out: Path | None, processes: int | None, fresh: bool, **options: Any
) -> None:
    """Export the pages of a crawl as a corpus: main text, metadata and a data card.

    CRAWL is a crawl's folder or a topic file; the crawl may run. The same command goes on with an
    interrupted export. See docs/how-to/export.md and docs/reference/corpus.md.
    """
    crawl = crawl_folder(where)
    named = crawl.resolve()  # "." has no name
    folder = out or named.with_name(f"{named.name}-corpus")
    now = time.time()
    with _progress() as progress, writing(folder):
        result = export_corpus(
            crawl,
            folder,
            _export_options(form, **options),
            now=now,
            processes=processes or cores(),
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
    processes: int | None,
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
    chosen = _page_filter(**conditions)
    with (
        closing(connect(address)) as connected,
        page_progress(str(crawl), "indexing") as progress,
    ):
        result = update_server(
            crawl,
            connected,
            address,
            chosen,
            now=time.time(),
            chunk_chars=chunk_chars,
            processes=processes or cores(),
            fresh=fresh,
            progress=progress,
        )
    echo(
        f"focused: sent {result.documents:,} documents of {result.pages:,} pages to {address}, "
        f"removed {result.removed:,} pages",
        err=True,
    )
    if result.empty:
        echo(
            f"focused: left out {result.empty:,} pages without text or by conditions on it",
            err=True,
        )
    for each in result.reasons:
        echo(f"focused: refused {each.id}: {each.reason}", err=True)
    if result.rejected:
        raise SearchError(f"{address}: refused {result.rejected:,} documents")


_LANGUAGE = re.compile(r"[a-z]{2}")


def _export_options(
    form: str,
    *,
    compression: str,
    chunk_chars: int | None,
    validation: float,
    seed: int,
    graph: Path | None,
    guess_dates: bool,
    **conditions: Any,
) -> ExportOptions:
    """Return the checked options. Raises ConfigurationError."""
    if compression != "none" and not has_compression(form):
        raise ConfigurationError(f"--compression: {form} has none; leave the option out")
    return ExportOptions(
        form=form,
        pages=_page_filter(**conditions),
        chunk_chars=chunk_chars,
        validation=validation,
        seed=seed,
        compression=compression,
        graph=None if graph is None else str(graph.resolve()),
        guess_dates=guess_dates,
    )


def _page_filter(
    *,
    fetched_since: str | None,
    fetched_until: str | None,
    published_since: str | None,
    published_until: str | None,
    no_samples: bool,
    **conditions: Any,
) -> PageFilter:
    """Return the filter of the options in :func:`_selection_options`. Raises ConfigurationError."""
    for language in conditions["languages"]:
        if not _LANGUAGE.fullmatch(language):
            raise ConfigurationError(
                f"--language {language}: is no code of ISO 639-1, such as en or de"
            )
    return PageFilter(
        fetched_since=_timestamp("--fetched-since", fetched_since),
        fetched_until=_timestamp("--fetched-until", fetched_until),
        published_since=_day("--published-since", published_since),
        published_until=_day("--published-until", published_until),
        samples=not no_samples,
        hosts=_lower(conditions.pop("hosts")),
        not_hosts=_lower(conditions.pop("not_hosts")),
        robots=_lower(conditions.pop("robots")),
        **conditions,
    )


def _lower(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value.strip().lower() for value in values)


def _timestamp(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise ConfigurationError(
            f"{option} {text}: is no date or time in ISO 8601, such as 2026-01-31"
        ) from None


def _day(option: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ConfigurationError(f"{option} {text}: is no date, such as 2026-01-31") from None


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


@contextmanager
def _progress() -> Iterator[ProgressCallback]:
    """Show a progress bar; without a terminal, a line for each tenth of each step."""
    with progress_bar() as bar:
        task = bar.add_task("", total=None)
        said = ("", -1)

        def advance(step: str, done: int, total: int) -> None:
            nonlocal said
            bar.update(task, description=step, completed=done, total=total or None)
            tenth = 10 * done // total if total else 0
            if not bar.console.is_terminal and (step, tenth) != said:
                said = (step, tenth)
                echo(
                    f"focused: {step}: {done:,} of {total:,} pages"
                    if total
                    else f"focused: {step}",
                    err=True,
                )

        yield advance
