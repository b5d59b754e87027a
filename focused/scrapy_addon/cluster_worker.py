"""Run a Scrapy crawl as a worker of a cluster.

Imported only for workers: it needs the ``cluster`` extra.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from scrapy.settings import BaseSettings

from focused.classifier.topic_classifier import SwappableClassifier
from focused.cluster.assignment import PartitionMap, SiteUnit
from focused.cluster.coordinator import Coordinator, WorkerStatus
from focused.cluster.leadership import Leadership
from focused.cluster.learning import SharedLearning
from focused.cluster.model_distribution import ModelDistribution
from focused.cluster.open_partition import PartitionModels, PartitionStates
from focused.cluster.redis_connection import RedisConnection, TlsFiles, connect
from focused.cluster.redis_coordinator import RedisCoordinator, RedisPaceLeases
from focused.cluster.redis_exchange import RedisExchange
from focused.cluster.redis_shared_contents import RedisContentStore
from focused.cluster.storage import SharedStorage
from focused.cluster.worker import ClusterWorker
from focused.cluster.worker_round import WorkerRounds
from focused.crawl.crawl_group import CrawlGroup
from focused.crawl.crawl_stats import StageTimes
from focused.errors import ConfigurationError, FocusedError, StorageError
from focused.files import make_private_folder
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.orderings import Policy
from focused.scrapy_addon.crawl_models import CrawlModels, ModelWatcher, NamedClassifier
from focused.scrapy_addon.crawl_session import OpenGroup
from focused.topic import Cluster, Topic, adapt_to_recorded_web, topic_to_json

logger = logging.getLogger(__name__)

_SETTINGS_FILE = "settings.json"
_THREADS = 4
"""For a round, and restores of claimed partitions beside it."""
_MODEL_POLL_S = 5.0


def cluster_of(topic: Topic, settings: BaseSettings) -> Cluster:
    """Return the cluster of ``FOCUSED_CLUSTER``. Raises ConfigurationError.

    The value ``topic`` stands for the topic file's section.
    """
    named, storage = settings["FOCUSED_CLUSTER"], settings["FOCUSED_CLUSTER_STORAGE"]
    cluster = topic.cluster
    if named != "topic":
        urls = tuple(named.replace(",", " ").split())
        cluster = Cluster(urls, "") if cluster is None else replace(cluster, url=urls)
    if cluster is None:
        raise ConfigurationError(
            f"{topic.path}: has no section [cluster], which names the Redis servers and the "
            "storage that all workers share"
        )
    if storage:
        cluster = replace(cluster, storage=storage)
    if "://" not in cluster.storage:
        raise ConfigurationError(
            "FOCUSED_CLUSTER_STORAGE: name the storage that all workers share, such as "
            "file:///mnt/crawls, here or in the topic's section [cluster]"
        )
    if topic.revisit.continuous:
        raise ConfigurationError(
            f"{topic.path}: revisit.continuous: a crawl of many workers ends with its harvest; set "
            "it to false, or crawl without [cluster]"
        )
    return cluster


def connect_to(cluster: Cluster) -> RedisConnection:
    """Connect to the cluster's servers. Raises ConfigurationError and CoordinationError."""
    tls = TlsFiles(cluster.tls_authority, cluster.tls_certificate, cluster.tls_key)
    return connect(cluster.url, tls=tls)


def crawl_name(topic: Topic, policy: str) -> str:
    """Return the name of the crawl in Redis and in the shared storage."""
    return topic.name if policy == "focused" else f"{topic.name}-{policy}"


def default_worker_name() -> str:
    """Return a name that no other worker has."""
    return f"{platform.node() or 'worker'}-{os.getpid()}-{uuid4().hex[:4]}"


class SharedModelWatcher:
    """Publishes a model file that was retrained here, and finds those published elsewhere."""

    def __init__(
        self,
        path: Path,
        distribution: ModelDistribution,
        clock: Callable[[], float],
        present_name: Callable[[], str],
    ) -> None:
        """``present_name`` returns the name of the crawl's classifier."""
        self._path = path
        self._local = ModelWatcher(path)
        self._distribution = distribution
        self._clock = clock
        self._present_name = present_name
        self._due_at = clock()
        self._is_published = False

    def poll(self) -> NamedClassifier | None:
        """Return a classifier that was published since the last call.

        The first call publishes this machine's file if it was trained after the published one.
        """
        is_replaced = self._local.poll() is not None
        if not is_replaced and self._clock() < self._due_at:
            return None
        if is_replaced or not self._is_published:
            self._publish(only_newer=not is_replaced)
        self._due_at = self._clock() + _MODEL_POLL_S
        found = self._distribution.poll()
        if found is None or found.name == self._present_name():
            return None
        return NamedClassifier(found.classifier, found.name)

    def _publish(self, *, only_newer: bool) -> None:
        try:
            self._distribution.publish(self._path, only_newer=only_newer)
            self._is_published = True
        except FocusedError as error:
            logger.warning("%s was not published to the other workers: %s", self._path, error)


def prepare_worker(
    settings: BaseSettings, topic: Topic, cluster: Cluster, models: CrawlModels
) -> tuple[Topic, CrawlModels, OpenGroup]:
    """Return topic, models and opener of a worker's session.

    The worker's log and statistics go to a folder of its own.
    """
    name = settings["FOCUSED_WORKER"] or default_worker_name()
    folder = topic.output.folder / "workers" / name
    own = replace(topic, output=replace(topic.output, folder=folder, parquet=False))
    replayed = bool(settings["FOCUSED_REPLAY"])
    policy, classifier = settings["FOCUSED_POLICY"], models.classifier
    if models.watcher is not None and isinstance(classifier, SwappableClassifier):
        storage = SharedStorage(cluster.storage, crawl_name(topic, policy))
        distribution = ModelDistribution(storage, folder)
        watcher = SharedModelWatcher(
            topic.training.model, distribution, time.monotonic, lambda: classifier.name
        )
        models = replace(models, watcher=watcher)

    def open_group(ordering: Policy, stages: StageTimes) -> CrawlGroup:
        make_private_folder(topic.output.folder)
        make_private_folder(folder.parent)
        make_private_folder(folder)
        parts = replace(topic, output=replace(topic.output, folder=folder))
        parts = adapt_to_recorded_web(parts) if replayed else parts
        return _open_worker(parts, policy, cluster, models, ordering, stages, name)

    return own, models, open_group


def agree_on_settings(
    storage: SharedStorage, coordinator: Coordinator, topic: Topic, policy: str
) -> None:
    """Store the crawl's settings, or compare them with those that its first worker stored.

    Raises ConfigurationError if the partitions differ, or Redis knows a crawl of this name that the
    storage does not have.
    """
    if not storage.exists(_SETTINGS_FILE):
        if coordinator.statuses() and not storage.exists(_SETTINGS_FILE):
            raise ConfigurationError(
                f"{topic.path}: Redis holds the state of a crawl {topic.name!r} that is not in "
                f"{storage.url}. Name the storage of that crawl, give this topic another name, or "
                "delete the other crawl from Redis: focused cluster forget TOPIC"
            )
        described = {"topic": topic_to_json(topic), "policy": policy}
        storage.write(_SETTINGS_FILE, json.dumps(described, indent=2).encode())
        return
    try:
        there = json.loads(storage.read(_SETTINGS_FILE))["topic"]["cluster"]
        stored = there["partitions"], there["unit"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StorageError(f"{storage.name_of(_SETTINGS_FILE)} is damaged: {error!r}") from error
    assert topic.cluster is not None
    if stored != (topic.cluster.partitions, topic.cluster.unit):
        raise ConfigurationError(
            f"{topic.path}: cluster.partitions, cluster.unit: the crawl in {storage.url} has "
            f"{stored[0]} partitions by {stored[1]}, which cannot be changed; name another storage "
            "to start anew"
        )


def _open_worker(
    topic: Topic,
    policy: str,
    cluster: Cluster,
    models: CrawlModels,
    ordering: Policy,
    stages: StageTimes,
    name: str,
) -> ClusterWorker:
    connection = connect_to(cluster)
    crawl = crawl_name(topic, policy)
    coordinator = RedisCoordinator(connection, crawl)
    exchange = RedisExchange(connection, crawl)
    storage = SharedStorage(cluster.storage, crawl)
    agree_on_settings(storage, coordinator, replace(topic, cluster=cluster), policy)
    partition_models = PartitionModels(
        models.classifier,
        ordering,
        models.training_urls,
        RedisContentStore(connection, crawl),
    )
    partitions = PartitionMap(cluster.partitions, SiteUnit(cluster.unit))
    states = PartitionStates(
        topic, partition_models, partitions, storage, topic.output.folder, stages=stages
    )
    learning = None
    if isinstance(ordering.scorer, OnlineLinkScorer):
        learning = SharedLearning(ordering.scorer, exchange, storage)
        learning.restore()
    return ClusterWorker(
        WorkerStatus(name, platform.node() or "unknown", os.getpid(), time.time()),
        WorkerRounds(
            name,
            cluster.partitions,
            coordinator,
            exchange,
            states,
            Leadership(
                coordinator,
                cluster.partitions,
                topic.budget,
                ordering.wait_threshold(topic.politeness.patience_s),
            ),
        ),
        RedisPaceLeases(connection, crawl),
        states,
        ThreadPoolExecutor(_THREADS, thread_name_prefix="worker").submit,
        lease_s=coordinator.lease_s,
        request_s=topic.politeness.timeout_s,
        partitions=cluster.partitions,
        has_page_budget=topic.budget.pages is not None,
        learning=learning,
    )
