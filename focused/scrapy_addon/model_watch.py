"""A retrained model that replaces the topic's, noticed while the crawl runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from focused.errors import ModelError
from focused.learning.model_store import load_named_model
from focused.learning.protocols import TopicJudge

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge, and its file's name for it: see :func:`focused.learning.model_store.model_name`."""

    judge: TopicJudge
    name: str


def named_judge(path: Path) -> NamedJudge:
    """Load a model file. Raises ModelError."""
    model, name = load_named_model(path)
    return NamedJudge(model.classifier, name)


class ModelWatch:
    """Watches one model file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _stamp(path)

    def replaced(self) -> NamedJudge | None:
        """The judge in the file if that was replaced since the last look.

        A file that cannot be loaded is told in the log, and changes nothing.
        """
        stamp = _stamp(self._path)
        if stamp == self._seen or stamp is None:
            return None
        self._seen = stamp
        try:
            return named_judge(self._path)
        except (ModelError, OSError) as error:
            logger.warning("the model was replaced, and the crawl goes on without it: %s", error)
            return None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
