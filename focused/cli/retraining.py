"""``focused retrain``: a new model from directory and labels, and whether it takes over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from focused.cli.output import echo
from focused.errors import LabelError, ModelError, visible
from focused.labels.label import Label
from focused.labels.label_file import labels_of
from focused.labels.roles import judging, teaching
from focused.learning.model_making import Made, install, make_model
from focused.learning.model_staleness import keep_in_office
from focused.learning.model_store import load_model
from focused.learning.model_versions import (
    alone_with,
    note_changes,
    replace_model,
    restore_version,
    versions_folder,
)
from focused.learning.report import TrainedModel
from focused.learning.samples import FetchPage
from focused.learning.succession import (
    FEW_PAGES,
    Finding,
    HeldOut,
    Succession,
    WordChanges,
    compare_judges,
    says_the_same,
    word_changes,
)
from focused.learning.succession_text import render_succession
from focused.scrapy_addon.guide import training_urls
from focused.scrapy_addon.training import sample_pages
from focused.topic import Topic
from focused.topic_file import load_topic
from focused.web.page import Page
from focused.web.url import normalise

STAYS = 1
"""Exit status when the old model stays."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A new model, and how it did against the one in office; None where none is."""

    made: Made
    old: TrainedModel | None
    succession: Succession | None


def retrain(topic_file: Path, web: Path | None, *, replace: bool) -> int:
    """Train anew, compare, and replace the model unless the old one is better; the exit status."""
    topic = load_topic(topic_file)
    labels = labels_of(topic.training)
    if not teaching(labels) and not judging(labels):
        raise LabelError(
            f"{topic.training.labels}: there are no labels yet; "
            f"give some: focused label {topic.output.folder}"
        )
    with sample_pages(topic, web, replay=None, say=echo) as fetch:
        return retrain_from(topic, labels, fetch, replace=replace)


def retrain_from(
    topic: Topic, labels: tuple[Label, ...], fetch: FetchPage, *, replace: bool
) -> int:
    """:func:`retrain` with the samples' pages from ``fetch``."""
    with alone_with(topic.training.model):
        candidate = _candidate(topic, labels, fetch)
        return _decide(topic, candidate, replace=replace)


def restore(topic_file: Path, number: int) -> int:
    """Put an earlier version back in office."""
    topic = load_topic(topic_file)
    model = topic.training.model
    with alone_with(model):
        kept = restore_version(model, number)
        keep_in_office(topic)
    echo(f"{model}: version {number} is in office again; what it replaced is version {kept}")
    return 0


def _candidate(topic: Topic, labels: tuple[Label, ...], fetch: FetchPage) -> _Candidate:
    old = _in_office(topic.training.model)
    made = make_model(topic, fetch, now=time.time(), labels=labels)
    samples = made.model.report.samples
    echo(
        f"trained on {samples.good} good and {samples.other} other samples, "
        f"{len(teaching(labels))} of them labelled by people"
    )
    for warning in made.model.report.warnings:
        echo(f"warning: {warning}")
    held_out = _held_out(topic, labels, fetch, made)
    if old is None or not held_out.pages:
        return _Candidate(made, old, None)
    rng = np.random.default_rng(made.model.report.seed)
    found = compare_judges(old.classifier, made.model.classifier, held_out, rng)
    return _Candidate(made, old, found)


def _in_office(path: Path) -> TrainedModel | None:
    """The model that is there; None without one, and where it cannot be loaded, which is told."""
    try:
        return load_model(path) if path.exists() else None
    except ModelError as error:
        echo(f"warning: {error}; there is nothing to compare the new model with")
        return None


def _held_out(topic: Topic, labels: tuple[Label, ...], fetch: FetchPage, made: Made) -> HeldOut:
    """The judge's labels with their pages; what either model learned from is left out."""
    taught = training_urls(topic) | made.learned_from
    pages: list[Page] = []
    truth: list[bool] = []
    known = 0
    for label in judging(labels):
        page = fetch(label.url)
        if page is None:
            continue
        if normalise(label.url) in taught or page.url in taught or made.knows(page):
            known += 1
            continue
        pages.append(page)
        truth.append(label.verdict == "yes")
    if known:
        echo(
            f"{known} of the judge's {len(pages) + known} labelled pages are left out: "
            "the directory lists them, or a sample has the same text"
        )
    return HeldOut(tuple(pages), tuple(truth))


def _decide(topic: Topic, candidate: _Candidate, *, replace: bool) -> int:
    path, old, made = topic.training.model, candidate.old, candidate.made
    if old is None:
        install(made, path)
        echo(f"wrote {path} and its card beside it")
        return 0
    if says_the_same(old, made.model):
        keep_in_office(topic)
        echo(f"{path} stays: nothing that teaches has changed since it was made")
        return 0
    words = word_changes(old, made.model)
    why = _why_the_old_stays(candidate)
    if why and not replace:
        keep_in_office(topic)
        echo(_told("The new model", made, candidate.succession, words))
        echo(f"\n{path} stays: {why}; --replace puts the new one in its place all the same")
        return STAYS
    number = replace_model(made, path)
    assert number is not None, "the old model was loaded"
    text = _told(f"Version {number + 1}", made, candidate.succession, words)
    changes = note_changes(path, text)
    echo(text)
    found = candidate.succession
    if not replace and (found is None or found.finding is Finding.TOO_FEW):
        held = 0 if found is None else found.pages
        echo(
            f"\n{held} pages are held out, too few to tell which model is better ({FEW_PAGES} are "
            "needed). The new one takes over because more labels taught it; label more pages, "
            "and the next retraining compares."
        )
    echo(
        f"\nwrote {path}, its card, and {changes.name}; the old model is version {number} in "
        f"{versions_folder(path)} (focused retrain {topic.path} --restore {number})"
    )
    return 0


def _why_the_old_stays(candidate: _Candidate) -> str:
    """Empty where the new model takes over.

    Where too few pages are held out to compare, the model that more labels taught takes over,
    unless even these few speak clearly against it.
    """
    found = candidate.succession
    if found is not None and found.finding is not Finding.TOO_FEW:
        return "the old model is better" if found.finding is Finding.WORSE else ""
    if found is not None and found.gain < 0.0 and found.is_sure:
        return f"the old model is better on the {found.pages} held-out pages"
    assert candidate.old is not None, "without an old model nothing is compared"
    if _labels_taught(candidate.made.model) > _labels_taught(candidate.old):
        return ""
    if found is None:
        return "no page was held out that could tell which model is better"
    return f"{found.pages} held-out pages are too few, {FEW_PAGES} are needed"


def _labels_taught(model: TrainedModel) -> int:
    counts = model.report.samples
    return counts.labelled_yes + counts.labelled_no


def _told(title: str, made: Made, found: Succession | None, words: WordChanges) -> str:
    text = render_succession(title, made.model.report.trained_at, found, words)
    # Words and categories of a model may be somebody else's.
    return visible(text)
