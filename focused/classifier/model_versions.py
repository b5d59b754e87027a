"""The earlier versions of a topic's model: numbered, kept, and brought back.

``NAME.joblib`` is the model in office. What it replaced lies in
``NAME.versions/``, each version with its card and the URLs it learned from:
``1.joblib``, ``1.md``, ``1.urls``, ``2.joblib`` ...
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from focused.atomic_file import write_atomically
from focused.classifier.model_file import load_model, save_model, training_urls_path
from focused.classifier.sample_texts import FetchPage, MessageCallback, text_identity
from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.errors import ModelError
from focused.labels.label import Label
from focused.text.documents import page_words
from focused.topic import Topic
from focused.web.page import Page

_CHANGELOG_SUFFIX = ".changes.md"
# The model last: a version is there when its model is.
_VERSION_SUFFIXES = (".md", ".urls", ".joblib")


def versions_folder(model: Path) -> Path:
    """Where the earlier versions lie."""
    return model.with_suffix(".versions")


def list_versions(model: Path) -> list[int]:
    """The numbers of the versions that are kept, ascending."""
    found = versions_folder(model).glob("*.joblib")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal())


def keep_version(model: Path) -> int:
    """Keep the model in office as the next version, with its card; return the number.

    It stays in office. Raises ModelError when it cannot be kept.
    """
    number = max(list_versions(model), default=0) + 1
    folder = versions_folder(model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _copy_model_files(model, folder / f"{number}.joblib")
    except OSError as error:
        raise ModelError(f"{folder}: the old model cannot be kept: {error.strerror}") from error
    return number


def replace_model(made: NewModel, model: Path) -> int | None:
    """Put ``made`` in office; return the number that the old model is kept by, None without one.

    A file that is there and cannot be loaded is not kept. Raises ModelError.
    """
    number = keep_version(model) if _is_loadable(model) else None
    install_model(made, model)
    return number


def _is_loadable(model: Path) -> bool:
    try:
        load_model(model)
    except ModelError:
        return False
    return True


@contextmanager
def lock_model(model: Path) -> Iterator[None]:
    """While the block runs, nobody else who asks for this may replace the model.

    Raises ModelError while somebody does, and where the folder cannot be written.
    """
    path = model.with_name(f".{model.stem}.lock")
    is_new = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise ModelError(
            f"training.model: cannot write beside {model}: {error.strerror}"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ModelError(
                f"{model}: another process is training this model; wait until it is done"
            ) from error
        try:
            yield
        finally:
            if is_new and list(path.parent.iterdir()) == [path]:  # no model was made
                path.unlink()
                path.parent.rmdir()


def restore_version(model: Path, number: int) -> int:
    """Put version ``number`` back in office; what is in office is kept as a version first.

    Returns the number of that. Raises ModelError when there is no such version or
    it cannot be loaded.
    """
    path = versions_folder(model) / f"{number}.joblib"
    if not path.exists():
        there = ", ".join(map(str, list_versions(model))) or "none"
        raise ModelError(f"{model}: there is no version {number}; kept are: {there}")
    load_model(path)
    kept = keep_version(model)
    try:
        _copy_model_files(path, model)
    except OSError as error:
        raise ModelError(f"{model}: cannot be replaced: {error.strerror}") from error
    return kept


def _copy_model_files(source: Path, target: Path) -> None:
    for suffix in _VERSION_SUFFIXES:
        content = source.with_suffix(suffix)
        if content.exists():
            write_atomically(target.with_suffix(suffix), content.read_bytes())
        elif target.with_suffix(suffix).exists():
            target.with_suffix(suffix).unlink()


def prepend_changelog(model: Path, text: str) -> Path:
    """Put ``text`` on top of the model's list of changes; return its path."""
    path = model.with_suffix(_CHANGELOG_SUFFIX)
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_atomically(path, (f"{text.rstrip()}\n\n{before}".rstrip() + "\n").encode())
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from error
    return path


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model, and the URLs of the pages that it learned from as they answered.

    ``texts`` tells the same pages by their words: see :meth:`was_trained_on`.
    """

    model: TrainedModel
    training_urls: frozenset[str]
    texts: frozenset[bytes] = frozenset()

    def was_trained_on(self, page: Page) -> bool:
        """Whether it learned from this page, at this address or word for word at another."""
        return page.url in self.training_urls or text_identity(page_words(page)) in self.texts


def train_model(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    labels: Sequence[Label] = (),
    on_message: MessageCallback | None = None,
) -> NewModel:
    """Train the topic's model and note what it learned from; see :func:`train_topic`."""
    training_urls: set[str] = set()
    texts: set[bytes] = set()

    def fetch_and_note(url: str) -> Page | None:
        page = fetch_page(url)
        if page is not None:
            training_urls.add(page.url)
            texts.add(text_identity(page_words(page)))
        return page

    model = train_topic(topic, fetch_and_note, now=now, labels=labels, on_message=on_message)
    return NewModel(model, frozenset(training_urls), frozenset(texts))


def install_model(made: NewModel, path: Path) -> Path:
    """Write the model, its card and the list of URLs; return the card's path.

    The model last: a crawl that runs takes it over as soon as it is there.
    Raises :class:`ModelError` when they cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        urls = "".join(f"{url}\n" for url in sorted(made.training_urls))
        write_atomically(training_urls_path(path), urls.encode())
    except OSError as error:
        raise ModelError(f"training.model: cannot write beside {path}: {error.strerror}") from error
    return save_model(made.model, path)
