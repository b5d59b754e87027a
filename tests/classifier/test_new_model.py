"""A new model records the pages it was trained on."""

from dataclasses import replace

import pytest

from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from tests.support.made_up_topic import page, topic, web


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> TrainedModel:
    pages = web()
    return train_topic(topic(tmp_path_factory.mktemp("made"), pages), pages.get, now=1.0)


def test_it_knows_a_page_that_it_learned_from(made):
    assert made.was_trained_on(page("cheese", 3))


@pytest.mark.parametrize(
    "url", ["http://cheese3.example/cheese/3", "https://www.cheese3.example/cheese/3?utm=1"]
)
def test_it_knows_the_page_at_any_other_address(made, url):
    assert made.was_trained_on(replace(page("cheese", 3), url=url))


def test_it_was_not_trained_on_a_page_with_another_text(made):
    assert not made.was_trained_on(page("cheese", 3_000))
