"""Installs models, and keeps and restores their earlier versions.

``NAME.joblib`` is the current model. Replaced models are in ``NAME.versions/``, each with
its card and the URLs it was trained on: ``1.joblib``, ``1.md``, ``1.urls``, ``2.joblib`` ...
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from focused.classifier.classifier_file import training_urls_head, training_urls_path
from focused.classifier.model_file import load_model, save_model
from focused.classifier.sample_texts import FetchPage, MessageCallback, text_identity
from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.directory.sample_set import SampleSet
from focused.errors import ModelError, ModelLockedError, os_errors_as
from focused.files import write_atomically
from focused.labels.label_file import Label
from focused.text.documents import page_words
from focused.topic import Topic
from focused.web.page import Page
from focused.web.urls import normalize_url

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


def replace_model(new_model: NewModel, model: Path) -> int | None:
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


@dataclass(frozen=True, slots=True)
class NewModel:
    """A trained model, and the final URLs of the pages it was trained on.

    ``listed_urls`` are the normalised URLs of the directory's samples. ``texts`` identify
    the same pages by content: see :meth:`was_trained_on`.
    """

    model: TrainedModel
    training_urls: frozenset[str]
    texts: frozenset[bytes] = frozenset()
    listed_urls: frozenset[str] = frozenset()

    def was_trained_on(self, page: Page) -> bool:
        """Whether the model was trained on this page, by URL or by identical text."""
        return page.url in self.training_urls or text_identity(page_words(page)) in self.texts


def train_model(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    labels: Sequence[Label] = (),
    on_message: MessageCallback | None = None,
) -> NewModel:
    """Train the topic's model and record its training pages; see :func:`train_topic`."""
    training_urls: set[str] = set()
    listed_urls: set[str] = set()
    texts: set[bytes] = set()

    def fetch_and_note(url: str) -> Page | None:
        page = fetch_page(url)
        if page is not None:
            training_urls.add(page.url)
            texts.add(text_identity(page_words(page)))
        return page

    def note_listed(directory: SampleSet) -> None:
        listed_urls.update(filter(None, (normalize_url(each.url) for each in directory.entries)))

    model = train_topic(
        topic,
        fetch_and_note,
        now=now,
        labels=labels,
        on_message=on_message,
        on_directory=note_listed,
    )
    return NewModel(model, frozenset(training_urls), frozenset(texts), frozenset(listed_urls))


def install_model(new_model: NewModel, path: Path) -> Path:
    """Write model, card and URL list; return the card's path.

    The model is written last, because a running crawl loads it at once. Raises
    :class:`ModelError` when they cannot be written.
    """
    with os_errors_as(ModelError, f"training.model: cannot write beside {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        head = training_urls_head(new_model.model.report.digest)
        urls = sorted(new_model.training_urls | new_model.listed_urls)
        content = "".join(f"{line}\n" for line in (head, *urls))
        write_atomically(training_urls_path(path), content.encode())
    return save_model(new_model.model, path)
