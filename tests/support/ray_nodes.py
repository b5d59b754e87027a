"""Machines of a Ray cluster, as processes of this one, and the processes that they run."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from focused.child_processes import python_environment

_STORE_BYTES = 80_000_000
_SMALL: Mapping[str, Any] = {"include_dashboard": False, "object_store_memory": _STORE_BYTES}


class RayNodes:
    """A head without CPUs, and nodes on which partitions run."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address: str = cluster.address
        self._nodes: list[Any] = []

    def add(self, cpus: int) -> None:
        """Let a node join."""
        self._nodes.append(self._cluster.add_node(num_cpus=cpus, **_SMALL))

    def kill_one(self) -> None:
        """Kill the raylet of a node, as if its machine was lost."""
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)


@contextmanager
def ray_nodes(*cpus: int) -> Iterator[RayNodes]:
    """Nodes with so many CPUs; what they started ends with them."""
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # stay on the loopback address
        "PYTHONPATH": python_environment()["PYTHONPATH"],  # partitions import modules of the tests
    }
    with mock.patch.dict(os.environ, environment):
        from ray import cluster_utils  # slow to import, after the environment is set

        head = {"num_cpus": 0, **_SMALL}
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        try:
            nodes = RayNodes(cluster)
            for each in cpus:
                nodes.add(each)
            yield nodes
        finally:
            cluster.shutdown()


@contextmanager
def executor_options(executor: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the options of a crawl by processes of this machine, or by Ray with shared storage."""
    if executor == "local":
        yield {}
        return
    with ray_nodes(2, 2) as nodes:
        yield {"storage": f"file://{folder}/shared", "ray": nodes.address}


def parent_of(process: int) -> int:
    """Return the parent of a process: of a partition's process, its actor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
