"""Memory of Redis for a crawl of many partitions: per partition, waiting link and known content.

python benchmarks/cluster_memory.py [--contents 300000]

It runs a redis-server, fills it with invented links, examples and contents as workers write them,
and prints the growth of its used memory per item. The first hundred thousand contents also pay for
the hashes that they share.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from focused.cluster.assignment import PartitionMap
from focused.cluster.coordinator import PartitionStatus
from focused.cluster.exchange import MAX_BATCH_BYTES
from focused.cluster.leadership import MAX_REPORTED_PRIORITIES
from focused.cluster.local_redis import LocalRedis
from focused.cluster.messages import LinkMessage, encode_batches
from focused.cluster.redis_connection import RedisConnection, connect
from focused.cluster.redis_coordinator import RedisCoordinator
from focused.cluster.redis_exchange import RedisExchange
from focused.cluster.redis_shared_contents import RedisContentStore
from focused.cluster.shared_contents import ContentRegistry
from focused.crawl.dedup.duplicates import PageSketch
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.text.content_signatures import Sketch

CRAWL = "whales"
_SHINGLES = 200
_LINKS_PER_BATCH = 20
_STEP = 100_000


def growth(connection: RedisConnection, act: Callable[[], object]) -> int:
    """Return by how many bytes the used memory of Redis grows."""
    before = _used(connection)
    act()
    return _used(connection) - before


def _used(connection: RedisConnection) -> int:
    return int(connection.execute("INFO", "memory")["used_memory"])


def own_partitions(connection: RedisConnection, partitions: int) -> None:
    """Claim partitions and report their statuses."""
    coordinator = RedisCoordinator(connection, CRAWL)
    for number in range(partitions):
        coordinator.claim(number, "worker")
    best = tuple(random.Random(1).random() for _ in range(MAX_REPORTED_PRIORITIES))
    coordinator.report(
        [
            PartitionStatus(n, 1, "worker", 10_000, 5, 9_000, 5_000, 10**8, 10**5, priorities=best)
            for n in range(partitions)
        ]
    )
    coordinator.grant(dict.fromkeys(range(partitions), 10_000), 10**9)


def send_links(connection: RedisConnection, links: int) -> None:
    """Send links that nobody reads, in batches to 64 partitions."""
    exchange, rng = RedisExchange(connection, CRAWL), random.Random(2)
    for first in range(0, links, _LINKS_PER_BATCH):
        numbered = [(n, _link(n, rng)) for n in range(first, first + _LINKS_PER_BATCH)]
        to = first // _LINKS_PER_BATCH % 64
        batches = encode_batches(1, 1, numbered, MAX_BATCH_BYTES)
        exchange.send_all([(to, batch) for batch in batches])


def _link(number: int, rng: random.Random) -> LinkMessage:
    return LinkMessage(
        f"https://host{rng.randrange(10**6)}.example/some/path/of/a/page-{number}.html",
        0.5,
        5,
        f"https://host{rng.randrange(10**6)}.example/some/path/of/its/parent.html",
        "an anchor of words",
        tuple(rng.random() for _ in FEATURE_NAMES),
        1,
        2**40,
    )


def claim_contents(connection: RedisConnection, first: int, number: int) -> None:
    """Let pages on topic claim contents of their own."""
    owner_of = PartitionMap(64)
    registry = ContentRegistry(RedisContentStore(connection, CRAWL), 1, owner_of)
    rng = np.random.default_rng(first)
    for n in range(first, first + number):
        hashes = np.sort(rng.integers(0, 2**64, _SHINGLES, dtype=np.uint64))
        sketch = Sketch(hashes, int(hashes[-1]))
        url = f"https://host{n % 10_000}.example/some/path/of/a/page-{n}.html"
        page = PageSketch(url, "A title", sketch, np.empty(0, np.uint64), host_known=True)
        registry.claim(rng.bytes(16), url, page)
    assert not registry.counts.unanswered


def main() -> None:
    """Print bytes per item."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=1_024)
    parser.add_argument("--links", type=int, default=200_000)
    parser.add_argument("--contents", type=int, default=300_000)
    given = parser.parse_args()
    with (
        TemporaryDirectory(prefix="focused-benchmark-") as folder,
        LocalRedis(Path(folder)) as servers,
    ):
        connection = connect(servers.urls[0])
        grown = growth(connection, lambda: own_partitions(connection, given.partitions))
        print(f"a partition: {grown / given.partitions:,.0f} bytes")
        grown = growth(connection, lambda: send_links(connection, given.links))
        print(f"a waiting link: {grown / given.links:,.0f} bytes")
        for first in range(0, given.contents, _STEP):
            grown = growth(connection, partial(claim_contents, connection, first, _STEP))
            print(f"a content, from the {first:,}th: {grown / _STEP:,.0f} bytes", flush=True)


if __name__ == "__main__":
    main()
