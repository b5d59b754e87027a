"""Retraining with few samples, few labels, few held-out pages."""

from dataclasses import replace
from pathlib import Path

import pytest

from focused.classifier.model_file import install_model
from focused.classifier.topic_training import train_topic
from focused.cli.training import OLD_MODEL_KEPT, retrain_from
from focused.labels.label_file import Label, Role
from focused.topic import Topic
from focused.web.page import Page
from tests.support.made_up_topic import page, topic, web

PAGES = {**web(cheese=60, garden=60)}


def label(kind: str, number: int, verdict: str, role: Role = "training") -> Label:
    url = page(kind, number).url
    return Label(url=url, verdict=verdict, role=role, at=1.0)  # type: ignore[arg-type]  # a test's text


@pytest.fixture
def begun(tmp_path: Path) -> Topic:
    """A topic of keywords with one listed page on topic, and its first model."""
    made = topic(tmp_path, web(cheese=1, garden=10), keywords=("gouda", "rennet"), background=True)
    named = replace(made, training=replace(made.training, labels=tmp_path / "c.labels.jsonl"))
    install_model(train_topic(named, PAGES.get, now=0.0), named.training.model)
    return named


def fetch(url: str) -> Page | None:
    return PAGES.get(url)


def test_three_good_samples_are_enough_and_the_better_taught_model_takes_over(begun, capsys):
    before = begun.training.model.read_bytes()
    labels = (label("cheese", 20, "yes"), label("cheese", 21, "yes"), label("garden", 30, "no"))
    assert retrain_from(begun, labels, fetch, replace=False) == 0
    output = capsys.readouterr().out
    assert begun.training.model.read_bytes() != before
    assert "trained on 3 good" in output
    assert "warning: 3 labelled pages (2 on topic): the keywords dominate" in output
    assert "0 pages are held out, too few to compare the models" in output


def test_labels_that_say_no_to_every_listed_page_are_no_dead_end(begun):
    labels = (label("cheese", 0, "no"), *(label("garden", n, "no") for n in range(20, 30)))
    assert retrain_from(begun, labels, fetch, replace=False) == 0


def test_a_few_held_out_pages_that_clearly_speak_against_the_new_model_keep_the_old(begun, capsys):
    """What teaches is labelled wrongly, what is held out rightly."""
    wrong = [label("cheese", n, "no") for n in range(20, 35)]
    wrong += [label("garden", n, "yes") for n in range(20, 35)]
    right = [label("garden", n, "no", "evaluation") for n in range(40, 48)]
    assert retrain_from(begun, (*wrong, *right), fetch, replace=False) == OLD_MODEL_KEPT
    assert "the old model is better on the 8 held-out pages" in capsys.readouterr().out


def test_without_a_new_label_a_comparison_of_too_few_pages_keeps_the_old(begun):
    labels = (label("cheese", 20, "yes"),)
    assert retrain_from(begun, labels, fetch, replace=False) == 0
    directory = begun.training.directory[0]
    directory.write_text(
        directory.read_text(encoding="utf-8") + f"Top/Home\t{page('garden', 31).url}\tx\n",
        encoding="utf-8",
    )
    assert retrain_from(begun, labels, fetch, replace=False) == OLD_MODEL_KEPT
