"""``focused train`` and ``retrain``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import numpy as np

from focused.classifier.model_comparison import (
    MIN_COMPARED_PAGES,
    ComparisonVerdict,
    HeldOutPages,
    ModelComparison,
    WordChanges,
    are_equivalent,
    compare_classifiers,
    render_comparison,
    word_changes,
)
from focused.classifier.model_file import (
    install_model,
    keep_current_model,
    load_model,
    lock_model,
    prepend_changelog,
    replace_model,
    restore_version,
    versions_folder,
)
from focused.classifier.sample_texts import FetchPage
from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.cli.common import FILE, FOLDER, echo
from focused.errors import LabelError, ModelError, escape_control_characters
from focused.labels.label_file import (
    Label,
    evaluation_labels,
    load_topic_labels,
    spam_labels,
    training_labels,
)
from focused.scrapy_addon.crawl_models import training_urls
from focused.scrapy_addon.model_training import open_sample_pages, train_topic_model
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Page
from focused.web.urls import normalize_url

_web_option = click.option(
    "--web",
    type=FOLDER,
    help="Read the samples from this recorded web. Default: fetch them, politely.",
)


@click.command()
@click.argument("topic", type=FILE)
@_web_option
def train(topic: Path, web: Path | None) -> None:
    """Train the topic classifier from the topic's directory.

    Writes the model (training.model) and its card (.md), and keeps fetched samples in NAME.samples/
    beside it. The same command resumes a stopped download.
    """
    train_topic_model(load_topic(topic), web, replay=None, say=echo)


@click.command()
@click.argument("topic", type=FILE)
@_web_option
@click.option("--replace", is_flag=True, help="Replace the old model whatever the comparison says.")
@click.option("--restore", type=click.IntRange(min=1), help="Restore this version of the model.")
def retrain(topic: Path, web: Path | None, replace: bool, restore: int | None) -> None:
    """Retrain with the labels of focused label; replace the model unless the old one is better.

    Exit status 1: the old model stays. See docs/how-to/teaching.md#focused-retrain.
    """
    described = load_topic(topic)
    sys.exit(
        _retrain(described, web, replace=replace)
        if restore is None
        else _restore(described, restore)
    )


OLD_MODEL_KEPT = 1
"""Exit status if the old model is kept."""


def _retrain(topic: Topic, web: Path | None, *, replace: bool) -> int:
    """Train a model, which replaces the old one unless that is better; return the exit status."""
    labels = load_topic_labels(topic.training)
    if not any(kind(labels) for kind in (training_labels, spam_labels, evaluation_labels)):
        raise LabelError(
            f"{topic.training.labels}: there are no labels yet; "
            f"give some: focused label {topic.output.folder}"
        )
    with open_sample_pages(topic, web, replay=None, say=echo) as fetch:
        return retrain_from(topic, labels, fetch, replace=replace)


def retrain_from(
    topic: Topic, labels: tuple[Label, ...], fetch: FetchPage, *, replace: bool
) -> int:
    """:func:`_retrain` with the samples' pages from ``fetch``."""
    with lock_model(topic.training.model):
        old = _current_model(topic.training.model)
        trained = train_topic(topic, fetch, now=time.time(), labels=labels)
        samples = trained.report.samples
        echo(
            f"trained on {samples.good} good and {samples.other} other samples, "
            f"{len(training_labels(labels))} of them labelled by people"
        )
        for warning in trained.report.warnings:
            echo(f"warning: {warning}")
        held_out = _held_out(topic, labels, fetch, trained)
        if old is None:
            install_model(trained, topic.training.model)
            echo(f"wrote {topic.training.model} and its card beside it")
            return 0
        comparison = None
        if held_out.pages:
            rng = np.random.default_rng(trained.report.seed)
            models = old.classifier, trained.classifier
            comparison = compare_classifiers(*models, held_out, rng)
        return _decide(topic, old, trained, comparison, replace=replace)


def _restore(topic: Topic, number: int) -> int:
    """Restore an earlier version of the model."""
    model = topic.training.model
    with lock_model(model):
        kept = restore_version(model, number)
        keep_current_model(topic)
    echo(
        f"{model}: version {number} is the current model again; "
        f"the model it replaced is version {kept}"
    )
    return 0


def _current_model(path: Path) -> TrainedModel | None:
    """Return the current model; None if there is none or it cannot be loaded."""
    try:
        return load_model(path) if path.exists() else None
    except ModelError as error:
        echo(f"warning: {error}; there is nothing to compare the new model with")
        return None


def _held_out(
    topic: Topic, labels: tuple[Label, ...], fetch: FetchPage, trained: TrainedModel
) -> HeldOutPages:
    """Return the evaluation labels with their pages, except samples of either model."""
    trained_on = training_urls(topic) | trained.training_urls
    pages: list[Page] = []
    truth: list[bool] = []
    known_count = 0
    for label in evaluation_labels(labels):
        if label.verdict == "spam":
            continue  # the topic classifier alone need not recognise it
        page = fetch(label.url)
        if page is None:
            continue
        if (
            normalize_url(label.url) in trained_on
            or page.url in trained_on
            or trained.was_trained_on(page)
        ):
            known_count += 1
            continue
        pages.append(page)
        truth.append(label.verdict == "yes")
    if known_count:
        echo(
            f"{known_count} of the evaluation set's {len(pages) + known_count} labelled "
            "pages are left out: the directory lists them, or a sample has the same text"
        )
    return HeldOutPages(tuple(pages), tuple(truth))


def _decide(
    topic: Topic,
    old: TrainedModel,
    trained: TrainedModel,
    comparison: ModelComparison | None,
    *,
    replace: bool,
) -> int:
    path = topic.training.model
    if are_equivalent(old, trained):
        keep_current_model(topic)
        echo(f"{path} stays: nothing that the model is trained on has changed since it was trained")
        return 0
    words = word_changes(old, trained)
    why = _reason_to_keep(old, trained, comparison)
    if why and not replace:
        keep_current_model(topic)
        echo(_format_changes("The new model", trained, comparison, words))
        echo(f"\n{path} stays: {why}; --replace puts the new one in its place all the same")
        return OLD_MODEL_KEPT
    number = replace_model(trained, path)
    assert number is not None, "the old model was loaded"
    text = _format_changes(f"Version {number + 1}", trained, comparison, words)
    changes = prepend_changelog(path, text)
    echo(text)
    if not replace and (comparison is None or comparison.verdict is ComparisonVerdict.TOO_FEW):
        held_out_count = 0 if comparison is None else comparison.pages
        echo(
            f"\n{held_out_count} pages are held out, too few to compare the models "
            f"({MIN_COMPARED_PAGES} are needed). The new one replaces the old one, because it was "
            "trained on more labels; label more pages, and the next retraining compares them."
        )
    echo(
        f"\nwrote {path}, its card, and {changes.name}; the old model is version {number} in "
        f"{versions_folder(path)} (focused retrain {topic.path} --restore {number})"
    )
    return 0


def _reason_to_keep(
    old: TrainedModel, new: TrainedModel, comparison: ModelComparison | None
) -> str:
    """Return why the old model is kept; empty if the new one replaces it.

    With too few held-out pages, the model trained on more labels wins, unless these pages clearly
    contradict.
    """
    if comparison is not None and comparison.verdict is not ComparisonVerdict.TOO_FEW:
        return "the old model is better" if comparison.verdict is ComparisonVerdict.WORSE else ""
    if comparison is not None and comparison.gain < 0.0 and comparison.is_significant:
        return f"the old model is better on the {comparison.pages} held-out pages"
    if _training_label_count(new) > _training_label_count(old):
        return ""
    if comparison is None:
        return "no page was held out that could tell which model is better"
    return f"{comparison.pages} held-out pages are too few, {MIN_COMPARED_PAGES} are needed"


def _training_label_count(model: TrainedModel) -> int:
    counts = model.report.samples
    return counts.labelled_yes + counts.labelled_no


def _format_changes(
    title: str, trained: TrainedModel, comparison: ModelComparison | None, words: WordChanges
) -> str:
    text = render_comparison(title, trained.report.trained_at, comparison, words)
    # Words and categories of a model are foreign text.
    return escape_control_characters(text)
