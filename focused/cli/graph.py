"""``focused graph``: the link graph of crawls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.filesize import decimal

from focused.archive.crawl_tables import url_spellings
from focused.cli.common import ANY_PATH, FILE, FOLDER, add_options, crawl_folder, echo, writing
from focused.errors import ConfigurationError
from focused.link_graph.measures import best_pages, distill_topic, pagerank
from focused.link_graph.page_graph import (
    ExportedGraph,
    PageGraph,
    default_graph_folder,
    write_graph,
)
from focused.link_graph.stored_arrays import Nodes, SuccessorLists
from focused.reports.formatting import text_table

_MEASURES = ("authority", "hub", "in-degree", "pagerank", "topic-pagerank")
_graph_argument = click.argument("folder", metavar="GRAPH", type=FOLDER)
_limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum of lines."
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def graph() -> None:
    """Ask who links to whom in crawls, and rate pages by their links.

    GRAPH is the folder of a graph that 'focused graph build' made. See docs/how-to/link-graph.md.
    """


@graph.command()
@click.argument("crawls", metavar="CRAWL...", type=ANY_PATH, nargs=-1, required=True)
@click.option(
    "--out", type=FOLDER, help="The graph's folder. Default: CRAWL-graph beside the first crawl."
)
@click.option("--without-nofollow", is_flag=True, help="Leave out links with rel=nofollow.")
@click.option(
    "--memory-mb",
    type=click.IntRange(min=100),
    default=1_000,
    show_default=True,
    help="Memory for sorting, besides some 180 bytes a URL.",
)
def build(
    crawls: tuple[Path, ...], out: Path | None, without_nofollow: bool, memory_mb: int
) -> None:
    """Build the link graph of crawls, and replace an earlier one.

    CRAWL is a crawl's folder or a topic file; the crawl may run.
    """
    from focused.link_graph.build import build_graph  # needs duckdb

    folders = [crawl_folder(path) for path in crawls]
    folder = out or default_graph_folder(folders[0])
    try:
        with writing(folder):
            info = build_graph(
                folders,
                folder,
                nofollow=not without_nofollow,
                memory_mb=memory_mb,
                progress=lambda step: echo(f"focused: {step}", err=True),
            )
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # what DuckDB makes of Ctrl-C
            raise
        raise click.Abort from error
    echo(f"focused: {info.nodes:,} pages and {info.links:,} links are in {folder}", err=True)


_listing = add_options(
    _limit_option,
    click.option("--hosts", is_flag=True, help="Ask the host graph: URL is a host."),
    click.option("--anchors", is_flag=True, help="Print the anchors, too."),
    _json_option,
)
"""The options of commands that list the links of a page."""


@graph.command("in")
@_graph_argument
@click.argument("url")
@_listing
def in_links(folder: Path, url: str, **options: Any) -> None:
    """List the pages that link to URL."""
    _show_links(folder, url, into=True, **options)


@graph.command("out")
@_graph_argument
@click.argument("url")
@_listing
def out_links(folder: Path, url: str, **options: Any) -> None:
    """List the pages that URL links to."""
    _show_links(folder, url, into=False, **options)


@graph.command()
@_graph_argument
@_json_option
def stats(folder: Path, as_json: bool) -> None:
    """Print the size of the graph, its degrees and its files."""
    graph = PageGraph(folder)
    out, into = graph.out.degrees, graph.into.degrees
    values: dict[str, Any] = {
        "crawls": [each.crawl for each in graph.info.sources],
        "pages": len(graph),
        "fetched": len(graph.pages.nodes),
        "links": graph.links,
        "hosts": len(graph.hosts.names),
        "links between hosts": int(graph.hosts.links.sum() - graph.hosts.links.trace()),
        "pages with links": int((out > 0).sum()),
        "largest out-degree": int(out.max(initial=0)),
        "largest in-degree": int(into.max(initial=0)),
        "files": decimal(graph.stored_bytes),
    }
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False, indent=1))
        return
    for name, value in values.items():
        echo(f"{name}: {_shown(value)}")


@graph.command()
@_graph_argument
@click.option(
    "--by",
    type=click.Choice(_MEASURES),
    default="authority",
    show_default=True,
    help="The measure. See docs/explanation/link-graph.md#measures.",
)
@click.option("--hosts", is_flag=True, help="Hosts, by in-degree or pagerank.")
@_limit_option
@_json_option
def top(folder: Path, by: str, hosts: bool, limit: int, as_json: bool) -> None:
    """List the best pages by a measure of their links."""
    graph = PageGraph(folder)
    if hosts:
        _print_rows(_top_hosts(graph, by, limit), as_json=as_json)
        return
    nodes, scores = _page_scores(graph, by)
    rows: list[dict[str, Any]] = [
        {
            by: _rounded(by, score),
            "relevance": None if value != value else round(value, 3),
            "url": url,
        }
        for url, score, value in best_pages(graph, nodes, scores, limit)
    ]
    _print_rows(rows, as_json=as_json)


@graph.command()
@_graph_argument
@click.argument("file", type=FILE)
@click.option("--hosts", is_flag=True, help="The host graph, with the number of links.")
@click.option("--fetched", is_flag=True, help="Only fetched pages, and the links among them.")
def export(folder: Path, file: Path, hosts: bool, fetched: bool) -> None:
    """Write the graph to FILE: .graphml or .parquet."""
    if hosts and fetched:
        raise ConfigurationError("--fetched is for pages: leave out --hosts")
    graph = PageGraph(folder)
    exported = (
        ExportedGraph.hosts(graph) if hosts else ExportedGraph.pages(graph, fetched_only=fetched)
    )
    with writing(file):
        write_graph(exported, file)
    echo(f"focused: wrote {file}", err=True)


def _show_links(
    folder: Path, url: str, *, into: bool, limit: int, hosts: bool, anchors: bool, as_json: bool
) -> None:
    """List the links to or from a page or host."""
    graph = PageGraph(folder)
    if hosts:
        _show_host_links(graph, url, into=into, limit=limit, as_json=as_json)
        return
    node = _node(graph, url)
    found = (graph.into if into else graph.out)[node]
    rows: list[dict[str, Any]] = [{"url": other} for other in graph.urls.urls(found[:limit])]
    if anchors:
        shown = {row["url"]: row for row in rows}
        texts = graph.anchors(**{"target" if into else "source": graph.urls[node]})
        for link in texts:
            row = shown.get(link.source if into else link.target)
            if row is not None and "anchor" not in row:
                row |= {"anchor": link.anchor, "nofollow": link.nofollow}
    _print_rows(rows, as_json=as_json)
    _print_rest(len(found) - len(rows), as_json=as_json)


def _show_host_links(graph: PageGraph, host: str, *, into: bool, limit: int, as_json: bool) -> None:
    links = graph.hosts.links.T.tocsr() if into else graph.hosts.links
    row = links[[graph.hosts.node(host)]].tocoo()
    best = np.argsort(-row.data, kind="stable")
    rows = [
        {"host": graph.hosts.names[row.col[place]], "links": int(row.data[place])}
        for place in best[:limit]
    ]
    _print_rows(rows, as_json=as_json)
    _print_rest(len(best) - len(rows), as_json=as_json)


def _page_scores(graph: PageGraph, by: str) -> tuple[Nodes, NDArray[np.float64]]:
    every = np.arange(len(graph))
    match by:
        case "authority" | "hub":
            found = distill_topic(graph)
            return found.nodes, found.authorities if by == "authority" else found.hubs
        case "in-degree":
            return every, graph.into.degrees.astype(np.float64)
        case _:
            teleport = np.nan_to_num(graph.relevance()) if by == "topic-pagerank" else None
            return every, pagerank(graph.into, graph.out.degrees, teleport=teleport)


def _top_hosts(graph: PageGraph, by: str, limit: int) -> list[dict[str, Any]]:
    links = graph.hosts.links.copy()
    links.setdiag(0)
    links.eliminate_zeros()
    into = links.T.tocsr()
    match by:
        case "in-degree":
            scores = np.diff(into.indptr).astype(np.float64)
        case "pagerank":
            lists = SuccessorLists(into.indptr.astype(np.int64), into.indices)
            scores = pagerank(lists, np.diff(links.indptr))
        case _:
            raise ConfigurationError(f"--by {by}: hosts have in-degree and pagerank")
    best = np.argsort(-scores, kind="stable")[:limit].tolist()
    return [
        {
            by: _rounded(by, float(scores[n])),
            "pages": int(graph.hosts.pages[n]),
            "host": graph.hosts.names[n],
        }
        for n in best
    ]


def _node(graph: PageGraph, url: str) -> int:
    """Return the node of a URL, as typed or normalised; its scheme may be missing."""
    for spelling in url_spellings(url):
        node = graph.urls.find(spelling)
        if node is not None:
            return node
    return graph.urls.node(url)


def _print_rows(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    if not rows:
        return
    if list(rows[0]) in (["url"], ["host"]) and all(len(row) == 1 for row in rows):
        for row in rows:
            echo(next(iter(row.values())))
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([_shown(row.get(name, "")) for name in names] for row in rows)
    table = text_table("", names, cells, left=("url", "host", "anchor"))
    table.box, table.pad_edge = None, False
    Console().print(table)


def _print_rest(count: int, *, as_json: bool) -> None:
    if count > 0 and not as_json:
        echo(f"focused: and {count:,} more; --limit shows them", err=True)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "".join(f"\n  {each}" for each in value)
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _rounded(by: str, score: float) -> float | int:
    return int(score) if by == "in-degree" else float(f"{score:.4g}")
