"""Model files: a classifier and its training report, written with joblib; their versions.

:mod:`focused.classifier.classifier_file` reads them without executing code.

``NAME.joblib`` is the current model. Replaced models are in ``NAME.versions/``, each with
its card and the URLs it was trained on: ``1.joblib``, ``1.md``, ``1.urls``, ``2.joblib`` ...
"""

from __future__ import annotations

import fcntl
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused import __version__
from focused.classifier.calibration_fitting import ClassifierMetrics, ReliabilityBin
from focused.classifier.classifier_file import (
    ARRAY_DTYPE,
    MODEL_FORMAT,
    MODEL_FORMAT_VERSION,
    build_classifier,
    content_digest,
    kept_marker,
    kept_state,
    raising_model_errors,
    read_model_file,
    training_urls_head,
    training_urls_path,
)
from focused.classifier.semantic_scorer import SemanticScorer
from focused.classifier.training_report import (
    SampleCounts,
    TrainedModel,
    TrainingReport,
    ValidationReport,
    render_model_card,
)
from focused.errors import ModelError, ModelLockedError, os_errors_as
from focused.files import write_atomically
from focused.spam.spam_classifier import SpamClassifier
from focused.topic import Topic

_PICKLE_PROTOCOL = 4  # the default differs between Python versions


def save_model(model: TrainedModel, path: Path) -> Path:
    """Write the model to ``path`` and its card beside it, each atomically.

    The same model gives the same bytes. Returns the card's path, ``path`` with suffix ``.md``.
    Raises :class:`ModelError` when they cannot be written.
    """
    import joblib  # slow to import

    meta = json.dumps(_model_metadata(model), ensure_ascii=False, sort_keys=True)
    arrays = {name: _pack_array(array) for name, array in sorted(_model_arrays(model).items())}
    content = {
        "format": MODEL_FORMAT,
        "version": MODEL_FORMAT_VERSION,
        "digest": content_digest(meta, arrays),
        "meta": meta,
        "arrays": arrays,
    }
    buffer = io.BytesIO()
    joblib.dump(content, buffer, protocol=_PICKLE_PROTOCOL)
    card = path.with_suffix(".md")
    with os_errors_as(ModelError, f"training.model: cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())
        write_atomically(card, render_model_card(model, _library_versions()).encode())
    return card


def load_model(path: Path) -> TrainedModel:
    """Read a model file without executing code.

    Raises :class:`ModelError` for a file that is missing, damaged, foreign, unsafe, or newer
    than this program.
    """
    content = read_model_file(path)
    with raising_model_errors(path):
        classifier = build_classifier(content.meta, content.arrays)
        model = TrainedModel(classifier, _build_report(content.meta["report"]))
    _ = classifier.spam  # which is built at its first use, and may raise
    return model


def _model_arrays(model: TrainedModel) -> dict[str, NDArray[np.float32]]:
    classifier = model.classifier
    semantic, lead = classifier.semantic, classifier.lead
    spam = classifier.spam
    none = np.zeros((0, 0), np.float32)
    return {
        "lead": np.zeros(0, np.float32) if lead is None else lead.direction.astype(np.float32),
        "semantic": np.zeros(0, np.float32)
        if semantic is None
        else semantic.direction.astype(np.float32),
        "spam_knots": none if spam is None else spam.knots,
        "spam_values": none if spam is None else spam.values,
        "popular_frequencies": none.ravel() if spam is None else spam.popular.frequencies,
        "popular_pairs": none if spam is None else spam.popular.pair_scores,
        "idf": classifier.vocabulary.idf,
        "weights": classifier.weights,
        "log_prior": classifier.taxonomy.log_prior,
        "log_likelihood": classifier.taxonomy.log_likelihood,
    }


def _model_metadata(model: TrainedModel) -> dict[str, Any]:
    classifier = model.classifier
    return {
        "words": classifier.vocabulary.words,
        "bias": classifier.bias,
        "categories": classifier.taxonomy.categories,
        "good": classifier.taxonomy.good,
        "parents": classifier.taxonomy.parents,
        "calibration": asdict(classifier.calibration),
        "semantic": _semantic_metadata(classifier.semantic),
        "lead_bias": 0.0 if classifier.lead is None else classifier.lead.bias,
        "spam": _spam_metadata(classifier.spam),
        "report": asdict(model.report),
    }


def _semantic_metadata(semantic: SemanticScorer | None) -> dict[str, Any]:
    if semantic is None:
        return {"embedding": ""}
    return {"embedding": semantic.embedding_name, "bias": semantic.bias, "slope": semantic.slope}


def _spam_metadata(spam: SpamClassifier | None) -> dict[str, Any] | None:
    if spam is None:
        return None
    return {
        "words": spam.popular.words,
        "bias": spam.bias,
        "good_mean": spam.good_mean,
        "spam_mean": spam.spam_mean,
        "sites": spam.spam_sites,
    }


def _build_report(fields: dict[str, Any]) -> TrainingReport:
    trial: dict[str, Any] = {
        name: ClassifierMetrics(**value)
        if isinstance(value, dict)
        else _as_tuple(value, ReliabilityBin)
        for name, value in fields.pop("trial").items()
    }
    samples = {name: _as_tuple(value, None) for name, value in fields.pop("samples").items()}
    rest = {name: _as_tuple(value, None) for name, value in fields.items()}
    return TrainingReport(samples=SampleCounts(**samples), trial=ValidationReport(**trial), **rest)


def _as_tuple(value: Any, of: type[ReliabilityBin] | None) -> Any:
    """Convert JSON lists back to tuples, and dicts in them to ``of``."""
    if not isinstance(value, list):
        return value
    return tuple(of(**one) if of and isinstance(one, dict) else _as_tuple(one, of) for one in value)


def _pack_array(array: NDArray[np.float32]) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype=ARRAY_DTYPE)
    return {"dtype": ARRAY_DTYPE, "shape": list(little.shape), "data": little.tobytes()}


def _library_versions() -> list[tuple[str, str]]:
    return [
        ("focused", __version__),
        ("scikit-learn", version("scikit-learn")),
        ("numpy", np.__version__),
        ("joblib", version("joblib")),
        ("model format", str(MODEL_FORMAT_VERSION)),
    ]


def keep_current_model(topic: Topic) -> None:
    """Record in ``NAME.stays`` that the current model is to stay for the topic as it is.

    Raises :class:`ModelError` when that cannot be written.
    """
    note = kept_marker(topic.training.model)
    with os_errors_as(ModelError, f"{note}: cannot be written"):
        write_atomically(note, kept_state(topic))


_CHANGELOG_SUFFIX = ".changes.md"
# The model last: a version exists once its model does.
_VERSION_SUFFIXES = (".md", ".urls", ".joblib")


def versions_folder(model: Path) -> Path:
    """Return the folder of earlier versions."""
    return model.with_suffix(".versions")


def list_versions(model: Path) -> list[int]:
    """Return the numbers of the earlier versions, ascending."""
    found = versions_folder(model).glob("*.joblib")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal())


def keep_version(model: Path) -> int:
    """Copy the current model to the next version; return its number. Raises ModelError."""
    number = max(list_versions(model), default=0) + 1
    folder = versions_folder(model)
    with os_errors_as(ModelError, f"{folder}: the old model cannot be kept"):
        folder.mkdir(parents=True, exist_ok=True)
        _copy_model_files(model, folder / f"{number}.joblib")
    return number


def replace_model(new_model: TrainedModel, model: Path) -> int | None:
    """Install ``new_model``; return the version number of the old model, None if there was none.

    An old file that cannot be loaded is not kept. Raises ModelError.
    """
    number = keep_version(model) if _is_loadable(model) else None
    install_model(new_model, model)
    return number


def _is_loadable(model: Path) -> bool:
    try:
        load_model(model)
    except ModelError:
        return False
    return True


@contextmanager
def lock_model(model: Path) -> Iterator[None]:
    """Lock the model against replacement by other processes while the block runs.

    Raises ModelLockedError if it is locked, ModelError if its folder cannot be written.
    """
    path = model.with_name(f".{model.stem}.lock")
    is_new = not path.parent.exists()
    with os_errors_as(ModelError, f"training.model: cannot write beside {model}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ModelLockedError(
                f"{model}: another process is training this model; wait until it finishes"
            ) from error
        try:
            yield
        finally:
            if is_new and list(path.parent.iterdir()) == [path]:  # no model was made
                path.unlink()
                path.parent.rmdir()


def restore_version(model: Path, number: int) -> int:
    """Make version ``number`` current again, after keeping the current model as a version.

    Returns the number of the kept version. Raises ModelError if the version does not exist or
    cannot be loaded.
    """
    path = versions_folder(model) / f"{number}.joblib"
    if not path.exists():
        there = ", ".join(map(str, list_versions(model))) or "none"
        raise ModelError(f"{model}: there is no version {number}; kept are: {there}")
    load_model(path)
    kept = keep_version(model)
    with os_errors_as(ModelError, f"{model}: cannot be replaced"):
        _copy_model_files(path, model)
    return kept


def _copy_model_files(source: Path, target: Path) -> None:
    for suffix in _VERSION_SUFFIXES:
        content = source.with_suffix(suffix)
        if content.exists():
            write_atomically(target.with_suffix(suffix), content.read_bytes())
        elif target.with_suffix(suffix).exists():
            target.with_suffix(suffix).unlink()


def prepend_changelog(model: Path, text: str) -> Path:
    """Add ``text`` at the top of the model's changelog; return its path."""
    path = model.with_suffix(_CHANGELOG_SUFFIX)
    with os_errors_as(ModelError, f"{path}: cannot be written"):
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_atomically(path, (f"{text.rstrip()}\n\n{before}".rstrip() + "\n").encode())
    return path


def install_model(model: TrainedModel, path: Path) -> Path:
    """Write model, card and URL list; return the card's path.

    The model is written last, because a running crawl loads it at once. Raises
    :class:`ModelError` when they cannot be written.
    """
    with os_errors_as(ModelError, f"training.model: cannot write beside {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        head = training_urls_head(model.report.digest)
        urls = sorted(model.training_urls | model.listed_urls)
        content = "".join(f"{line}\n" for line in (head, *urls))
        write_atomically(training_urls_path(path), content.encode())
    return save_model(model, path)
