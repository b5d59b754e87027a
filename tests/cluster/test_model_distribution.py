"""A retrained model reaches all workers; a damaged or foreign one reaches none."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.model_file import load_model, model_name, save_model
from focused.cluster.model_distribution import ModelAnnouncement, ModelDistribution
from focused.errors import ModelError, StorageError
from tests.support.made_up_topic import page, trained
from tests.support.memory_storage import MemoryStorage


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two models that differ; the second was trained later."""
    first, second = (tmp_path_factory.mktemp(name) / "model.joblib" for name in ("one", "two"))
    save_model(trained(first.parent), first)
    later = trained(second.parent, estimator="logistic-regression")
    save_model(replace(later, report=replace(later.report, trained_at=2e9)), second)
    return first, second


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def announce(storage: MemoryStorage, content: bytes) -> None:
    """Announce a file that is no model, as no worker does."""
    announcement = ModelAnnouncement(hashlib.sha256(content).hexdigest(), len(content), 0.0)
    storage.write(announcement.object_name, content)
    storage.write("models/current.json", msgspec.json.encode(announcement))


def test_every_worker_gets_a_published_model_once(storage, model_files, tmp_path):
    publisher, other = (ModelDistribution(storage, tmp_path / name) for name in "ab")
    publisher.publish(model_files[0])
    for worker in (publisher, other):
        model = worker.poll()
        assert model is not None
        assert model.name == model_name(model_files[0])
        assert worker.poll() is None
        expected = load_model(model_files[0]).classifier.classify(page("cheese", 7))
        assert model.classifier.classify(page("cheese", 7)) == expected


def test_the_next_model_replaces_it(storage, model_files, tmp_path):
    worker = ModelDistribution(storage, tmp_path)
    names = []
    for path in (*model_files, model_files[0]):
        worker.publish(path)
        model = worker.poll()
        names.append(model.name if model else None)
    first, second = map(model_name, model_files)
    assert names == [first, second, first]


def test_an_older_model_does_not_replace_a_newer_one_by_itself(storage, model_files, tmp_path):
    """A worker starts with the file of its machine, which may be older than the announced one."""
    worker = ModelDistribution(storage, tmp_path)
    older, newer = model_files
    assert worker.publish(older, only_newer=True)
    assert worker.publish(newer, only_newer=True)
    assert not worker.publish(older, only_newer=True)
    model = worker.poll()
    assert model is not None
    assert model.name == model_name(newer)


def test_a_malformed_announcement_is_replaced(storage, model_files, tmp_path):
    storage.write("models/current.json", b"?")
    worker = ModelDistribution(storage, tmp_path)
    assert worker.publish(model_files[0], only_newer=True)
    assert worker.poll() is not None


def test_without_an_announcement_there_is_no_model(storage, tmp_path):
    assert ModelDistribution(storage, tmp_path).poll() is None


def test_a_file_that_cannot_be_loaded_is_not_published(storage, tmp_path):
    path = tmp_path / "model.joblib"
    path.write_bytes(b"no model")
    with pytest.raises(ModelError):
        ModelDistribution(storage, tmp_path).publish(path)
    assert storage.objects == {}


def test_a_damaged_file_is_refused(storage, model_files, tmp_path, caplog):
    worker = ModelDistribution(storage, tmp_path)
    worker.publish(model_files[0])
    (name,) = (each for each in storage.objects if each.endswith(".joblib"))
    storage.objects[name] = storage.objects[name][:-1]
    assert worker.poll() is None
    assert "its SHA-256 is not the announced one; publish the model again" in caplog.text


def test_a_file_that_would_run_a_command_is_refused_and_runs_nothing(storage, tmp_path, caplog):
    class Bomb:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'exploded'}",)

    announce(storage, pickle.dumps({"format": Bomb()}, protocol=4))
    assert ModelDistribution(storage, tmp_path / "worker").poll() is None
    assert "the announced model was ignored" in caplog.text
    assert not (tmp_path / "exploded").exists()


def test_a_foreign_file_is_refused_once(storage, tmp_path, caplog):
    announce(storage, b"not ours")
    worker = ModelDistribution(storage, tmp_path)
    assert [worker.poll() for _ in range(3)] == [None] * 3
    assert caplog.text.count("the announced model was ignored") == 1


@pytest.mark.parametrize(
    "announcement",
    [
        b"",
        b"{}",
        b'{"sha256": "../../etc/passwd", "bytes": 10, "trained_at": 0}',
        b'{"sha256": "%s", "bytes": 99999999999999, "trained_at": 0}' % (b"0" * 64),
        b'{"sha256": "%s", "bytes": 10, "trained_at": -1}' % (b"0" * 64),
        b'{"sha256": "%s", "bytes": 10, "trained_at": 0, "path": "x"}' % (b"0" * 64),
    ],
)
def test_a_malformed_announcement_is_refused(announcement, storage, tmp_path, caplog):
    storage.write("models/current.json", announcement)
    assert ModelDistribution(storage, tmp_path).poll() is None
    assert "models/current.json in the shared storage is no announcement" in caplog.text


@given(st.binary(max_size=100))
def test_no_announcement_stops_a_worker(announcement):
    storage = MemoryStorage()
    storage.write("models/current.json", announcement)
    assert ModelDistribution(storage, Path("never-written")).poll() is None


def test_a_model_is_loaded_when_the_storage_is_back(storage, model_files, tmp_path, caplog):
    worker = ModelDistribution(storage, tmp_path)
    worker.publish(model_files[0])
    storage.is_down = True
    assert worker.poll() is None
    assert "the announced model was not read: the storage is unreachable" in caplog.text
    storage.is_down = False
    assert worker.poll() is not None


def test_a_model_that_cannot_be_published_is_an_error(storage, model_files, tmp_path):
    storage.is_down = True
    with pytest.raises(StorageError):
        ModelDistribution(storage, tmp_path).publish(model_files[0])
