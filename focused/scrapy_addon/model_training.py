"""Train a topic's model on samples from a recorded web, or fetched by a polite crawl."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from focused.archive.crawled_pages import load_crawled_pages
from focused.child_processes import (
    end_with_parent,
    python_command,
    python_environment,
    run_child,
)
from focused.classifier.model_file import (
    lock_model,
    replace_model,
    versions_folder,
)
from focused.classifier.sample_texts import FetchPage
from focused.classifier.topic_training import train_topic
from focused.errors import FocusedError, TrainingError, print_notice
from focused.labels.label_file import labelled_page_reader, load_topic_labels
from focused.recorded_web import find_recorded_webs
from focused.scrapy_addon.addon_settings import samples_folder
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Page

PrintLine = Callable[[str], None]


def train_topic_model(
    topic: Topic, web: Path | None, *, replay: str | None, say: PrintLine
) -> None:
    """Train the topic's model; write it, its card, and the URLs of its samples.

    The previous model is kept as a version. Raises ModelError while another process trains it.
    """
    path = topic.training.model
    with lock_model(path):
        with open_sample_pages(topic, web, replay=replay, say=say) as fetch:
            made = train_topic(
                topic,
                fetch,
                now=time.time(),
                labels=load_topic_labels(topic.training),
                on_message=lambda line: say(f"training.directory: {line}"),
            )
        number = replace_model(made, path)
    say(f"wrote {path} and its card beside it")
    if number is not None:
        say(
            f"the old model is version {number} in {versions_folder(path)} "
            f"(focused retrain {topic.path} --restore {number})"
        )
    for warning in made.report.warnings:
        say(f"warning: {warning}")


@contextmanager
def open_sample_pages(
    topic: Topic, web: Path | None, *, replay: str | None, say: PrintLine
) -> Iterator[FetchPage]:
    """Return a function that gives a sample's page: from the labels' WARC file, or fetched.

    Samples of the directory come from a recorded web, else from a crawl that starts with the first
    of them.
    """
    path = topic.training.labels
    kept = labelled_page_reader(path) if path else lambda url: None
    if web is not None:
        with find_recorded_webs().open_pages(web) as recorded:
            yield lambda url: kept(url) or recorded(url)
    else:
        # Fetched lazily: errors of the directory are reported first.
        pages = cache(lambda: _fetch_samples(topic, replay, say))
        yield lambda url: kept(url) or pages().get(url)


def _fetch_samples(topic: Topic, replay: str | None, say: PrintLine) -> dict[str, Page]:
    folder = samples_folder(topic)
    say(f"fetching the directory's pages into {folder} (an interrupted download is resumed)")
    # A child process: Scrapy runs one reactor per process.
    command = python_command(
        "focused.scrapy_addon.spiders.samples_spider", str(topic.path), str(folder), replay or ""
    )
    if run_child(command, python_environment(has_secrets=True))[0]:
        raise TrainingError(
            f"the directory's pages could not be fetched; see {folder / 'crawl.log'}"
        )
    store = StateStore.reopen(folder / "state")
    try:
        return load_crawled_pages(store.tables, folder)
    finally:
        store.close()


def main(arguments: list[str]) -> int:
    """Train the model of a topic file; return the exit status, and write an error as JSON.

    Ends when the crawl dies, which could not be started again as long as the model is locked, and
    first ends the crawl that fetches the samples.
    """
    end_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    path, web, replay = arguments
    try:
        train_topic_model(
            load_topic(Path(path)),
            Path(web) if web else None,
            replay=replay or None,
            say=print_notice,
        )
    except FocusedError as error:
        print(json.dumps(str(error)))
        return 1
    except KeyboardInterrupt:  # passed on by the crawl, which tells of it
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
