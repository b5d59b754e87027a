"""Replaced models are kept as versions and can be restored."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from focused.classifier.model_file import (
    keep_version,
    list_versions,
    load_model,
    lock_model,
    prepend_changelog,
    replace_model,
    restore_version,
    save_model,
    versions_folder,
)
from focused.errors import ModelError
from tests.support.made_up_topic import trained


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models that differ."""
    first = trained(tmp_path_factory.mktemp("first"))
    second = trained(tmp_path_factory.mktemp("second"), estimator="logistic-regression")
    return first, second


@pytest.fixture
def in_office(models, tmp_path) -> Path:
    path = tmp_path / "cheese.joblib"
    save_model(models[0], path)
    path.with_suffix(".urls").write_text("https://a.example/\n", encoding="utf-8")
    return path


def test_versions_are_numbered_from_one_and_the_model_stays_current(in_office):
    before = in_office.read_bytes()
    assert [keep_version(in_office) for _ in range(3)] == [1, 2, 3]
    assert list_versions(in_office) == [1, 2, 3]
    assert in_office.read_bytes() == before


def test_a_version_has_its_card_and_the_urls_it_learned_from(in_office):
    keep_version(in_office)
    names = {path.name for path in versions_folder(in_office).iterdir()}
    assert names == {"1.joblib", "1.md", "1.urls"}


def test_a_restored_version_is_the_model_that_was_kept_and_the_other_is_kept(in_office, models):
    old = in_office.read_bytes()
    keep_version(in_office)
    save_model(models[1], in_office)
    in_office.with_suffix(".urls").unlink()
    newer = in_office.read_bytes()
    kept = restore_version(in_office, 1)
    assert in_office.read_bytes() == old
    assert "naive-bayes" in in_office.with_suffix(".md").read_text(encoding="utf-8")
    assert in_office.with_suffix(".urls").read_text(encoding="utf-8") == "https://a.example/\n"
    assert (versions_folder(in_office) / f"{kept}.joblib").read_bytes() == newer
    restore_version(in_office, kept)
    assert in_office.read_bytes() == newer
    assert not in_office.with_suffix(".urls").exists()


def test_a_version_that_is_not_there_is_an_error_that_names_those_that_are(in_office):
    keep_version(in_office)
    with pytest.raises(ModelError, match=r"no version 7; kept are: 1"):
        restore_version(in_office, 7)


def test_a_damaged_version_is_not_restored(in_office):
    keep_version(in_office)
    before = in_office.read_bytes()
    kept = versions_folder(in_office) / "1.joblib"
    kept.write_bytes(kept.read_bytes()[:-20])
    with pytest.raises(ModelError, match="damaged"):
        restore_version(in_office, 1)
    assert in_office.read_bytes() == before
    assert load_model(in_office)


def test_changes_are_listed_the_newest_first(in_office):
    prepend_changelog(in_office, "## Version 2\n\nolder")
    path = prepend_changelog(in_office, "## Version 3\n\nnewer")
    assert path.read_text(encoding="utf-8") == "## Version 3\n\nnewer\n\n## Version 2\n\nolder\n"


def test_a_replaced_model_is_kept(in_office, models):
    before = in_office.read_bytes()
    assert replace_model(models[1], in_office) == 1
    assert (versions_folder(in_office) / "1.joblib").read_bytes() == before
    assert load_model(in_office).report.estimator == "logistic-regression"


@pytest.mark.parametrize("content", [None, b"\x80\x04garbage"])
def test_a_model_that_cannot_be_loaded_is_not_kept(models, tmp_path, content):
    path = tmp_path / "cheese.joblib"
    if content is not None:
        path.write_bytes(content)
    assert replace_model(models[0], path) is None
    assert load_model(path)
    assert list_versions(path) == []


def test_one_process_at_a_time_trains_a_model(in_office):
    with (
        lock_model(in_office),
        pytest.raises(ModelError, match="another process"),
        lock_model(in_office),
    ):
        pytest.fail("two at once")
    with lock_model(in_office):
        pass


def test_models_side_by_side_may_be_trained_together(in_office):
    with lock_model(in_office), lock_model(in_office.with_name("garden.joblib")):
        pass


def test_a_killed_replacement_leaves_a_complete_model(in_office, models, tmp_path, monkeypatch):
    """What lies in the folder before and after each step is what a kill would leave."""
    left = tmp_path / "left"

    def note() -> None:
        number = len(list(left.iterdir())) if left.exists() else 0
        shutil.copytree(in_office.parent, left / str(number), ignore=lambda *_: ["left"])

    rename = Path.replace

    def noted_rename(path: Path, target: Path) -> Path:
        note()
        renamed = rename(path, target)
        note()
        return renamed

    old = in_office.read_bytes()
    monkeypatch.setattr(Path, "replace", noted_rename)
    replace_model(replace(models[1], training_urls=frozenset({"https://b.example/"})), in_office)
    monkeypatch.undo()
    new = in_office.read_bytes()
    found = []
    for number in range(len(list(left.iterdir()))):
        kept = left / str(number) / in_office.name
        load_model(kept)
        found.append(kept.read_bytes())
        for version in list_versions(kept):
            load_model(versions_folder(kept) / f"{version}.joblib")
    assert set(found) == {old, new}
    assert found == sorted(found, key=lambda data: data == new)
