"""Assign hosts to partitions, and partitions to workers.

The number of partitions is fixed for a crawl, so a host's partition is a hash of its site. Workers
come and go. Partitions are assigned to them by consistent hashing with bounded loads (Mirrokni,
Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", SODA 2018), so that few
partitions move. Like the agents of UbiCrawler (Boldi, Codenotti, Santini and Vigna, 2004), each
worker computes the assignment itself from the names of all workers.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum

import xxhash
from cachetools import LRUCache

from focused.frontier.queued_link import link_key
from focused.web.host_names import registered_domain
from focused.web.urls import host_of

_MAX_HOSTS = 100_000
_REPLICAS = 128
"""Points of a worker on the circle."""


class SiteUnit(StrEnum):
    """What the URLs of one partition have in common."""

    DOMAIN = "domain"
    """The registered domain: links within a site stay in its partition."""
    HOST = "host"
    URL = "url"
    """Each URL by itself; a host then has several owners. For experiments only."""


class PartitionMap:
    """The partition of each link: a hash of its site."""

    def __init__(self, partitions: int, unit: SiteUnit = SiteUnit.DOMAIN) -> None:
        self.partitions = partitions
        self._unit = unit
        self._of_host: LRUCache[str, int] = LRUCache(_MAX_HOSTS)

    def of_url(self, url: str) -> int:
        """Return the partition of a normalised URL, from 0 to ``partitions`` - 1."""
        return self(host_of(url), link_key(url))

    def __call__(self, host: str, key: bytes) -> int:
        """Return the partition of a link by its host and its key."""
        if self._unit is SiteUnit.URL:
            return int.from_bytes(key[:8], "big") % self.partitions
        partition = self._of_host.get(host)
        if partition is None:
            site = host if self._unit is SiteUnit.HOST else registered_domain(host)
            partition = self._of_host[host] = _hash(site) % self.partitions
        return partition


def assign_partitions(
    partitions: int, workers: Collection[str], *, max_load: float = 1.25, generation: int = 0
) -> Mapping[int, str]:
    """Return the worker of each partition; empty without workers.

    No worker gets more than ``max_load`` times the mean, rounded up. When a worker leaves, its
    partitions move, and a few more to keep to that bound. ``max_load`` is at least 1. Another
    ``generation`` is another assignment.
    """
    if not workers:
        return {}
    points = sorted((_hash(f"{name} {i}"), name) for name in set(workers) for i in range(_REPLICAS))
    capacity = math.ceil(max_load * partitions / len(set(workers)))
    loads: Counter[str] = Counter()
    assigned: dict[int, str] = {}
    # In the order of their hashes, as on the circle, and not of their numbers.
    for point, partition in sorted(
        (_hash(f"partition {n} {generation}"), n) for n in range(partitions)
    ):
        place = bisect(points, (point, ""))
        while loads[name := points[place % len(points)][1]] >= capacity:
            place += 1
        loads[name] += 1
        assigned[partition] = name
    return assigned


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())
