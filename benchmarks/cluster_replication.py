"""Cost of replicating a partition to shared storage, and the time to take it over.

    python benchmarks/cluster_replication.py --pages 2000 --pages-per-flush 10

The real crawl of a recorded web on a simulated clock, with WARC files, as one partition of a
cluster. It is flushed to a folder every so many pages, as a worker does every second, and restored
at the end. Sizes are extrapolated to a million pages, and to a million links of the frontier.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from frontier_machine import machine

from focused.cluster import replication
from focused.cluster.archive_parts import partition_name
from focused.cluster.replication import Replica, decode_segment, restore
from focused.cluster.storage import SharedStorage
from focused.crawl import Crawl, build_crawl
from focused.files import write_json_atomically
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.storage.state_store import StateStore
from focused.topic import Budget, adapt_to_recorded_web
from focused.topic.topic_file import load_topic
from focused_lab.simulation.simulator import CrawlDriver, RecordedNetwork, hashed_latency

_LATENCY_S = 0.2
_PARTITION = 0
_MILLION = 1_000_000
_CODECS = (("zstd", 1), ("zstd", 3), ("lz4", None), ("gzip", 1))


class CountingStorage(SharedStorage):
    """Counts requests and bytes by what they are for."""

    def __init__(self, url: str, crawl: str) -> None:
        super().__init__(url, crawl)
        self.requests: Counter[str] = Counter()
        self.uploaded: Counter[str] = Counter()
        self.segments: list[tuple[int, bytes]] = []

    def write(self, name: str, content: bytes) -> None:
        """Write an object, or replace it."""
        super().write(name, content)
        self._count(name, len(content))
        if "segment-" in name:
            self.segments.append((int(name.rpartition("-")[2]), content))

    def upload(self, name: str, path: Path) -> None:
        """Write a local file as an object."""
        super().upload(name, path)
        self._count(name, path.stat().st_size)

    def exists(self, name: str) -> bool:
        """Whether an object exists that is not empty."""
        self.requests["read"] += 1
        return super().exists(name)

    def _count(self, name: str, size: int) -> None:
        folder, _, last = name.rpartition("/")
        kind = last.partition("-")[0] if folder.startswith("state") else folder.partition("/")[0]
        self.requests["write"] += 1
        self.uploaded[kind] += size


class FlushedCrawl:
    """A crawl that is flushed as a worker does once a second."""

    def __init__(self, crawl: Crawl, network: RecordedNetwork, replica: Replica) -> None:
        self.crawl_s = self.flush_s = 0.0
        self.flushes = 0
        self._crawl = crawl
        self._network = network
        self._replica = replica

    def run(self, pages: int, pages_per_flush: int, concurrency: int) -> None:
        """Crawl until the number of pages is reached, or no link is left."""
        driver = CrawlDriver(self._crawl, self._network, hashed_latency(_LATENCY_S, 0), concurrency)
        flush_at, done = pages_per_flush, None
        while self._crawl.counters.fetched < pages and done is None:
            began_s = time.process_time()
            done = driver.step()
            self.crawl_s += time.process_time() - began_s
            if self._crawl.counters.fetched >= flush_at:
                self._flush(driver.now)
                flush_at = self._crawl.counters.fetched + pages_per_flush
        self._flush(driver.now)

    def _flush(self, now: float) -> None:
        """Commit, sync and flush; only the replica's part is counted."""
        self._crawl.commit(now)
        self._crawl.sync()
        began_s = time.process_time()
        self._replica.flush()
        self.flush_s += time.process_time() - began_s
        self.flushes += 1


def main(arguments: Sequence[str]) -> None:
    """Crawl, restore, print the figures and store them as JSON."""
    options = _options(arguments)
    shutil.rmtree(options.folder, ignore_errors=True)
    storage = CountingStorage(f"file://{options.folder.absolute()}/shared", "crawl")
    local = options.folder / "owner-1"
    topic = load_topic(options.topic)
    output = replace(topic.output, folder=local, parquet=False)
    topic = adapt_to_recorded_web(replace(topic, budget=Budget(), output=output))
    models = load_crawl_models(topic, web=str(options.web), replay=None, say=print)
    policy = find_policy("focused")(PolicyInputs(models.classifier, models.scorer))
    restore(storage, _PARTITION, local, 1)
    store = StateStore.open(local / "state", {"topic": topic.name})
    prefix = partition_name(_PARTITION)
    crawl = build_crawl(topic, models.classifier, policy, store, warc_prefix=prefix)
    replica = Replica(
        storage, _PARTITION, 1, store, local, min_snapshot_bytes=options.min_snapshot_bytes
    )
    replica.begin()
    gc.collect()
    gc.freeze()
    with RecordedWeb.open(options.web) as web:
        crawl.seed(topic.seeds.urls, 0.0)
        driver = FlushedCrawl(crawl, RecordedNetwork(web), replica)
        driver.run(options.pages, options.pages_per_flush, topic.politeness.concurrency)
    pages, links = crawl.counters.fetched, len(crawl.frontier)
    state_bytes = sum(path.stat().st_size for path in (local / "state").iterdir())
    crawl.abandon()
    told = {
        "machine": machine(),
        "asked": {"pages": options.pages, "pages_per_flush": options.pages_per_flush},
        "pages": pages,
        "frontier_links": links,
        "flushes": driver.flushes,
        "crawl_cpu_ms_a_page": 1e3 * driver.crawl_s / pages,
        "flush_cpu_ms_a_page": 1e3 * driver.flush_s / pages,
        "flush_cpu_share": driver.flush_s / driver.crawl_s,
        "requests_a_flush": {k: n / driver.flushes for k, n in sorted(storage.requests.items())},
        "uploaded_bytes_a_page": {k: n / pages for k, n in sorted(storage.uploaded.items())},
        "local_state_bytes_a_page": state_bytes / pages,
        **_stored(storage, pages, links),
        **_takeover(storage, options.folder),
        "codecs": _codecs([b"".join(decode_segment(*each)[1]) for each in storage.segments]),
    }
    for name, value in told.items():
        print(f"{name}: {value}")
    options.out.mkdir(parents=True, exist_ok=True)
    write_json_atomically(options.out / f"flush-{options.pages_per_flush}.json", told)


def _stored(storage: CountingStorage, pages: int, links: int) -> dict[str, float]:
    """Bytes in storage while the crawl runs, in GB per million pages and per million links."""
    assert storage.folder is not None
    sizes: Counter[str] = Counter()
    for path in storage.folder.rglob("*"):
        if path.is_file():
            sizes[path.relative_to(storage.folder).parts[0]] += path.stat().st_size
    warc = sizes["warc"] + sizes["warc-pieces"]
    return {
        "state_gb_a_million_pages": sizes["state"] / pages * _MILLION / 1e9,
        "warc_gb_a_million_pages": warc / pages * _MILLION / 1e9,
        "state_gb_a_million_links": sizes["state"] / max(links, 1) * _MILLION / 1e9,
    }


def _takeover(storage: CountingStorage, folder: Path) -> dict[str, float]:
    """Seconds until a successor may crawl."""
    began_s = time.perf_counter()
    restore(storage, _PARTITION, folder / "owner-2", 2)
    restored_s = time.perf_counter() - began_s
    store = StateStore.reopen(folder / "owner-2/state")
    began_s = time.perf_counter()
    replica = Replica(storage, _PARTITION, 2, store, folder / "owner-2")
    replica.begin()
    begun_s = time.perf_counter() - began_s
    store.close()
    snapshot = next((folder / "shared").rglob("snapshot-*")).stat().st_size
    segments = sum(path.stat().st_size for path in (folder / "shared").rglob("segment-*"))
    return {
        "restore_s": restored_s,
        "begin_s": begun_s,
        "snapshot_bytes": snapshot,
        "segment_bytes": segments,
    }


def _codecs(raw: Sequence[bytes]) -> dict[str, dict[str, float]]:
    """Bytes left and CPU per MB, by codec, of the segments."""
    total = sum(map(len, raw))
    found = {}
    for name, level in _CODECS:
        codec = pa.Codec(name, compression_level=level)
        began_s = time.process_time()
        left = sum(len(codec.compress(each)) for each in raw)
        spent_s = time.process_time() - began_s
        found[f"{name} {level or ''}".strip()] = {
            "share_left": left / total,
            "ms_a_mb": 1e3 * spent_s / (total / 1e6),
        }
    return found


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--pages-per-flush", type=int, default=10)
    parser.add_argument("--min-snapshot-bytes", type=int, default=replication.MIN_SNAPSHOT_BYTES)
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--folder", type=Path, default=Path("crawls/replication"), help="made anew")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cluster-replication"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
