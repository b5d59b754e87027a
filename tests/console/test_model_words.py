"""The models of a crawl, with the words that they gained and lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from focused.archive.archive import PageRow
from focused.classifier.classifier_file import model_name
from focused.classifier.model_file import save_model
from focused.classifier.model_versions import keep_version
from focused.classifier.training_report import TrainedModel
from focused.console.model_words import ModelWords
from focused.console.server import interface_mbit
from tests.support.made_up_topic import trained


def row(seq: int, model: str, outcome: str = "fetched") -> PageRow:
    url = f"http://a.test/{seq}"
    return PageRow(
        seq, url, "a.test", outcome, 0.0, {}, 0, None, "", 0.0, float(seq), "focused", model=model
    )


def with_words(model: TrainedModel, *words: str) -> TrainedModel:
    top = tuple((word, 1.0) for word in words)
    return replace(model, report=replace(model.report, top_words=top))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    return trained(tmp_path_factory.mktemp("model"))


def test_a_retrained_model_shows_the_words_that_it_gained_and_lost(
    model: TrainedModel, tmp_path: Path
) -> None:
    file = tmp_path / "cheese.joblib"
    save_model(with_words(model, "rind", "milk"), file)
    first = model_name(file)
    keep_version(file)
    save_model(with_words(model, "milk", "curd"), file)
    rows = [row(0, first), row(1, "", "failed"), row(2, first), row(3, model_name(file))]
    old, new = ModelWords().used_models(rows, file)
    assert (old.name, old.page, old.words) == (first, 1, ("rind", "milk"))
    assert (old.gained, old.lost) == ((), ())
    assert (new.page, new.since) == (4, 3.0)
    assert (new.gained, new.lost) == (("curd",), ("rind",))


def test_a_model_whose_file_is_gone_is_listed_without_words(tmp_path: Path) -> None:
    (found,) = ModelWords().used_models([row(0, "abc")], tmp_path / "cheese.joblib")
    assert (found.name, found.is_kept, found.words) == ("abc", False, ())
    assert ModelWords().used_models([], None) == []


def test_the_speed_is_that_of_the_interface_with_the_default_route(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    routes = "Iface\tDestination\neth1\t0000FEA9\neth0\t00000000\n"
    (tmp_path / "proc/net/route").write_text(routes)
    assert interface_mbit(tmp_path) is None
    for name, speed in (("eth0", "1000\n"), ("eth1", "10\n")):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
        (tmp_path / "sys/class/net" / name / "speed").write_text(speed)
    assert interface_mbit(tmp_path) == 1000.0
    (tmp_path / "sys/class/net/eth0/speed").write_text("-1\n")
    assert interface_mbit(tmp_path) is None
