"""Where a crawl's judge and scorer come from: the topic's model, trained when it must be.

A model is made anew when it is missing or when directory or good categories
are no longer those it was trained on. The samples' pages come from a recorded
web when there is one; otherwise a polite crawl of their own fetches them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from focused.archive import harvested_pages
from focused.directory.samples import training_samples
from focused.errors import TrainingError
from focused.frontier.store import StateStore
from focused.labels.label import Label
from focused.labels.label_file import read_labels
from focused.labels.roles import teaching
from focused.learning.apprentice import Apprentice
from focused.learning.judge_in_office import JudgeInOffice
from focused.learning.link_prior import load_prior
from focused.learning.model_making import make_model, noted_urls
from focused.learning.model_staleness import model_is_stale
from focused.learning.model_versions import alone_with, replace_model, versions_folder
from focused.learning.samples import FetchPage
from focused.recorded.kept_pages import kept_page_reader
from focused.recorded.pages import page_reader
from focused.recorded.store import RecordedWeb
from focused.scrapy_addon.model_watch import ModelWatch, named_judge
from focused.scrapy_addon.session import Guide, samples_folder
from focused.topic import Topic
from focused.web.page import Page
from focused.web.url import normalise

Say = Callable[[str], None]


def guide_for(topic: Topic, *, web: str | None, replay: str | None, say: Say) -> Guide:
    """Load the topic's judge, after training it when it is missing or out of date."""
    prior = load_prior(topic.training.link_prior)  # a wrong one is told before a long training
    stale = model_is_stale(topic)
    if stale is not None:
        say(f"training {topic.training.model}: {stale}")
        train_for(topic, Path(web) if web else None, replay=replay, say=say)
    watch = ModelWatch(topic.training.model)
    found = named_judge(topic.training.model)
    office = JudgeInOffice(found.judge, found.name)
    return Guide(office, Apprentice(office, prior), training_urls(topic), watch)


def training_urls(topic: Topic) -> frozenset[str]:
    """The normalised URLs of all samples: their pages never count as harvest.

    A sample that redirects counts under both addresses: the listed one, and
    the one whose page was learned from, as the training noted it.
    """
    listed = (normalise(entry.url) for entry in training_samples(topic.training).entries)
    noted = noted_urls(topic.training.model)
    learned_from = noted.read_text(encoding="utf-8").splitlines() if noted.is_file() else []
    taught = (normalise(label.url) for label in teaching(labels_of(topic)))
    return frozenset(url for url in (*listed, *learned_from, *taught) if url)


def train_for(topic: Topic, web: Path | None, *, replay: str | None, say: Say) -> None:
    """Train the topic's model; write it, its card, and the URLs it learned from.

    What it replaces is kept as a version. Raises ModelError while another process trains it.
    """
    path = topic.training.model
    with alone_with(path):
        with sample_pages(topic, web, replay=replay, say=say) as fetch:
            made = make_model(
                topic,
                fetch,
                now=time.time(),
                labels=labels_of(topic),
                remark=lambda line: say(f"training.directory: {line}"),
            )
        number = replace_model(made, path)
    say(f"wrote {path} and its card beside it")
    if number is not None:
        say(
            f"the old model is version {number} in {versions_folder(path)} "
            f"(focused retrain {topic.path} --restore {number})"
        )
    for warning in made.model.report.warnings:
        say(f"warning: {warning}")


def labels_of(topic: Topic) -> tuple[Label, ...]:
    """What people said of pages for this topic, so far."""
    return () if topic.training.labels is None else read_labels(topic.training.labels)


@contextmanager
def sample_pages(
    topic: Topic, web: Path | None, *, replay: str | None, say: Say
) -> Iterator[FetchPage]:
    """Give the function that samples' pages are had by, first of all from beside the labels.

    Those of the directory come from a recorded web when there is one, else from a
    crawl of their own, which begins when the first is asked for.
    """
    path = topic.training.labels
    kept = kept_page_reader(path) if path else lambda url: None
    if web is not None:
        with RecordedWeb.open(web) as recorded:
            recorded_page = page_reader(recorded)
            yield lambda url: kept(url) or recorded_page(url)
    else:
        # Fetched when first asked for: what is wrong with the directory is told before.
        pages = cache(lambda: _fetch_samples(topic, replay, say))
        yield lambda url: kept(url) or pages().get(url)


def _fetch_samples(topic: Topic, replay: str | None, say: Say) -> dict[str, Page]:
    folder = samples_folder(topic)
    say(f"fetching the directory's pages into {folder} (it goes on where it was if stopped)")
    command = [sys.executable, "-m", "spiders.samples", str(topic.path), str(folder)]
    # A process of its own: Scrapy runs one reactor per process, and ours is still to come.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if _run([*command, replay or ""], environment):
        raise TrainingError(
            f"the directory's pages could not be fetched; see {folder / 'crawl.log'}"
        )
    store = StateStore.reopen(folder / "state")
    try:
        return harvested_pages(store, folder)
    finally:
        store.close()


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run a child to its end; Ctrl-C is handed on once, and the child stops in order."""
    with subprocess.Popen(command, env=environment, process_group=0) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
