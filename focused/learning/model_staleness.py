"""Whether a topic's model is still the one that its topic file asks for.

A model that somebody left or put in office, though the topic has changed since it was
made, is not made anew behind their back: that is noted beside it, in ``NAME.stays``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from focused.directory.samples import samples_digest
from focused.errors import ModelError
from focused.learning.model_store import load_model
from focused.learning.thresholds import Wish
from focused.topic import Topic
from focused.whole_file import write_whole


def model_is_stale(topic: Topic) -> str | None:
    """Why the topic's model must be trained (again), or None when it is good.

    Compares what the model was made from by content, never by file times.
    """
    path = topic.training.model
    if not path.exists():
        return f"there is no model yet at {path}"
    try:
        model = load_model(path)
    except ModelError as error:
        return str(error)
    why = None
    wish = Wish(topic.training.precision, topic.training.recall)
    if model.report.digest != samples_digest(topic.training):
        why = f"the samples or training.good have changed since {path} was made"
    elif model.report.estimator != topic.training.estimator:
        why = (
            f"training.estimator is {topic.training.estimator}, "
            f"and {path} was made with {model.report.estimator}"
        )
    elif model.report.trial.wish != str(wish):
        why = f"the threshold is to give {wish}, and that of {path} {model.report.trial.wish}"
    return None if why is None or _stays(topic) else why


def keep_in_office(topic: Topic) -> None:
    """Note that the model that is there is to stay, for the topic as it is now.

    Raises :class:`ModelError` when that cannot be written.
    """
    note = _note(topic.training.model)
    try:
        write_whole(note, _terms(topic))
    except OSError as error:
        raise ModelError(f"{note}: cannot be written: {error.strerror}") from error


def _stays(topic: Topic) -> bool:
    try:
        return _note(topic.training.model).read_bytes() == _terms(topic)
    except OSError:
        return False


def _terms(topic: Topic) -> bytes:
    """What was agreed to: this very model, for these samples and wishes."""
    training = topic.training
    model = hashlib.sha256(training.model.read_bytes()).hexdigest()
    wish = Wish(training.precision, training.recall)
    lines = (
        f"model {model}",
        f"samples {samples_digest(topic.training)}",
        training.estimator,
        str(wish),
    )
    return ("\n".join(lines) + "\n").encode()


def _note(model: Path) -> Path:
    return model.with_suffix(".stays")
