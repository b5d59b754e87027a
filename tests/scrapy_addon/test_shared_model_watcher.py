"""A model file that is replaced on one machine reaches the workers of all machines."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from focused.classifier.model_file import model_name, save_model
from focused.cluster.model_distribution import ModelDistribution
from focused.scrapy_addon.cluster_worker import SharedModelWatcher
from tests.support.made_up_topic import trained
from tests.support.memory_storage import MemoryStorage


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two models that differ; the second was trained later."""
    older, newer = (tmp_path_factory.mktemp(name) / "model.joblib" for name in ("one", "two"))
    save_model(trained(older.parent), older)
    later = trained(newer.parent, estimator="logistic-regression")
    save_model(replace(later, report=replace(later.report, trained_at=2e9)), newer)
    return older, newer


@dataclass
class Machine:
    """One worker's model file, and the name of its classifier."""

    path: Path
    storage: MemoryStorage
    name: str
    now: float = 0.0

    def __post_init__(self) -> None:
        distribution = ModelDistribution(self.storage, self.path.parent / "worker")
        self.watcher = SharedModelWatcher(
            self.path, distribution, lambda: self.now, lambda: self.name
        )

    def poll(self) -> None:
        """After so long that the announcement is read."""
        self.now += 60.0
        found = self.watcher.poll()
        if found is not None:
            assert found.name != self.name, "the model that it has already"
            self.name = found.name

    def retrain(self, model: Path) -> None:
        shutil.copy(model, self.path.with_suffix(".new"))
        self.path.with_suffix(".new").replace(self.path)


def machine(folder: Path, storage: MemoryStorage, model: Path) -> Machine:
    folder.mkdir()
    path = folder / "model.joblib"
    shutil.copy(model, path)
    return Machine(path, storage, model_name(path))


def test_a_model_that_is_retrained_on_one_machine_reaches_the_others(model_files, tmp_path):
    storage = MemoryStorage()
    machines = [machine(tmp_path / name, storage, model_files[0]) for name in "ab"]
    for each in machines:
        each.poll()
    machines[0].retrain(model_files[1])
    for each in machines:
        each.poll()
    assert [each.name for each in machines] == [model_name(model_files[1])] * 2


def test_a_worker_that_joins_with_an_older_file_gets_the_announced_model(model_files, tmp_path):
    storage = MemoryStorage()
    machine(tmp_path / "a", storage, model_files[1]).poll()
    joined = machine(tmp_path / "b", storage, model_files[0])
    joined.poll()
    assert joined.name == model_name(model_files[1])


def test_a_worker_that_joins_with_a_newer_file_brings_it(model_files, tmp_path):
    storage = MemoryStorage()
    old = machine(tmp_path / "a", storage, model_files[0])
    old.poll()
    machine(tmp_path / "b", storage, model_files[1]).poll()
    old.poll()
    assert old.name == model_name(model_files[1])


def test_an_older_version_that_is_restored_during_the_crawl_reaches_all(model_files, tmp_path):
    storage = MemoryStorage()
    machines = [machine(tmp_path / name, storage, model_files[1]) for name in "ab"]
    for each in machines:
        each.poll()
    machines[0].retrain(model_files[0])
    for each in machines:
        each.poll()
    assert [each.name for each in machines] == [model_name(model_files[0])] * 2


def test_without_the_storage_a_worker_keeps_its_model(model_files, tmp_path, caplog):
    storage = MemoryStorage()
    storage.is_down = True
    begun = machine(tmp_path / "a", storage, model_files[0])
    begun.poll()
    assert begun.name == model_name(model_files[0])
    assert "was not published to the other workers" in caplog.text
