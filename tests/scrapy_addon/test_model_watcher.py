"""A model file that is replaced, truncated or damaged while it is read."""

import hashlib
import shutil
from pathlib import Path

import pytest

from focused.classifier.classifier_file import load_classifier
from focused.classifier.model_file import load_model, save_model
from focused.scrapy_addon.crawl_models import ModelWatcher
from tests.support.made_up_topic import page, trained


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two model files that classify differently."""
    folder = tmp_path_factory.mktemp("models")
    for name, estimator in (("first", "naive-bayes"), ("second", "logistic-regression")):
        made = trained(tmp_path_factory.mktemp(name), estimator=estimator)
        save_model(made, folder / f"{name}.joblib")
    return folder / "first.joblib", folder / "second.joblib"


@pytest.fixture
def model(models: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(models[0], tmp_path / "model.joblib"))


def replace(model: Path, content: bytes) -> None:
    part = model.with_suffix(".part")
    part.write_bytes(content)
    part.replace(model)


def relevance(path: Path) -> float:
    return load_model(path).classifier.classify(page("cheese", 7)).relevance


def test_a_model_that_is_replaced_between_two_reads_keeps_its_own_name(models, model, monkeypatch):
    read = Path.read_bytes

    def read_and_replace(path: Path) -> bytes:
        content = read(path)
        replace(model, read(models[1]))
        return content

    monkeypatch.setattr(Path, "read_bytes", read_and_replace)
    classifier, name = load_classifier(model)
    monkeypatch.undo()
    assert classifier.classify(page("cheese", 7)).relevance == relevance(models[0])
    assert hashlib.sha256(models[0].read_bytes()).hexdigest().startswith(name)


@pytest.mark.parametrize("part", [0.0, 0.5, 0.999])
def test_a_model_that_is_cut_short_changes_nothing_until_a_whole_one_is_there(
    models, model, part, caplog
):
    watch, whole = ModelWatcher(model), models[1].read_bytes()
    with model.open("wb") as file:  # in place, as a copy over the network does
        file.write(whole[: int(len(whole) * part)])
        file.flush()
        assert watch.poll() is None
        assert "the new model was ignored" in caplog.text
        assert watch.poll() is None  # logged once
        file.write(whole[int(len(whole) * part) :])
    found = watch.poll()
    assert found is not None
    assert found[0].classify(page("cheese", 7)).relevance == relevance(models[1])


def test_a_model_with_a_flipped_bit_changes_nothing(models, model, caplog):
    watch, damaged = ModelWatcher(model), bytearray(models[1].read_bytes())
    damaged[len(damaged) // 2] ^= 16
    replace(model, bytes(damaged))
    assert watch.poll() is None
    assert str(model) in caplog.text


def test_a_model_that_is_gone_for_a_moment_changes_nothing(models, model):
    watch = ModelWatcher(model)
    model.unlink()
    assert watch.poll() is None
    replace(model, models[1].read_bytes())
    assert watch.poll() is not None
