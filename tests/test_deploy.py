"""The manifests and units in deploy/ are valid, and name what exists."""

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from docs.site_hooks import commands

DEPLOY = Path(__file__).parents[1] / "deploy"
KUBERNETES = "1.31"
DOCKERFILES = sorted(DEPLOY.glob("*/Dockerfile"))
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (DEPLOY / "compose" / "compose.yaml").read_text()
)["services"]
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (f"{file.name}: {each['kind']} {each['metadata']['name']}", each)
    for file in sorted(DEPLOY.glob("kubernetes/*.yaml"))
    for each in yaml.safe_load_all(file.read_text())
]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    found = [each for _, each in OBJECTS if each["kind"] == kind]
    return {each["metadata"]["name"]: each for each in found}


def job() -> dict[str, Any]:
    spec: dict[str, Any] = of_kind("RayJob")["focused-mine"]["spec"]
    return spec


def pods() -> dict[str, dict[str, Any]]:
    """The pods of the job's cluster: the head, and each group of workers."""
    cluster = job()["rayClusterSpec"]
    groups = {each["groupName"]: each for each in cluster["workerGroupSpecs"]}
    return {
        name: each["template"]
        for name, each in {"head": cluster["headGroupSpec"], **groups}.items()
    }


def check_command(words: list[str]) -> None:
    """Check a command line of focused against its commands and their options."""
    known = dict(commands())
    name = next(name for name in known if words[: len(name.split())] == name.split())
    command = known[name]
    assert isinstance(command, click.Command)
    command.make_context(name, words[len(name.split()) :], resilient_parsing=True)
    options = {option for each in command.params for option in each.opts}
    assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("described", [each for _, each in OBJECTS], ids=[n for n, _ in OBJECTS])
def test_each_manifest_is_valid_by_the_strict_schema_of_kubernetes(described):
    if described["apiVersion"] == "v1":
        kubernetes_validate.validate(described, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", pods())
def test_each_pod_of_the_cluster_is_valid(name):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **pods()[name]}
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_there_is_room_for_all_processes():
    groups = job()["rayClusterSpec"]["workerGroupSpecs"]
    cpus = sum(each["replicas"] * int(each["rayStartParams"]["num-cpus"]) for each in groups)
    words = shlex.split(job()["entrypoint"])
    assert int(words[words.index("--processes") + 1]) == cpus


def test_secrets_that_pods_use_are_in_the_secret():
    keys = of_kind("Secret")["focused"]["stringData"].keys()
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= keys
    for pod in pods().values():
        (container,) = pod["spec"]["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "focused"}}]


def test_the_job_runs_a_command_that_exists():
    check_command(shlex.split(job()["entrypoint"]))


def test_image_and_job_have_the_same_ray():
    (image,) = [file for file in DOCKERFILES if file.parent.name == "kubernetes"]
    assert f"ray[default]=={job()['rayClusterSpec']['rayVersion']}" in image.read_text()


@pytest.mark.parametrize("name", ["focused@.service"])
def test_a_unit_runs_a_command_that_exists_and_restarts_only_failures(name):
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((DEPLOY / "systemd" / name).read_text())
    program, *rest = shlex.split(unit["Service"]["ExecStart"])
    check_command([Path(program).name, *rest])
    assert unit["Service"]["Restart"] == "on-failure"


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_an_image_copies_only_the_folder_that_topic_new_makes(file):
    copied = re.findall(r"^COPY (?:--\S+ )*(\S+)", file.read_text(), re.MULTILINE)
    assert set(copied) <= {"topics"}


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_an_image_installs_extras_that_exist(file):
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"focused-crawler\[(.*?)\]", file.read_text())
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_runs_a_command_that_exists_and_restarts_only_failures(name):
    service = SERVICES[name]
    check_command(["focused", *service["command"]])
    assert service["restart"] == "on-failure"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_publishes_ports_to_its_machine_alone(name):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_console_and_crawl_of_the_services_share_their_folders():
    assert SERVICES["console"]["volumes"] == SERVICES["crawl"]["volumes"]
