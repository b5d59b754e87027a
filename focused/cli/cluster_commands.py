"""``focused worker`` and ``focused cluster ...``: crawl a topic on many machines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FOLDER, SECONDS, finite, settings_option


def _cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a cluster."""
    url = click.option(
        "--redis",
        metavar="URL",
        multiple=True,
        help="Override cluster.url: a Redis server, or nodes of a Redis Cluster. Repeatable.",
    )
    storage = click.option("--storage", metavar="URL", help="Override cluster.storage.")
    policy = click.option(
        "--policy", default="focused", show_default=True, help="Ordering of the crawl."
    )
    return url(storage(policy(command)))


@click.command()
@click.argument("topic", type=ANY_PATH)
@_cluster_options
@click.option("--name", help="Name of this worker; by default made from host name and process.")
@click.option(
    "--web", type=FOLDER, help="Crawl this recorded web; its samples train the classifier."
)
@click.option(
    "--replay",
    metavar="HOST:PORT",
    help="Send all requests to this replay server (focused web serve), which all workers share.",
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages, for all workers.")
@click.option(
    "--delay-s", type=SECONDS, callback=finite, help="Override politeness.delay_s, on all workers."
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    help="Override politeness.concurrency, which is that of one worker.",
)
@click.option("--folder", type=FOLDER, help="Override output.folder, for what is local.")
@settings_option
def worker(topic: Path, redis: tuple[str, ...], **options: Any) -> None:
    """Crawl partitions of a topic together with other workers.

    The topic's section [cluster] says where they meet. Start as many workers as you like, on any
    machine, at any time; stop one with Ctrl-C, and the others take its partitions.
    """
    from focused.cli.cluster_actions import WorkerOptions, run_worker

    sys.exit(run_worker(topic, WorkerOptions(redis=redis, **options)))


@click.group()
def cluster() -> None:
    """Watch and steer the workers of a topic's crawl."""


@cluster.command()
@click.argument("topic", type=ANY_PATH)
@_cluster_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(topic: Path, as_json: bool, **named: Any) -> None:
    """Show workers, partitions, rates and harvest."""
    from focused.cli.cluster_actions import show_status

    show_status(topic, as_json=as_json, **named)


def _state_command(name: str, text: str) -> None:
    @cluster.command(name, help=text)
    @click.argument("topic", type=ANY_PATH)
    @_cluster_options
    def command(topic: Path, **named: Any) -> None:
        from focused.cli.cluster_actions import change_state

        change_state(topic, name, **named)


_state_command("pause", "Let all workers keep their partitions and fetch nothing.")
_state_command("resume", "Let all workers go on, also after stop, or with a larger budget.")
_state_command("stop", "Let all workers store their partitions and end; resume undoes it.")


@cluster.command()
@click.argument("topic", type=ANY_PATH)
@click.argument("names", nargs=-1, required=True)
@_cluster_options
def drain(topic: Path, names: tuple[str, ...], **named: Any) -> None:
    """Let workers give their partitions to others, then end."""
    from focused.cli.cluster_actions import drain_workers

    drain_workers(topic, names, **named)


@cluster.command()
@click.argument("topic", type=ANY_PATH)
@_cluster_options
def rebalance(topic: Path, **named: Any) -> None:
    """Assign the partitions to the workers anew, where loads are unequal."""
    from focused.cli.cluster_actions import rebalance_partitions

    rebalance_partitions(topic, **named)


@cluster.command()
@click.argument("topic", type=ANY_PATH)
@_cluster_options
def forget(topic: Path, **named: Any) -> None:
    """Delete the crawl from Redis, to start anew with an empty storage.

    Stop all workers first. The storage is left as it is.
    """
    from focused.cli.cluster_actions import forget_crawl

    forget_crawl(topic, **named)


@cluster.command("publish-model")
@click.argument("topic", type=ANY_PATH)
@_cluster_options
def publish_model(topic: Path, **named: Any) -> None:
    """Let all workers use the topic's model file of this machine."""
    from focused.cli.cluster_actions import publish_topic_model

    publish_topic_model(topic, **named)
