"""Open partitions: restore their state from shared storage and build their crawl."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from focused.classifier.topic_classifier import TopicClassifier
from focused.cluster.archive_parts import partition_name
from focused.cluster.assignment import PartitionMap
from focused.cluster.coordinator import PartitionLease
from focused.cluster.partition import Partition, build_partition
from focused.cluster.replication import Replica, newest_token, restore
from focused.cluster.shared_contents import ContentStore
from focused.cluster.storage import SharedStorage
from focused.crawl.crawl_stats import StageTimes
from focused.crawl.policy import Policy
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.web.urls import normalize_url


@dataclass(frozen=True, slots=True)
class PartitionModels:
    """What all partitions of a worker share.

    With ``contents`` duplicates are detected across partitions.
    """

    classifier: TopicClassifier
    policy: Policy
    training_urls: frozenset[str] = frozenset()
    contents: ContentStore | None = None


class PartitionStates:
    """The partitions' states: in shared storage, and below ``folder`` while they are open.

    Implements :class:`focused.cluster.worker_round.StateReplicas` and
    :class:`focused.cluster.worker.PartitionOpener`.
    """

    def __init__(
        self,
        topic: Topic,
        models: PartitionModels,
        partitions: PartitionMap,
        storage: SharedStorage,
        folder: Path,
        *,
        stages: StageTimes | None = None,
    ) -> None:
        self._topic = topic
        self._models = models
        self._partitions = partitions
        self._storage = storage
        self._folder = folder
        self._stages = stages or StageTimes()
        self._lease_numbers = count(1)
        self._background = ThreadPoolExecutor(1, "replicas")

    def newest_token(self, partition: int) -> int:
        """Return the highest fencing token in storage; 0 without any."""
        return newest_token(self._storage, partition)

    def restore(self, lease: PartitionLease) -> None:
        """Restore a partition's state into its local folder, for the owner of ``lease``."""
        restore(self._storage, lease.partition, self._folder_of(lease.partition), lease.token)

    def open(self, lease: PartitionLease, now: float) -> tuple[Partition, OpenReplica]:
        """Open the partition whose state was restored for ``lease``, and queue its seeds."""
        models, number, folder = self._models, lease.partition, self._folder_of(lease.partition)
        # The leading worker keeps to the budgets of pages and bytes.
        budget = replace(self._topic.budget, pages=None, bytes=None, min_harvest=None)
        output = replace(self._topic.output, folder=folder, parquet=False)
        topic = replace(self._topic, output=output, budget=budget)
        identity = {
            "topic": topic.name,
            "policy": models.policy.name,
            "partition": f"{number} of {self._partitions.partitions}",
        }
        store = StateStore.open(folder / "state", identity)
        try:
            partition = build_partition(
                number,
                lease.token,
                topic,
                models.classifier,
                models.policy,
                store,
                self._partitions,
                shares_examples=isinstance(models.policy.scorer, OnlineLinkScorer),
                contents=models.contents,
                training_urls=models.training_urls,
                stages=self._stages,
                lease_numbers=self._lease_numbers,
                warc_prefix=partition_name(number),
            )
            replica = Replica(
                self._storage, number, lease.token, store, folder, background=self._background
            )
            seeds = filter(None, map(normalize_url, topic.seeds.urls))
            partition.crawl.seed([url for url in seeds if partition.owns(url)], now)
            replica.begin()
        except BaseException:
            store.abandon()
            raise
        return partition, OpenReplica(replica)

    def finish(self, reason: str, now: float) -> None:
        """Store that the crawl is over, and why, where reports look for it."""
        stats = {"end_reason": reason, "ended_at": now}
        self._storage.write("stats.json", json.dumps(stats).encode())

    def _folder_of(self, partition: int) -> Path:
        return self._folder / partition_name(partition)


class OpenReplica:
    """The :class:`focused.cluster.worker.PartitionReplica` of an open partition."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def prepare(self) -> Callable[[], object]:
        """Return what uploads everything that was committed so far."""
        prepared = self._replica.prepare()
        return lambda: self._replica.upload(prepared)

    def finish(self, now: float) -> None:
        """Write the partition's results; its crawl is closed."""
        self._replica.finish()
