"""The command ``focused graph``: the link graph of crawls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER

MEASURES = ("authority", "hub", "in-degree", "pagerank", "topic-pagerank")
_graph_argument = click.argument("graph", metavar="GRAPH", type=FOLDER)
_limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum of lines."
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("graph")
def link_graph() -> None:
    """Ask who links to whom in crawls, and rate pages by their links.

    GRAPH is the folder of a graph that 'focused graph build' made. See docs/how-to/link-graph.md.
    """


@link_graph.command()
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
    crawls: tuple[Path, ...],
    out: Path | None,
    without_nofollow: bool,
    memory_mb: int,
) -> None:
    """Build the link graph of crawls, and replace an earlier one.

    CRAWL is a crawl's folder or a topic file; the crawl may run.
    """
    from focused.cli import graph_actions

    graph_actions.build(crawls, out, nofollow=not without_nofollow, memory_mb=memory_mb)


def _listing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that list the links of a page."""
    hosts = click.option("--hosts", is_flag=True, help="Ask the host graph: URL is a host.")
    anchors = click.option("--anchors", is_flag=True, help="Print the anchors, too.")
    return _limit_option(hosts(anchors(_json_option(command))))


@link_graph.command("in")
@_graph_argument
@click.argument("url")
@_listing
def in_links(graph: Path, url: str, **options: Any) -> None:
    """List the pages that link to URL."""
    from focused.cli.graph_actions import show_links

    show_links(graph, url, into=True, **options)


@link_graph.command("out")
@_graph_argument
@click.argument("url")
@_listing
def out_links(graph: Path, url: str, **options: Any) -> None:
    """List the pages that URL links to."""
    from focused.cli.graph_actions import show_links

    show_links(graph, url, into=False, **options)


@link_graph.command()
@_graph_argument
@_json_option
def stats(graph: Path, as_json: bool) -> None:
    """Print the size of the graph, its degrees and its files."""
    from focused.cli.graph_actions import show_stats

    show_stats(graph, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.option(
    "--by",
    type=click.Choice(MEASURES),
    default="authority",
    show_default=True,
    help="The measure. See docs/explanation/link-graph.md#measures.",
)
@click.option("--hosts", is_flag=True, help="Hosts, by in-degree or pagerank.")
@_limit_option
@_json_option
def top(graph: Path, by: str, hosts: bool, limit: int, as_json: bool) -> None:
    """List the best pages by a measure of their links."""
    from focused.cli.graph_actions import show_top

    show_top(graph, by, limit, hosts=hosts, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.argument("file", type=FILE)
@click.option("--hosts", is_flag=True, help="The host graph, with the number of links.")
@click.option("--fetched", is_flag=True, help="Only fetched pages, and the links among them.")
def export(graph: Path, file: Path, hosts: bool, fetched: bool) -> None:
    """Write the graph to FILE: .graphml or .parquet."""
    from focused.cli.graph_actions import export_graph

    export_graph(graph, file, hosts=hosts, fetched=fetched)
