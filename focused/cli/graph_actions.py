"""What ``focused graph`` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.archive.crawl_tables import url_spellings
from focused.cli.common import crawl_folder, echo, writing
from focused.errors import ConfigurationError
from focused.link_graph.adjacency import SuccessorLists
from focused.link_graph.distillation import distill_topic
from focused.link_graph.graph_export import ExportedGraph, write_graph
from focused.link_graph.link_ranking import LoadedLists, hits, load_if_small, pagerank
from focused.link_graph.page_graph import PageGraph, default_graph_folder
from focused.link_graph.structure import bow_tie, neighbourhood, shortest_path
from focused.link_graph.structure import communities as find_communities
from focused.reports.formatting import format_bytes, single_line

_MAX_COMMUNITIES, _HOSTS_SHOWN = 10, 3


def build(crawls: tuple[Path, ...], out: Path | None, *, nofollow: bool, memory_mb: int) -> None:
    """Build the graph of crawls, and print its size."""
    from focused.link_graph.build import BuildOptions, build_graph  # needs duckdb

    folders = [crawl_folder(path) for path in crawls]
    folder = out or default_graph_folder(folders[0])
    options = BuildOptions(nofollow=nofollow, memory_mb=memory_mb)
    with writing(folder):
        info = build_graph(
            folders, folder, options, lambda step: echo(f"focused: {step}", err=True)
        )
    echo(f"focused: {info.nodes:,} pages and {info.links:,} links are in {folder}", err=True)


def show_links(
    folder: Path, url: str, *, into: bool, limit: int, hosts: bool, anchors: bool, as_json: bool
) -> None:
    """List the links to or from a page or host."""
    with PageGraph(folder) as graph:
        if hosts:
            _show_host_links(graph, url, into=into, limit=limit, as_json=as_json)
            return
        node = _node(graph, url)
        found = graph.predecessors(node) if into else graph.successors(node)
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


def show_neighbours(folder: Path, url: str, distance: int, limit: int, *, as_json: bool) -> None:
    """List the pages around a page."""
    with PageGraph(folder) as graph:
        found = neighbourhood(graph, _node(graph, url), distance)
        degrees = graph.predecessors_of(found).degrees
        best = np.argsort(-degrees, kind="stable")[:limit]
        urls = graph.urls.urls(found[best])
        rows = [
            {"url": other, "in-degree": degree}
            for other, degree in zip(urls, degrees[best].tolist(), strict=True)
        ]
        _print_rows(rows, as_json=as_json)
        _print_rest(len(found) - len(rows), as_json=as_json)


def show_path(folder: Path, source: str, target: str, *, as_json: bool) -> None:
    """Print a shortest path; exit with 1 if there is none."""
    with PageGraph(folder) as graph:
        found = shortest_path(graph, _node(graph, source), _node(graph, target))
        if found is None:
            echo(f"focused: no links lead from {source} to {target}", err=True)
            sys.exit(1)
        _print_rows([{"url": url} for url in graph.urls.urls(found)], as_json=as_json)


def show_stats(folder: Path, *, components: bool, communities: bool, as_json: bool) -> None:
    """Print what the graph holds."""
    with PageGraph(folder) as graph:
        out, into = graph.out.degrees(), graph.into.degrees()
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
            "bits a link": round(graph.out.bits_per_link, 2),
            "bits a link, transpose": round(graph.into.bits_per_link, 2),
            "bytes a URL": round(graph.urls.stored_bytes / max(len(graph), 1), 2),
            "files": format_bytes(sum(graph.bytes_by_file.values())),
        }
        if components:
            tie = bow_tie(graph)
            values |= {
                "bow-tie": {
                    name: getattr(tie, name) for name in ("core", "upstream", "downstream", "other")
                },
                "strongly connected components": tie.components,
                "weakly connected components": tie.weak_components,
            }
        if communities:
            values["communities of hosts"] = _communities(graph)
        if as_json:
            click.echo(json.dumps(values, ensure_ascii=False, indent=1))
            return
        for name, value in values.items():
            echo(f"{name}: {_shown(value)}")


def _communities(graph: PageGraph) -> list[str]:
    of_host = find_communities(graph.hosts.links)
    sizes = np.bincount(of_host)
    found = []
    for community in np.argsort(-sizes, kind="stable")[:_MAX_COMMUNITIES].tolist():
        members = np.flatnonzero(of_host == community)
        largest = members[np.argsort(-graph.hosts.pages[members], kind="stable")[:_HOSTS_SHOWN]]
        names = ", ".join(graph.hosts.names[place] for place in largest.tolist())
        found.append(f"{sizes[community]:,} hosts: {names}")
    return found


def show_top(
    folder: Path, by: str, limit: int, *, within_hosts: bool, hosts: bool, as_json: bool
) -> None:
    """List the best pages or hosts by a measure."""
    with PageGraph(folder) as graph:
        if hosts:
            _print_rows(_top_hosts(graph, by, limit), as_json=as_json)
            return
        nodes, scores = _page_scores(graph, by, within_hosts=within_hosts)
        best = np.argsort(-scores, kind="stable")[:limit]
        best = best[scores[best] > 0]
        relevance = graph.relevance()[nodes[best]].tolist()
        rows: list[dict[str, Any]] = [
            {
                by: _rounded(by, score),
                "relevance": None if value != value else round(value, 3),
                "url": url,
            }
            for score, value, url in zip(
                scores[best].tolist(), relevance, graph.urls.urls(nodes[best]), strict=True
            )
        ]
        _print_rows(rows, as_json=as_json)


def _page_scores(
    graph: PageGraph, by: str, *, within_hosts: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    every = np.arange(len(graph))
    match by:
        case "authority" | "hub":
            found = distill_topic(graph, within_hosts=within_hosts)
            return found.nodes, found.authorities if by == "authority" else found.hubs
        case "hits-authority" | "hits-hub":
            both = hits(load_if_small(graph.out), load_if_small(graph.into))
            return every, both.authorities if by == "hits-authority" else both.hubs
        case "in-degree":
            return every, graph.into.degrees().astype(np.float64)
        case _:
            teleport = np.nan_to_num(graph.relevance()) if by == "topic-pagerank" else None
            into = load_if_small(graph.into)
            return every, pagerank(into, graph.out.degrees(), teleport=teleport)


def _top_hosts(graph: PageGraph, by: str, limit: int) -> list[dict[str, Any]]:
    links = graph.hosts.links.copy()
    links.setdiag(0)
    links.eliminate_zeros()
    into = links.T.tocsr()
    in_degrees = np.diff(into.indptr)
    match by:
        case "in-degree":
            scores = in_degrees.astype(np.float64)
        case "pagerank":
            lists = SuccessorLists(into.indptr.astype(np.int64), into.indices.astype(np.int64))
            scores = pagerank(LoadedLists(lists), np.diff(links.indptr))
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


def export_graph(folder: Path, file: Path, *, hosts: bool, fetched: bool) -> None:
    """Write a graph to a file."""
    if hosts and fetched:
        raise ConfigurationError("--fetched is for pages: leave out --hosts")
    with PageGraph(folder) as graph:
        exported = (
            ExportedGraph.hosts(graph)
            if hosts
            else ExportedGraph.pages(graph, fetched_only=fetched)
        )
        with writing(file):
            write_graph(exported, file)
    echo(f"focused: wrote {file}", err=True)


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
    table = Table(box=None, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        is_text = name in {"url", "host", "anchor"}
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(single_line(_shown(row.get(name, "")))) for name in names))
    Console().print(table)


def _print_rest(count: int, *, as_json: bool) -> None:
    if count > 0 and not as_json:
        echo(f"focused: and {count:,} more; --limit shows them", err=True)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "".join(f"\n  {each}" for each in value)
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _rounded(by: str, score: float) -> float | int:
    return int(score) if by == "in-degree" else float(f"{score:.4g}")
