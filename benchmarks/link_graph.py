"""Size, speed and memory of the link graph, on recorded webs and on a synthetic one.

``python benchmarks/link_graph.py webs`` builds the graphs of four recorded webs (``focused web
build``); ``synthetic`` that of a power-law web, 10 million pages by default. Both print a table and
write JSON into ``benchmarks/results/link-graph/``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA
from focused.link_graph.build import BuildOptions, build_graph
from focused.link_graph.page_graph import PageGraph
from focused.recorded_web.recorded_web import RecordedWeb
from focused.storage.arrow_columns import TIMESTAMP
from focused.web.page import Fetched, Page
from focused_lab.simulation.parsed_web import ParsedWeb

ROOT = Path(__file__).parents[1]
WORK = ROOT / "crawls/benchmark-link-graph"
RESULTS = ROOT / "benchmarks/results/link-graph"
WEBS = ("docweb-medium", "foldoc", "wordnet", "debian")
LOOKUPS = 20_000
PAGES_A_CHUNK = 200_000
LINKS_A_PAGE = 14  # drawn; the distinct ones are about ten
OWN_HOST = 0.75


def main() -> None:
    """Measure what is asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["webs", "synthetic"])
    parser.add_argument("--pages", type=int, default=10_000_000, help="of the synthetic web")
    parser.add_argument("--memory-mb", type=int, default=1_000, help="for sorting")
    parser.add_argument("--built", action="store_true", help="measure the graphs that are there")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    crawls = (
        [web_as_crawl(name) for name in WEBS]
        if options.what == "webs"
        else [synthetic_crawl(options.pages, options.seed)]
    )
    rows = []
    for crawl in crawls:
        graph = crawl.with_name(f"{crawl.name}-measured")
        built = {} if options.built else measure_build(crawl, graph, options.memory_mb)
        rows.append({"web": crawl.name, **measure(graph, options.seed), **built})
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = options.what if options.what == "webs" else crawls[0].name
    (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = Table(title="link graph")
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values())
        )
    Console(width=220).print(table)


def web_as_crawl(name: str) -> Path:
    """Write all pages and links of a recorded web as the tables of a crawl; return its folder."""
    folder = WORK / name
    if folder.is_dir():
        return folder
    pages: list[str] = []
    sources: list[str] = []
    targets: list[str] = []
    with ParsedWeb(RecordedWeb.open(ROOT / "webs" / name)) as web:
        for url, page in pages_of(web):
            pages.append(url)
            links = dict.fromkeys(link.url for link in page.links)
            sources += [url] * len(links)
            targets += links
    write_tables(folder, pages, iter([pa.table([sources, targets], names=["source", "target"])]))
    return folder


def pages_of(web: ParsedWeb) -> Iterator[tuple[str, Page]]:
    """Yield the pages of a recorded web."""
    for url in web.web.page_urls:
        answer = web.answer(url, 0.0, 0.0)
        page = web.parse(answer) if isinstance(answer, Fetched) else None
        if isinstance(page, Page):
            yield url, page


def synthetic_crawl(pages: int, seed: int) -> Path:
    """Write a web whose hosts' sizes, out-degrees and in-degrees follow power laws.

    Three of four links stay on their host. A link leads to the page of rank r on a host with a
    probability proportional to 1/r.
    """
    folder = WORK / f"synthetic-{pages}"
    if folder.is_dir():
        return folder
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.pareto(1.1, size=pages // 10 + 1) * 4 + 1, pages / 50).astype(np.int64)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), pages)) + 1]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    pages = int(starts[-1])
    host_of_page = np.repeat(np.arange(len(sizes)), sizes)
    paths = rng.integers(0, 1 << 40, pages)
    urls = pa.array(
        f"https://www.site-{host}.example/{('docs', 'blog', 'items')[path % 3]}/{path:x}.html"
        for host, path in zip(host_of_page.tolist(), paths.tolist(), strict=True)
    )

    def chunks() -> Iterator[pa.Table]:
        for first in range(0, pages, PAGES_A_CHUNK):
            own = np.arange(first, min(first + PAGES_A_CHUNK, pages))
            degrees = np.minimum(rng.pareto(2.0, len(own)) * LINKS_A_PAGE + 1, 2_000)
            sources = np.repeat(own, degrees.astype(np.int64))
            elsewhere = host_of_page[rng.integers(0, pages, len(sources))]
            is_own = rng.random(len(sources)) < OWN_HOST
            hosts = np.where(is_own, host_of_page[sources], elsewhere)
            ranks = sizes[hosts] ** rng.random(len(sources))
            targets = starts[hosts] + ranks.astype(np.int64) - 1
            yield pa.table([urls.take(sources), urls.take(targets)], names=["source", "target"])

    write_tables(folder, urls, chunks())
    return folder


def write_tables(folder: Path, pages: Any, links: Iterator[pa.Table]) -> None:
    """Write ``pages.parquet`` and ``links.parquet`` of a crawl."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with pq.ParquetWriter(part / "links.parquet", LINKS_SCHEMA, compression="zstd") as writer:
        for table in links:
            writer.write_table(fill(table, LINKS_SCHEMA))
    own = pa.table({"url": pages})
    fetched_at = pa.array(np.arange(len(own)).astype("datetime64[s]")).cast(TIMESTAMP)
    own = own.append_column("outcome", pa.array(["fetched"] * len(own)))
    pq.write_table(
        fill(own.append_column("fetched_at", fetched_at), PAGES_SCHEMA), part / "pages.parquet"
    )
    part.rename(folder)


def fill(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the columns that are missing, all null."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def measure_build(crawl: Path, graph: Path, memory_mb: int) -> dict[str, Any]:
    """Build the graph of a crawl in another process."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        build_s, build_mb = pool.apply(timed_build, (crawl, graph, memory_mb))
    return {
        "build CPU s": round(build_s, 1),
        "build MB": round(build_mb),
    }


def measure(graph: Path, seed: int) -> dict[str, Any]:
    """Return the sizes and speeds of a graph."""
    pages = PageGraph(graph)
    rng = np.random.default_rng(seed)
    nodes = rng.integers(0, len(pages), LOOKUPS)
    urls = pages.urls.urls(nodes)
    few = LOOKUPS // 4
    return {
        "nodes": len(pages),
        "links": pages.links,
        "bytes/URL": round(stored(graph, "urls.*") / len(pages), 2),
        "bytes/link": round(stored(graph, "*.npy") / pages.links, 2),
        "succ./s": rate(few, lambda: [pages.out[n] for n in nodes[:few].tolist()]),
        "batch/s": rate(LOOKUPS, lambda: pages.out.select(nodes)),
        "URL/s": rate(few, lambda: [pages.urls[n] for n in nodes[:few].tolist()]),
        "node/s": rate(few, lambda: [pages.urls.node(url) for url in urls[:few]]),
        "scan links/s": rate(
            pages.links, lambda: sum(len(sources) for sources, _ in pages.out.pairs())
        ),
    }


def timed_build(crawl: Path, graph: Path, memory_mb: int) -> tuple[float, float]:
    """Build a graph; return CPU seconds, and the peak of resident memory in MB."""
    build_graph([crawl], graph, BuildOptions(memory_mb=memory_mb))
    peak_kb: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time(), peak_kb / 1_000


def rate(count: int, run: Any) -> int:
    """Operations per second of CPU time, of one pass."""
    began_s = time.process_time()
    run()
    return round(count / (time.process_time() - began_s))


def stored(graph: Path, pattern: str) -> int:
    """Bytes of some files of a graph."""
    return sum(path.stat().st_size for path in graph.glob(f"generation-*/{pattern}"))


if __name__ == "__main__":
    main()
