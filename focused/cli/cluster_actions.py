"""What ``focused worker`` and ``focused cluster`` do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from focused.classifier.model_file import load_named_model
from focused.cli.common import echo
from focused.cluster.coordinator import ClusterState, PartitionStatus, WorkerStatus
from focused.cluster.model_distribution import ModelDistribution
from focused.cluster.redis_coordinator import RedisCoordinator
from focused.cluster.storage import SharedStorage
from focused.errors import ConfigurationError
from focused.recorded_web.replay_process import ReplayProcess
from focused.scrapy_addon.addon_settings import topic_from_settings
from focused.scrapy_addon.cluster_worker import cluster_of, connect_to, crawl_name
from focused.scrapy_addon.crawl_session import session_of
from focused.scrapy_addon.spiders.run import project_settings, run
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from focused.topic import Cluster, Topic

_STATES = {
    "pause": ClusterState.PAUSED,
    "resume": ClusterState.RUNNING,
    "stop": ClusterState.STOPPING,
}


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of the command line besides the topic."""

    redis: tuple[str, ...] = ()
    storage: str | None = None
    policy: str = "focused"
    name: str | None = None
    web: Path | None = None
    replay: str | None = None
    pages: int | None = None
    delay_s: float | None = None
    concurrency: int | None = None
    folder: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def run_worker(topic_file: Path, options: WorkerOptions) -> int:
    """Run a worker until it is stopped or the crawl ends; return the exit status."""
    values = {
        **_cluster_settings(topic_file, options.redis, options.storage, options.policy),
        "FOCUSED_WORKER": options.name,
        "FOCUSED_RECORDED_WEB": None if options.web is None else str(options.web),
        "FOCUSED_REPLAY": options.replay,
        "FOCUSED_PAGES": options.pages,
        "FOCUSED_DELAY_S": options.delay_s,
        "FOCUSED_CONCURRENCY": options.concurrency,
        "FOCUSED_FOLDER": None if options.folder is None else str(options.folder),
        **options.settings,
    }
    settings = project_settings(values)
    with ExitStack() as stack:
        if options.web is not None and options.replay is None:
            replay = stack.enter_context(ReplayProcess(options.web))
            settings.set("FOCUSED_REPLAY", replay.address, priority="cmdline")
        crawler, started = run(TopicSpider, settings, topic=str(topic_file))
        session = session_of(crawler)
        if started and not session.status.error_message:
            echo(f"focused: the worker ended: {session.status.end_reason}", err=True)
        return int(not started or bool(session.status.error_message))


def show_status(topic_file: Path, *, as_json: bool, **named: Any) -> None:
    """Print the state of a cluster."""
    with _cluster(topic_file, **named) as (topic, cluster, coordinator):
        command = coordinator.command()
        workers, owners = coordinator.workers(), coordinator.owners()
        statuses, granted = coordinator.statuses(), coordinator.granted()
    if as_json:
        described = {
            "state": command.state,
            "reason": command.reason,
            "workers": [msgspec.to_builtins(each) for each in workers.values()],
            "partitions": [
                {**msgspec.to_builtins(each), "granted": granted.get(number, 0)}
                | {"owner": owners[number].worker if number in owners else None}
                for number, each in sorted(statuses.items())
            ],
        }
        echo(json.dumps(described, indent=2))
        return
    console = Console()
    fetched = sum(each.fetched for each in statuses.values())
    budget = "" if topic.budget.pages is None else f" of {topic.budget.pages}"
    why = f" ({command.reason})" if command.reason else ""
    console.print(
        f"{topic.name}: {command.state}{why}, {fetched}{budget} pages, "
        f"{_harvest(list(statuses.values()))}, {len(owners)} of {cluster.partitions} partitions "
        f"owned, {len(workers)} workers",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    by_worker: dict[str, list[PartitionStatus]] = {name: [] for name in workers}
    for number, lease in owners.items():
        if number in statuses:
            by_worker.setdefault(lease.worker, []).append(statuses[number])
    console.print(_worker_table(workers, by_worker))


def _worker_table(
    workers: dict[str, WorkerStatus] | Any, partitions: dict[str, list[PartitionStatus]]
) -> Table:
    columns = ("worker", "host", "state", "partitions", "pages", "pages/s", "harvest", "frontier")
    table = Table(*columns, "to send", box=None)
    for name, owned in sorted(partitions.items()):
        worker = workers.get(name)
        table.add_row(
            name,
            worker.host if worker else "?",
            worker.state if worker else "silent",
            str(len(owned)),
            str(sum(each.fetched for each in owned)),
            f"{worker.pages_per_s:.1f}" if worker else "0.0",
            _harvest(owned),
            str(sum(each.frontier for each in owned)),
            str(sum(each.outbox for each in owned)),
        )
    return table


def _harvest(statuses: Sequence[PartitionStatus]) -> str:
    classified = sum(each.classified for each in statuses)
    on_topic = sum(each.on_topic for each in statuses)
    return f"harvest {on_topic / classified:.2f}" if classified else "harvest -"


def change_state(topic_file: Path, name: str, **named: Any) -> None:
    """Tell all workers to pause, resume or stop."""
    state = _STATES[name]
    with _cluster(topic_file, **named) as (topic, _, coordinator):
        coordinator.set_state(state, "" if state is ClusterState.RUNNING else f"focused {name}")
        now = coordinator.command()
    echo(f"focused: {topic.name} is {now.state}" + (f": {now.reason}" if now.reason else ""))


def drain_workers(topic_file: Path, names: Sequence[str], **named: Any) -> None:
    """Ask workers to give their partitions away. Raises ConfigurationError for unknown ones."""
    with _cluster(topic_file, **named) as (_, _, coordinator):
        workers = coordinator.workers()
        unknown = [name for name in names if name not in workers]
        if unknown:
            raise ConfigurationError(
                f"there is no worker {', '.join(unknown)}; there are: {', '.join(workers) or '-'}"
            )
        for name in names:
            coordinator.drain(name)


def rebalance_partitions(topic_file: Path, **named: Any) -> None:
    """Let the workers assign the partitions anew."""
    with _cluster(topic_file, **named) as (_, _, coordinator):
        coordinator.rebalance()


def forget_crawl(topic_file: Path, **named: Any) -> None:
    """Delete a crawl from Redis. Raises ConfigurationError while workers run."""
    with _cluster(topic_file, **named) as (topic, cluster, coordinator):
        running = coordinator.workers()
        if running:
            raise ConfigurationError(
                f"{topic.name} has workers: {', '.join(running)}; end them first, with "
                "focused cluster stop"
            )
        connection = connect_to(cluster)
        deleted = connection.delete_crawl(crawl_name(topic, named["policy"]))
        connection.close()
    echo(f"focused: {deleted} keys of {topic.name} were deleted from Redis")


def publish_topic_model(topic_file: Path, **named: Any) -> None:
    """Let all workers use this machine's model file."""
    with _cluster(topic_file, **named) as (topic, cluster, _):
        storage = SharedStorage(cluster.storage, crawl_name(topic, named["policy"]))
        ModelDistribution(storage, topic.output.folder).publish(topic.training.model)
        _, name = load_named_model(topic.training.model)
    echo(f"focused: workers use model {name} within seconds ({time.strftime('%H:%M:%S')})")


@contextmanager
def _cluster(
    topic_file: Path, redis: tuple[str, ...], storage: str | None, policy: str
) -> Iterator[tuple[Topic, Cluster, RedisCoordinator]]:
    settings = project_settings(_cluster_settings(topic_file, redis, storage, policy))
    topic = topic_from_settings(settings)
    cluster = cluster_of(topic, settings)
    connection = connect_to(cluster)
    try:
        yield topic, cluster, RedisCoordinator(connection, crawl_name(topic, policy))
    finally:
        connection.close()


def _cluster_settings(
    topic_file: Path, redis: tuple[str, ...], storage: str | None, policy: str
) -> dict[str, Any]:
    return {
        "FOCUSED_TOPIC": str(topic_file),
        "FOCUSED_POLICY": policy,
        "FOCUSED_CLUSTER": " ".join(redis) or "topic",
        "FOCUSED_CLUSTER_STORAGE": storage,
    }
