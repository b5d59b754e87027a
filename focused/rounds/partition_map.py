"""Assign hosts to partitions: a host's partition is a hash of its site.

A partition stays where it is: a process that dies is started again by
:mod:`focused.rounds.process_supervision`.
"""

from __future__ import annotations

from enum import StrEnum

import xxhash
from cachetools import LRUCache

from focused.frontier.queued_link import link_key
from focused.web.host_names import registered_domain
from focused.web.urls import host_of

_MAX_HOSTS = 100_000


class SiteUnit(StrEnum):
    """What the URLs of one partition have in common."""

    DOMAIN = "domain"
    """The registered domain: links within a site stay in its partition."""
    HOST = "host"


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
        partition = self._of_host.get(host)
        if partition is None:
            site = host if self._unit is SiteUnit.HOST else registered_domain(host)
            partition = self._of_host[host] = _hash(site) % self.partitions
        return partition


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())
