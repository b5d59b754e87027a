"""What to label: a topic, its crawl's pages, its model, and the file for the labels.

The crawl may be running or finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from focused.archive.archive import PageRow, decode_page_row
from focused.archive.crawl_tables import open_tables, read_page_rows, read_settings
from focused.archive.warc_files import WARC_FILE, warc_files, warc_path
from focused.classifier.classifier_file import load_classifier
from focused.classifier.topic_classifier import TopicClassifier
from focused.directory import is_in_category
from focused.directory.directory_reader import load_directory
from focused.errors import ConfigurationError, FocusedError, ModelError, StateError
from focused.storage.state_store import StateStore
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Fetched
from focused.web.warc_reader import read_response

MAX_CATEGORIES = 9
"""As many as there are digit keys."""

_MAX_GOOD = 5


@dataclass(frozen=True, slots=True)
class TopicCategory:
    """A category of the directory; ``good`` ones are the topic."""

    name: str
    good: bool


@dataclass(frozen=True, slots=True)
class LabellingTask:
    """The subject of a labelling session.

    ``model`` is the start of the model file's digest, empty without a ``classifier``.
    ``good_samples`` counts the directory's good samples; 0 where keywords proposed them, because
    many of these are wrong.
    """

    name: str
    description: str
    folder: Path
    labels: Path
    classifier: TopicClassifier | None
    model: str
    categories: tuple[TopicCategory, ...]
    good_samples: int


def find_labelling_task(where: Path, labels: Path | None = None) -> LabellingTask:
    """Find what to label at ``where``: a crawl's folder, or a topic file.

    ``labels`` overrides the topic's label file. An unreadable model or directory is ignored: the
    crawl has its own classifications. Raises :class:`ConfigurationError` when the topic cannot be
    found.
    """
    folder, topic = _folder_and_topic(where)
    if topic is None and labels is None:
        raise ConfigurationError(
            f"{folder}: the topic file of this crawl was moved or deleted; "
            "pass the label file with --labels"
        )
    path = labels or (topic.training.labels if topic else None)
    assert path is not None, "a topic that was read has a file of labels"
    classifier, digest = None, ""
    if topic is not None:
        with suppress(ModelError, OSError):
            classifier, digest = load_classifier(topic.training.model)
    categories, good_samples = _largest_categories(topic)
    return LabellingTask(
        name=topic.name if topic else folder.name,
        description=topic.description if topic else "",
        folder=folder,
        labels=path,
        classifier=classifier,
        model=digest,
        categories=categories,
        good_samples=good_samples,
    )


def _folder_and_topic(where: Path) -> tuple[Path, Topic | None]:
    if where.is_file():
        topic = load_topic(where)
        return topic.output.folder, topic
    try:
        path = Path(read_settings(where)["topic"]["path"])
    except (StateError, KeyError):
        return where, None
    return where, load_topic(path) if path.is_file() else None


def _largest_categories(topic: Topic | None) -> tuple[tuple[TopicCategory, ...], int]:
    """The directory's largest categories, good ones first, and its number of good samples."""
    if topic is None:
        return (), 0
    try:
        counts = Counter(entry.category for entry in load_directory(topic.training.directory))
    except FocusedError:
        return (), 0
    categories = [
        TopicCategory(name, any(is_in_category(name, each) for each in topic.training.good))
        for name, _ in counts.most_common()
    ]
    good = [one for one in categories if one.good]
    good_samples = 0 if topic.training.keywords else sum(counts[one.name] for one in good)
    good = good[:_MAX_GOOD]
    other = [one for one in categories if not one.good]
    return (*good, *other[: MAX_CATEGORIES - len(good)]), good_samples


@dataclass(frozen=True, slots=True)
class FetchedPages:
    """The pages that a crawl has fetched and classified so far, by URL; none is a duplicate.

    ``duplicates`` counts these.
    """

    folder: Path
    pages: Mapping[str, PageRow]
    duplicates: int

    def response(self, page: PageRow) -> Fetched | None:
        """The server's response; None when the record cannot be read."""
        assert page.warc_file is not None and page.warc_offset is not None
        stored = read_response(warc_path(self.folder, page.warc_file), page.warc_offset)
        if stored is None or stored.url != page.url:
            return None
        return Fetched(stored.url, stored.status, stored.headers, stored.body)


def relevance_of(page: PageRow) -> float:
    """Return the classifier's relevance, which each of :class:`FetchedPages` has."""
    assert page.relevance is not None
    return page.relevance


def read_fetched_pages(folder: Path) -> FetchedPages:
    """Read the pages of the crawl in ``folder``, which may be running.

    Training samples are left out. Raises :class:`StateError` when the folder is no crawl's, or its
    topic keeps no WARC.
    """
    if not folder.is_dir():
        raise StateError(f"{folder}: no such folder; pass a crawl's [output] folder")
    if not warc_files(folder):
        raise StateError(
            f"{folder}: has no {WARC_FILE}; it is no crawl's folder, or its topic sets "
            'warc = "off": there is nothing to show'
        )
    pages, duplicates = {}, 0
    for row in _read_rows(folder):
        if row.outcome != "fetched" or row.training or row.warc_offset is None:
            continue
        if row.duplicate_of is not None:
            duplicates += 1
        elif row.relevance is not None:
            pages[row.url] = msgspec.structs.replace(row, features={})  # they are large
    return FetchedPages(folder, pages, duplicates)


def _read_rows(folder: Path) -> Iterator[PageRow]:
    state = folder / "state"
    if not state.is_dir():
        with open_tables(folder) as tables:
            yield from read_page_rows(tables)
        return
    with StateStore.open_for_reading(state) as (store, _):
        for _, raw in store.tables.scan("pages"):
            yield decode_page_row(raw)
