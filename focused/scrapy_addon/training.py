"""A topic's model, trained: the samples' pages come from a recorded web when there is one;
otherwise a polite crawl of their own fetches them.
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
from focused.errors import TrainingError
from focused.frontier.store import StateStore
from focused.labels.label_file import labels_of
from focused.learning.model_making import make_model
from focused.learning.model_versions import alone_with, replace_model, versions_folder
from focused.learning.samples import FetchPage
from focused.recorded.kept_pages import kept_page_reader
from focused.recorded.pages import page_reader
from focused.recorded.store import RecordedWeb
from focused.scrapy_addon.topic_settings import samples_folder
from focused.topic import Topic
from focused.web.page import Page

Say = Callable[[str], None]


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
                labels=labels_of(topic.training),
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
    command = [
        sys.executable,
        "-m",
        "focused.scrapy_addon.spiders.samples",
        str(topic.path),
        str(folder),
    ]
    # A process of its own: Scrapy runs one reactor per process, and ours is still to come.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if _run([*command, replay or ""], environment):
        raise TrainingError(
            f"the directory's pages could not be fetched; see {folder / 'crawl.log'}"
        )
    store = StateStore.reopen(folder / "state")
    try:
        return harvested_pages(store.tables, folder)
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
