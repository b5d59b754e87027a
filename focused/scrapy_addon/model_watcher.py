"""A retrained model that replaces the topic's, noticed while the crawl runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from focused.classifier.model_file import load_named_model
from focused.classifier.topic_classifier import TopicClassifier
from focused.errors import ModelError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedClassifier:
    """A classifier, and its file's name for it: see :func:`focused.classifier.model_file.model_name`."""

    classifier: TopicClassifier
    name: str


def load_named_classifier(path: Path) -> NamedClassifier:
    """Load a model file. Raises ModelError."""
    model, name = load_named_model(path)
    return NamedClassifier(model.classifier, name)


class ModelWatcher:
    """Watches one model file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _file_stamp(path)

    def replaced(self) -> NamedClassifier | None:
        """The classifier in the file if that was replaced since the last look.

        A file that cannot be loaded is told in the log, and changes nothing.
        """
        stamp = _file_stamp(self._path)
        if stamp == self._seen or stamp is None:
            return None
        self._seen = stamp
        try:
            return load_named_classifier(self._path)
        except (ModelError, OSError) as error:
            logger.warning("the model was replaced, and the crawl goes on without it: %s", error)
            return None


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
