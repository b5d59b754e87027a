"""A worker finds its cluster, and joins no other crawl than its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scrapy.settings import BaseSettings

from focused.cluster.coordinator import PartitionStatus
from focused.cluster.memory_coordinator import MemoryCoordinator
from focused.cluster.storage import SharedStorage
from focused.errors import ConfigurationError
from focused.scrapy_addon.cluster_worker import agree_on_settings, cluster_of
from focused.topic import Cluster, Revisit, Topic
from tests.support.simulated import topic

CLUSTER = Cluster(("redis://a.test",), "file:///mnt/crawls", partitions=8)


@pytest.fixture
def subject(tmp_path: Path) -> Topic:
    return topic(tmp_path, "http://a.test/", cluster=CLUSTER)


def settings(url: str = "topic", storage: str | None = None) -> BaseSettings:
    return BaseSettings({"FOCUSED_CLUSTER": url, "FOCUSED_CLUSTER_STORAGE": storage})


def test_the_topic_file_names_the_cluster(subject: Topic) -> None:
    assert cluster_of(subject, settings()) == CLUSTER


def test_settings_override_servers_and_storage(subject: Topic) -> None:
    found = cluster_of(subject, settings("redis://b.test redis://c.test", "s3://bucket"))
    assert found == replace(
        CLUSTER, url=("redis://b.test", "redis://c.test"), storage="s3://bucket"
    )


def test_a_topic_without_a_cluster_is_an_error(subject: Topic) -> None:
    with pytest.raises(ConfigurationError, match=r"has no section \[cluster\]"):
        cluster_of(replace(subject, cluster=None), settings())


def test_servers_without_a_storage_are_an_error(subject: Topic) -> None:
    with pytest.raises(ConfigurationError, match="FOCUSED_CLUSTER_STORAGE"):
        cluster_of(replace(subject, cluster=None), settings("redis://b.test"))


def test_a_continuous_crawl_is_refused(subject: Topic) -> None:
    with pytest.raises(ConfigurationError, match=r"revisit\.continuous"):
        cluster_of(replace(subject, revisit=Revisit(continuous=True)), settings())


@pytest.fixture
def storage(tmp_path: Path) -> SharedStorage:
    return SharedStorage(f"file://{tmp_path}/shared", "whales")


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator(lambda: 0.0)


def test_the_first_worker_stores_the_settings_and_others_agree(
    subject: Topic, storage: SharedStorage, coordinator: MemoryCoordinator
) -> None:
    agree_on_settings(storage, coordinator, subject, "focused")
    coordinator.report([PartitionStatus(0, 1, "first")])
    agree_on_settings(storage, coordinator, subject, "focused")
    assert json.loads(storage.read("settings.json"))["policy"] == "focused"


def test_the_number_of_partitions_cannot_be_changed(
    subject: Topic, storage: SharedStorage, coordinator: MemoryCoordinator
) -> None:
    agree_on_settings(storage, coordinator, subject, "focused")
    more = replace(subject, cluster=replace(CLUSTER, partitions=16))
    with pytest.raises(ConfigurationError, match="8 partitions by domain, which cannot be changed"):
        agree_on_settings(storage, coordinator, more, "focused")


def test_a_crawl_that_only_redis_knows_is_not_joined(
    subject: Topic, storage: SharedStorage, coordinator: MemoryCoordinator
) -> None:
    coordinator.report([PartitionStatus(0, 1, "of an earlier crawl")])
    with pytest.raises(ConfigurationError, match="focused cluster forget"):
        agree_on_settings(storage, coordinator, subject, "focused")
