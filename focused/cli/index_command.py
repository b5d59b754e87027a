"""``focused index``: send the pages of a crawl to a search server."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FILE, crawl_folder, echo
from focused.cli.selection_options import chunk_option, processes_option, selection_options


@click.command()
@click.argument("where", metavar="CRAWL", type=ANY_PATH)
@click.argument("server")
@click.option("--ca-certs", type=FILE, help="Certificates (PEM) to trust.")
@chunk_option
@selection_options
@processes_option
@click.option("--fresh", is_flag=True, help="Send also the pages that the server has.")
def index(where: Path, server: str, ca_certs: Path | None, fresh: bool, **options: Any) -> None:
    """Send the pages of a crawl to OpenSearch, Elasticsearch or Solr.

    CRAWL is a crawl's folder or a topic file; the crawl may run. SERVER is the address of the
    index: opensearch+https://USER@HOST:9200/INDEX, elasticsearch+https://... or
    solr+http://HOST:8983/solr/CORE. FOCUSED_INDEX_PASSWORD in the environment has the password.
    The same command later sends what changed. See docs/how-to/search-servers.md.
    """
    _update(crawl_folder(where), server, ca_certs, fresh=fresh, **options)


def _update(
    crawl: Path,
    server: str,
    ca_certs: Path | None,
    *,
    fresh: bool,
    chunk_chars: int | None,
    processes: int | None,
    **conditions: Any,
) -> None:
    from focused.cli.export_actions import page_filter
    from focused.cli.progress_bars import page_progress
    from focused.errors import ConfigurationError, SearchError
    from focused.parser_process import cores
    from focused.search.search_servers import connect
    from focused.search.server_address import parse_address
    from focused.search.server_update import update_server

    try:
        address = parse_address(server, os.environ, None if ca_certs is None else str(ca_certs))
    except ConfigurationError as error:
        raise ConfigurationError(f"SERVER: {error}") from None
    chosen = page_filter(**conditions)
    connected = connect(address)
    try:
        with page_progress(str(crawl), "indexing") as progress:
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
    finally:
        connected.close()
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
