"""The files of a topic on other machines: through shared storage, named by their SHA-256.

A machine writes them below a folder of its own, each at its absolute path, so that the relative
paths in a topic file still hold. Secrets never enter the storage: they are in the message that
starts a process.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from focused.classifier.classifier_file import kept_marker, training_urls_path
from focused.errors import StorageError
from focused.files import make_private_folder
from focused.rounds.storage import SharedStorage
from focused.topic import Topic

_ENVIRONMENT = "env:"


def store_topic_files(storage: SharedStorage, topic: Topic) -> Mapping[str, str]:
    """Store the files that a topic refers to; return their checksums by path.

    Raises StorageError.
    """
    found = {}
    for path in _files_of(topic):
        if path.is_file():
            content = path.read_bytes()
            digest = found[str(path.absolute())] = hashlib.sha256(content).hexdigest()
            if not storage.exists(_name(digest)):
                storage.write(_name(digest), content)
    return found


def secrets_of(topic: Topic) -> tuple[Mapping[str, str], Mapping[str, bytes]]:
    """Return the variables of the environment that logins refer to, and the files of cookies."""
    references = [
        text for login in topic.login for text in (login.username, login.password, login.token)
    ]
    names = [text.removeprefix(_ENVIRONMENT) for text in references if _ENVIRONMENT in text[:4]]
    cookies = [login.cookies for login in topic.login if login.cookies is not None]
    return (
        {name: os.environ[name] for name in names if name in os.environ},
        {str(path.absolute()): path.read_bytes() for path in cookies},
    )


def write_topic_files(
    storage: SharedStorage, files: Mapping[str, str], secrets: Mapping[str, bytes], folder: Path
) -> None:
    """Write the files of a topic below ``folder``. Raises StorageError if one is damaged."""
    for path, digest in files.items():
        content = storage.read(_name(digest))
        if hashlib.sha256(content).hexdigest() != digest:
            raise StorageError(
                f"{storage.name_of(_name(digest))}, the content of {path}, is damaged; delete it, "
                "and start the same command again"
            )
        _write(path_below(folder, path), content)
    for path, content in secrets.items():
        _write(path_below(folder, path), content)


def path_below(folder: Path, path: str) -> Path:
    """Return where a file with an absolute path is written."""
    return folder / Path(path).relative_to(Path(path).anchor)


def _write(path: Path, content: bytes) -> None:
    make_private_folder(path.parent)
    with suppress(FileNotFoundError):
        path.unlink()
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)


def _files_of(topic: Topic) -> Iterator[Path]:
    training = topic.training
    yield topic.path
    yield from training.directory
    yield from (training.model, training_urls_path(training.model), kept_marker(training.model))
    if training.labels is not None:
        yield training.labels
    yield topic.path.parent / training.link_prior  # a name of a shipped one is no file
    seeds = tomllib.loads(topic.path.read_text(encoding="utf-8-sig")).get("seeds", {})
    if named := seeds.get("file"):
        yield topic.path.parent / named


def _name(digest: str) -> str:
    return f"files/{digest}"
