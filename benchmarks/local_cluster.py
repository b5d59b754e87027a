"""A cluster on this machine: Redis, a recorded web behind HTTP, and workers in processes.

``python benchmarks/local_cluster.py TOPIC``, or ``make crawl-cluster``: crawl a topic by four
workers over three masters and three replicas, kill a worker and a master on the way, and print the
report of the whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from focused.cluster.coordinator import ClusterState
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_connection import (
    PASSWORD_VARIABLE,
    connect,
    open_server,
    parse_redis_url,
)
from focused.cluster.redis_coordinator import RedisCoordinator
from focused.errors import CoordinationError
from focused.recorded_web.replay_faults import FaultPlan
from focused.recorded_web.replay_process import ReplayProcess
from focused.topic.topic_file import load_topic

POLL_S = 0.2


class LocalCluster:
    """Context manager: everything below ``folder``; what runs ends with it."""

    def __init__(
        self,
        topic: Path,
        web: Path,
        folder: Path,
        *,
        masters: int = 3,
        replicas: int = 1,
        arguments: Sequence[str] = (),
        faults: FaultPlan | None = None,
        storage: str | None = None,
    ) -> None:
        """``arguments`` are further options of ``focused worker``."""
        self.topic, self.web, self.folder = topic, web, folder
        self.name = load_topic(topic).name
        self.storage = storage or f"file://{folder.absolute()}/shared"
        self.access_log = folder / "access.log"
        self.redis = LocalRedis(folder / "redis", masters=masters, replicas=replicas)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._arguments = arguments
        self._replay = ReplayProcess(web, access_log=self.access_log, faults=faults)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stack.enter_context(self.redis)
        self._stack.enter_context(self._replay)
        self._stack.callback(self._stop_workers)
        self.coordinator = RedisCoordinator(connect(list(self.redis.urls)), self.name)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start(self, name: str) -> None:
        """Start a worker."""
        command = [sys.executable, "-m", "focused.cli", "worker", str(self.topic)]
        for url in self.redis.urls:
            command += ["--redis", _without_password(url)]
        command += [
            "--storage",
            self.storage,
            "--name",
            name,
            "--web",
            str(self.web),
            "--replay",
            self._replay.address,
        ]
        command += ["--folder", str(self.folder / "local"), *self._arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, PASSWORD_VARIABLE: self.redis.password},
            )

    def signal(self, name: str, which: signal.Signals) -> None:
        """Send a signal to a worker."""
        os.kill(self.workers[name].pid, which)
        if which is signal.SIGKILL:
            self.workers.pop(name).wait()

    def cut_connections(self) -> None:
        """Close all connections of clients to Redis, on the side of the servers."""
        for url in self.redis.urls:
            with contextlib.suppress(CoordinationError):
                open_server(parse_redis_url(url)).execute("CLIENT", "KILL", "TYPE", "normal")

    def pages(self) -> int:
        """Return how many pages all partitions have fetched."""
        return sum(status.fetched for status in self.coordinator.statuses().values())

    def partitions_of(self, name: str) -> int:
        """Return how many partitions a worker owns."""
        return sum(lease.worker == name for lease in self.coordinator.owners().values())

    def wait(self, until: Callable[[], bool], within_s: float, what: str) -> None:
        """Wait until a condition holds. Raises RuntimeError after ``within_s``."""
        give_up_at = time.monotonic() + within_s
        while not until():
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"{what}: not within {within_s:.0f} s; logs in {self.folder}")
            time.sleep(POLL_S)

    def has_ended(self) -> bool:
        """Whether the crawl is over and all workers have left."""
        ended = self.coordinator.command().state is ClusterState.ENDED
        return ended and all(worker.poll() is not None for worker in self.workers.values())

    def report(self) -> Mapping[str, Any]:
        """Print the report of all partitions, and return it."""
        parts, out = self.folder / "shared" / self.name, self.folder / "report"
        command = [sys.executable, "-m", "focused.cli", "report", str(parts), "--out", str(out)]
        subprocess.run([*command, "--web", str(self.web)], check=True)
        described: dict[str, Any] = json.loads((out / "report.json").read_text())
        return described

    def _stop_workers(self) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
        for worker in self.workers.values():
            try:
                worker.wait(30.0)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def main() -> None:
    """Crawl a topic by a cluster of this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic", type=Path)
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--folder", type=Path, default=Path("crawls/cluster"))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--pages", type=int, help="override budget.pages")
    parser.add_argument("--delay-s", type=float, default=0.0)
    options = parser.parse_args()
    if options.folder.exists():
        shutil.rmtree(options.folder)
    arguments = ["--delay-s", str(options.delay_s)]
    if options.pages is not None:
        arguments += ["--pages", str(options.pages)]
    budget = options.pages or load_topic(options.topic).budget.pages or 1_000
    names = [f"worker-{number}" for number in range(1, options.workers + 1)]
    with LocalCluster(options.topic, options.web, options.folder, arguments=arguments) as cluster:
        print(f"Redis: {', '.join(map(_without_password, cluster.redis.urls))}")
        began_at = time.monotonic()
        for name in names:
            cluster.start(name)
        _tell(cluster, began_at, f"{len(names)} workers started")
        cluster.wait(lambda: cluster.pages() >= budget // 4, 600.0, "a quarter of the pages")
        cluster.signal(names[0], signal.SIGKILL)
        _tell(cluster, began_at, f"{names[0]} was killed")
        killed = cluster.redis.kill_master(0)
        _tell(cluster, began_at, f"the Redis master {killed} was killed", ask=False)
        cluster.wait(lambda: _is_answering(cluster), 60.0, "the failover of Redis")
        _tell(cluster, began_at, "its replica has taken over")
        cluster.wait(cluster.has_ended, 3_600.0, "the end of the crawl")
        _tell(cluster, began_at, f"ended: {cluster.coordinator.command().reason}")
    cluster.report()


def _is_answering(cluster: LocalCluster) -> bool:
    try:
        cluster.pages()
    except Exception:
        return False
    return True


def _tell(cluster: LocalCluster, began_at: float, what: str, *, ask: bool = True) -> None:
    at = time.monotonic() - began_at
    pages = f", {cluster.pages()} pages" if ask else ""
    print(f"{at:6.1f} s{pages}: {what}", flush=True)


if __name__ == "__main__":
    main()
