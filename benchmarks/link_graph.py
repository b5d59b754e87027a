"""Size, speed and memory of the link graph of a synthetic web.

``python benchmarks/link_graph.py --pages 1000000`` writes the pages and links of a web whose sizes
and degrees follow power laws, as a crawl stores them, builds their graph, and prints its figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA
from focused.link_graph.build import build_graph
from focused.link_graph.page_graph import PageGraph
from focused.storage.arrow_columns import TIMESTAMP

LOOKUPS = 20_000
PAGES_PER_CHUNK = 200_000
LINKS_PER_PAGE = 14  # drawn; the distinct ones are about ten
OWN_HOST = 0.75


def main() -> None:
    """Write the crawl, build the graph in another process, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--memory-mb", type=int, default=500, help="for sorting")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="on a disk"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="link-graph-", dir=options.folder) as folder:
        crawl, graph = Path(folder, "crawl"), Path(folder, "graph")
        write_crawl(crawl, options.pages)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            cpu_s, peak_mb = pool.apply(timed_build, (crawl, graph, options.memory_mb))
        figures = {**measure(graph), "build CPU s": cpu_s, "build MB": peak_mb}
    for name, value in figures.items():
        print(f"{name:16}{value:>14,.1f}")


def write_crawl(folder: Path, pages: int) -> None:
    """Write a web whose hosts' sizes, out-degrees and in-degrees follow power laws.

    Three of four links stay on their host. A link leads to the page of rank r on a host with a
    probability proportional to 1/r.
    """
    rng = np.random.default_rng(0)
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
        for first in range(0, pages, PAGES_PER_CHUNK):
            own = np.arange(first, min(first + PAGES_PER_CHUNK, pages))
            degrees = np.minimum(rng.pareto(2.0, len(own)) * LINKS_PER_PAGE + 1, 2_000)
            sources = np.repeat(own, degrees.astype(np.int64))
            elsewhere = host_of_page[rng.integers(0, pages, len(sources))]
            is_own = rng.random(len(sources)) < OWN_HOST
            hosts = np.where(is_own, host_of_page[sources], elsewhere)
            ranks = sizes[hosts] ** rng.random(len(sources))
            targets = starts[hosts] + ranks.astype(np.int64) - 1
            yield pa.table([urls.take(sources), urls.take(targets)], names=["source", "target"])

    folder.mkdir()
    with pq.ParquetWriter(folder / "links.parquet", LINKS_SCHEMA, compression="zstd") as writer:
        for table in chunks():
            writer.write_table(fill(table, LINKS_SCHEMA))
    fetched_at = pa.array(np.arange(pages).astype("datetime64[s]")).cast(TIMESTAMP)
    own = pa.table({"url": urls, "outcome": ["fetched"] * pages, "fetched_at": fetched_at})
    pq.write_table(fill(own, PAGES_SCHEMA), folder / "pages.parquet")


def fill(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the columns that are missing, all null."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def measure(graph: Path) -> Mapping[str, float]:
    """Return the sizes of a graph and its look-ups per second of CPU."""
    pages = PageGraph(graph)
    nodes = np.random.default_rng(0).integers(0, len(pages), LOOKUPS).tolist()
    urls = pages.urls.urls(np.array(nodes))
    return {
        "URLs": len(pages),
        "links": pages.links,
        "bytes a URL": stored_bytes(graph, "urls.*") / len(pages),
        "bytes a link": stored_bytes(graph, "*.npy") / pages.links,
        "links of a page": rate(lambda: [pages.out[node] for node in nodes]),
        "node of a URL": rate(lambda: [pages.urls.node(url) for url in urls]),
        "URL of a node": rate(lambda: [pages.urls[node] for node in nodes]),
    }


def timed_build(crawl: Path, graph: Path, memory_mb: int) -> tuple[float, float]:
    """Build a graph; return CPU seconds, and the peak of resident memory in MB."""
    build_graph([crawl], graph, memory_mb=memory_mb)
    peak_kb: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time(), peak_kb / 1_000


def rate(look_up: Callable[[], object]) -> float:
    """Return look-ups per second of CPU time."""
    began_s = time.process_time()
    look_up()
    return LOOKUPS / (time.process_time() - began_s)


def stored_bytes(graph: Path, pattern: str) -> int:
    """Return the bytes of some files of a graph."""
    return sum(path.stat().st_size for path in graph.glob(f"generation-*/{pattern}"))


if __name__ == "__main__":
    main()
