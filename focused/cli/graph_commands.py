"""The command ``focused graph``: the link graph of crawls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER

MEASURES = (
    *("in-degree", "pagerank", "topic-pagerank"),
    *("authority", "hub", "hits-authority", "hits-hub"),
)
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
@click.argument("url")
@click.option(
    "--distance",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Links between, in any direction.",
)
@_limit_option
@_json_option
def neighbours(graph: Path, url: str, distance: int, limit: int, as_json: bool) -> None:
    """List the pages around URL, those with the most in-links first."""
    from focused.cli.graph_actions import show_neighbours

    show_neighbours(graph, url, distance, limit, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@_json_option
def path(graph: Path, source: str, target: str, as_json: bool) -> None:
    """Print a shortest path along links; the exit status is 1 if there is none."""
    from focused.cli.graph_actions import show_path

    show_path(graph, source, target, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.option(
    "--components",
    is_flag=True,
    help="Strongly connected components and the bow-tie; takes 40 bytes of memory a link.",
)
@click.option("--communities", is_flag=True, help="Communities of hosts.")
@_json_option
def stats(graph: Path, components: bool, communities: bool, as_json: bool) -> None:
    """Print the size of the graph, its degrees and its files."""
    from focused.cli.graph_actions import show_stats

    show_stats(graph, components=components, communities=communities, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.option(
    "--by",
    type=click.Choice(MEASURES),
    default="authority",
    show_default=True,
    help="The measure. See docs/explanation/link-graph.md#measures.",
)
@click.option(
    "--within-hosts/--between-hosts",
    default=True,
    show_default=True,
    help="authority and hub: count all links, or only those between hosts.",
)
@click.option("--hosts", is_flag=True, help="Hosts, by in-degree or pagerank.")
@_limit_option
@_json_option
def top(graph: Path, by: str, within_hosts: bool, hosts: bool, limit: int, as_json: bool) -> None:
    """List the best pages by a measure of their links."""
    from focused.cli.graph_actions import show_top

    show_top(graph, by, limit, within_hosts=within_hosts, hosts=hosts, as_json=as_json)


@link_graph.command()
@_graph_argument
@click.argument("file", type=FILE)
@click.option("--hosts", is_flag=True, help="The host graph, with the number of links.")
@click.option("--fetched", is_flag=True, help="Only fetched pages, and the links among them.")
def export(graph: Path, file: Path, hosts: bool, fetched: bool) -> None:
    """Write the graph to FILE: .graphml, .parquet, .tsv or .tsv.gz."""
    from focused.cli.graph_actions import export_graph

    export_graph(graph, file, hosts=hosts, fetched=fetched)
