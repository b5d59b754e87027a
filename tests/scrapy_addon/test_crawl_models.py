"""The URLs of a model's samples are known to a crawl, whose harvest they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from focused.classifier.classifier_file import training_urls_path
from focused.classifier.model_versions import install_model, train_model
from focused.scrapy_addon.crawl_models import training_urls
from focused.topic import Topic
from tests.support.made_up_topic import topic, web


@pytest.fixture
def trained(tmp_path: Path) -> Topic:
    pages = web()
    made = topic(tmp_path, pages)
    install_model(train_model(made, pages.get, now=1.0), made.training.model)
    return made


def test_a_crawl_reads_no_directory_whose_urls_are_listed(
    trained: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("focused.directory.directory_reader.load_training_samples")
    assert training_urls(trained) == set(web())


def test_the_directory_is_read_if_it_has_changed(trained: Topic) -> None:
    with trained.training.directory[0].open("a") as file:
        file.write("Top/Cheese\thttp://new.example/\tNew\tNew\n")
    assert training_urls(trained) == {*web(), "http://new.example/"}


def test_the_directory_is_read_for_a_list_of_an_earlier_version(trained: Topic) -> None:
    training_urls_path(trained.training.model).write_text("http://final.example/\n")
    assert training_urls(trained) == {*web(), "http://final.example/"}
