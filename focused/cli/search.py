"""``focused search``: full-text search over the pages of a crawl."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, crawl_folder, echo


@click.command()
@click.argument("where", type=ANY_PATH)
@click.argument("query", default="")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Results."
)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip the first results.")
@click.option("--on-topic", is_flag=True, help="Only pages on topic.")
@click.option("--host", default="", help="Only pages of this host.")
@click.option("--language", default="", help="Only pages in this language (ISO 639-1).")
@click.option(
    "--min-relevance", type=click.FloatRange(0, 1), help="Only pages of at least this relevance."
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Only pages fetched on this day (UTC) or later.",
)
@click.option(
    "--plain", is_flag=True, help="Rank by words alone, without relevance and number of links."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-update", is_flag=True, help="Do not index new pages first.")
def search(where: Path, query: str, as_json: bool, no_update: bool, **options: Any) -> None:
    """Search the pages of a crawl by words.

    WHERE is a crawl's folder or its topic file; the crawl may run. The command updates the index
    first; without QUERY that is all. See docs/how-to/search.md#queries.
    """
    crawl = crawl_folder(where)
    if not no_update:
        _update(crawl)
    if query:
        _search(crawl, query, as_json=as_json, **options)


def _update(crawl: Path) -> None:
    from focused.cli.progress_bars import page_progress
    from focused.parser_process import cores
    from focused.search.index import update_index

    with page_progress(str(crawl), "indexing") as progress:
        done = update_index(crawl, now=time.time(), processes=cores(), progress=progress)
    if done.added or done.removed:
        echo(
            f"focused: indexed {done.added:,} pages, removed {done.removed:,}; "
            f"{done.indexed:,} pages can be searched",
            err=True,
        )


def _search(
    crawl: Path, text: str, *, as_json: bool, since: datetime | None, **options: Any
) -> None:
    from rich.console import Console
    from rich.text import Text

    from focused.reports.formatting import print_line, single_line
    from focused.search.index import CrawlSearch, SearchQuery

    since_s = None if since is None else since.replace(tzinfo=UTC).timestamp()
    result = CrawlSearch(crawl).search(SearchQuery(text, since=since_s, **options))
    if as_json:
        click.echo(json.dumps(asdict(result), indent=1))
        return
    console = Console()
    for rank, hit in enumerate(result.hits, start=options["offset"] + 1):
        print_line(console, f"{rank}. {single_line(hit.title) or '(no title)'}", "bold")
        print_line(console, f"   {single_line(hit.url)}", "cyan")
        snippet = Text(f"   {hit.snippet}")
        for start, end in hit.highlights:
            snippet.stylize("bold", 3 + start, 3 + end)
        console.print(snippet, soft_wrap=True)
        topic = "on topic" if hit.on_topic else "off topic"
        print_line(console, f"   {topic}, relevance {hit.relevance:.2f}", "dim")
    echo(f"{result.total:,} pages match")
