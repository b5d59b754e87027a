"""A retrained classifier reaches all workers through the shared storage.

One worker publishes its model file and announces it by its SHA-256; every worker, that one
included, polls the announcement. A file is loaded only if it has the announced hash, and by the
loader that executes no code (:mod:`focused.classifier.model_file`). A model that is refused is
logged, and the crawl goes on with the one it has.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from focused.classifier.model_file import MAX_MODEL_BYTES, load_named_model
from focused.classifier.topic_classifier import TopicClassifier
from focused.cluster.learning import ObjectStore
from focused.errors import ModelError, StorageError
from focused.files import write_atomically

logger = logging.getLogger(__name__)

_ANNOUNCEMENT_NAME = "models/current.json"


class ModelAnnouncement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model file that all workers are to use."""

    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_MODEL_BYTES)]
    trained_at: Annotated[float, msgspec.Meta(ge=0.0)]
    """In seconds since the epoch."""

    @property
    def object_name(self) -> str:
        """The name of the file in the shared storage."""
        return f"models/{self.sha256}.joblib"


@dataclass(frozen=True, slots=True)
class DistributedModel:
    """A classifier and its model file's name."""

    classifier: TopicClassifier
    name: str


class ModelDistribution:
    """Publishes model files and loads those that were announced."""

    def __init__(self, storage: ObjectStore, folder: Path) -> None:
        """``folder`` is this worker's, for the file that was loaded last."""
        self._storage = storage
        self._path = folder / "model.joblib"
        self._seen: bytes | None = None

    def publish(self, path: Path, *, only_newer: bool = False) -> bool:
        """Store a model file and announce it. Raises ModelError and StorageError.

        With ``only_newer`` do so, and return True, if it was trained after the announced one.
        """
        model, _ = load_named_model(path)  # a file that cannot be loaded is not announced
        if only_newer and model.report.trained_at <= self._announced_at():
            return False
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        announcement = ModelAnnouncement(digest, len(content), model.report.trained_at)
        self._storage.write(announcement.object_name, content)
        self._storage.write(_ANNOUNCEMENT_NAME, msgspec.json.encode(announcement))
        return True

    def poll(self) -> DistributedModel | None:
        """Return the announced model, once; None if it is known, cannot be read or is refused."""
        try:
            if not self._storage.exists(_ANNOUNCEMENT_NAME):
                return None
            raw = self._storage.read(_ANNOUNCEMENT_NAME)
            if raw == self._seen:
                return None
            content = self._fetch(raw)
        except StorageError as error:  # it may be there at the next poll
            logger.warning("the announced model was not read: %s", error)
            return None
        except ModelError as error:
            self._seen = raw
            logger.warning("the announced model was ignored: %s", error)
            return None
        self._seen = raw
        return self._load(content)

    def _announced_at(self) -> float:
        """When the announced model was trained; -1 without a usable announcement."""
        if not self._storage.exists(_ANNOUNCEMENT_NAME):
            return -1.0
        try:
            return _decode(self._storage.read(_ANNOUNCEMENT_NAME)).trained_at
        except ModelError:
            return -1.0

    def _fetch(self, raw: bytes) -> bytes:
        announcement = _decode(raw)
        content = self._storage.read(announcement.object_name)
        if hashlib.sha256(content).hexdigest() != announcement.sha256:
            raise ModelError(
                f"{announcement.object_name} in the shared storage is damaged or another file: its "
                f"SHA-256 is not the announced one; publish the model again"
            )
        return content

    def _load(self, content: bytes) -> DistributedModel | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, content)
            model, name = load_named_model(self._path)
        except (ModelError, OSError) as error:
            logger.warning("the announced model was ignored: %s", error)
            return None
        return DistributedModel(model.classifier, name)


def _decode(raw: bytes) -> ModelAnnouncement:
    try:
        return msgspec.json.decode(raw, type=ModelAnnouncement)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(
            f"{_ANNOUNCEMENT_NAME} in the shared storage is no announcement of a model "
            f"({error}); publish the model again"
        ) from error
