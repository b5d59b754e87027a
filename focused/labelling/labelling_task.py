"""What to label: a topic, its crawl, its model, and the file for the labels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from focused.classifier.model_file import load_model, model_name
from focused.classifier.topic_classifier import TopicClassifier
from focused.directory.directory_reader import load_directory
from focused.directory.sample_set import is_in_category
from focused.errors import ConfigurationError, FocusedError, ModelError
from focused.topic import Topic
from focused.topic.topic_file import load_topic

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
    classifier, digest = _load_classifier(topic)
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
        settings = json.loads((where / "settings.json").read_text(encoding="utf-8"))
        path = Path(settings["topic"]["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return where, None
    return where, load_topic(path) if path.is_file() else None


def _load_classifier(topic: Topic | None) -> tuple[TopicClassifier | None, str]:
    if topic is None:
        return None, ""
    path = topic.training.model
    try:
        return load_model(path).classifier, model_name(path)
    except (ModelError, OSError):
        return None, ""


def _largest_categories(topic: Topic | None) -> tuple[tuple[TopicCategory, ...], int]:
    """The directory's largest categories, good ones first, and its number of good samples."""
    if topic is None:
        return (), 0
    counts: Counter[str] = Counter()
    try:
        for entry in load_directory(topic.training.directory):
            counts[entry.category] += 1
    except FocusedError:
        return (), 0
    good: list[TopicCategory] = []
    other: list[TopicCategory] = []
    for name, _ in counts.most_common():
        is_good = any(is_in_category(name, prefix) for prefix in topic.training.good)
        (good if is_good else other).append(TopicCategory(name, is_good))
    good_samples = 0 if topic.training.keywords else sum(counts[one.name] for one in good)
    good = good[:_MAX_GOOD]
    return (*good, *other[: MAX_CATEGORIES - len(good)]), good_samples
