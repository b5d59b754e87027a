"""Shared storage: the objects of a crawl in a folder or an object store, through fsspec.

Every object is written atomically: a reader sees its old content or its new content. In a folder
(``file://``) that takes a temporary name, fsync and a rename; object stores do it by themselves.
Credentials and endpoints are those of fsspec and its library for the protocol, from their
environment variables and files.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import fsspec
import xxhash
from fsspec.implementations.local import LocalFileSystem

from focused.errors import StorageError
from focused.files import fsync_folder

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

_READS_AT_ONCE = 16
_PAUSE_S, _MAX_PAUSE_S = 0.1, 10.0
_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 16
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def try_again(call: Callable[[], _T], tries: int = 5) -> _T:
    """Return what ``call`` returns; call again, after longer and longer pauses, if it raises.

    Raises the StorageError of the last try.
    """
    for number in range(tries - 1):
        try:
            return call()
        except StorageError as error:
            logger.warning("%s; it is tried again", error)
        time.sleep(min(_PAUSE_S * 2**number, _MAX_PAUSE_S))
    return call()


def add_digest(content: bytes) -> bytes:
    """Return the content of an object with its checksum before it."""
    return xxhash.xxh3_128_digest(content) + content


def checked(data: bytes) -> bytes:
    """Return what :func:`add_digest` was given. Raises ValueError if it is damaged."""
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if xxhash.xxh3_128_digest(content) != digest:
        raise ValueError("its checksum is wrong")
    return content


class MissingObjectError(StorageError):
    """An object is not in the shared storage."""


class SharedStorage:
    """The objects of one crawl below ``url``; names are paths with ``/``.

    Methods raise :class:`focused.errors.StorageError`, and may be called from any thread.
    """

    def __init__(self, url: str, crawl: str) -> None:
        """``crawl`` is the name of the crawl's folder below ``url``."""
        if not crawl or "/" in crawl or crawl.startswith("."):
            raise StorageError(f"{crawl!r} cannot name a folder of {url}; rename the crawl")
        self.url = f"{url.rstrip('/')}/{crawl}"
        self._fs: Any
        with self._errors("open", ""):
            # Listings must be current: another machine may have written a second ago.
            self._fs, root = fsspec.url_to_fs(url, use_listings_cache=False)
        self._root = f"{root.rstrip('/')}/{crawl}"
        self._is_local = isinstance(self._fs, LocalFileSystem)

    @classmethod
    def at(cls, url: str) -> SharedStorage:
        """Return the storage of a crawl by the URL of its folder."""
        parent, _, crawl = url.rstrip("/").rpartition("/")
        return cls(parent or ".", crawl)

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return the content of an object, or a range of it. Raises MissingObjectError."""
        with self._errors("read", name):
            content: bytes = self._fs.cat_file(self._path(name), start=start, end=end)
        return content

    def read_many(self, names: Iterable[str]) -> Iterator[bytes]:
        """Yield the content of objects in their order, several read at a time."""
        rest = iter(names)
        with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
            while some := list(islice(rest, _READS_AT_ONCE)):
                yield from pool.map(self.read, some)

    def write(self, name: str, content: bytes) -> None:
        """Write an object, or replace it."""
        with self._errors("write", name):
            if self._is_local:
                _write_durably(Path(self._path(name)), lambda file: file.write(content))
            else:
                self._fs.pipe_file(self._path(name), content)

    def upload(self, name: str, path: Path) -> None:
        """Write a local file as an object."""
        with self._errors("write", name):
            if self._is_local:
                with path.open("rb") as source:
                    _write_durably(
                        Path(self._path(name)),
                        lambda file: shutil.copyfileobj(source, file, _CHUNK_BYTES),
                    )
            else:
                self._fs.put_file(str(path), self._path(name))

    def download(self, name: str, path: Path) -> None:
        """Write an object to a local file. Raises MissingObjectError."""
        with self._errors("read", name):
            self._fs.get_file(self._path(name), str(path))

    def exists(self, name: str) -> bool:
        """Whether an object exists that is not empty."""
        with self._errors("read", name):
            try:
                # One request in any object store; exists() of s3fs also lists.
                self._fs.cat_file(self._path(name), start=0, end=1)
            except FileNotFoundError:
                return False
        return True

    def entries(self, folder: str) -> Mapping[str, int | None]:
        """Return what is directly in a folder: sizes of objects by name, None for folders."""
        with self._errors("list", folder):
            try:
                found = self._fs.ls(self._path(folder), detail=True)
            except FileNotFoundError:
                return {}
        named = ((each["name"].rstrip("/").rpartition("/")[2], each) for each in found)
        return {
            name: None if each["type"] == "directory" else int(each["size"])
            for name, each in sorted(named, key=lambda pair: pair[0])
            if name and not name.startswith(".")
        }

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone are skipped."""
        if not names:
            return
        with self._errors("delete", names[0]):
            paths = [self._path(name) for name in names]
            try:
                self._fs.rm(paths)
            except FileNotFoundError:
                for path in paths:
                    with suppress(FileNotFoundError):
                        self._fs.rm_file(path)

    def name_of(self, name: str) -> str:
        """Return the URL of an object, for messages."""
        return f"{self.url}/{name}" if name else self.url

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self, verb: str, name: str) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # each of fsspec's file systems raises errors of its own
            if verb == "read" and isinstance(error, FileNotFoundError):
                raise MissingObjectError(
                    f"{self.name_of(name)} is missing from the shared storage; "
                    "check [cluster] storage, or restore the object from a copy"
                ) from error
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StorageError(
                f"cannot {verb} {self.name_of(name)}: {reason}; {_advice(error)}"
            ) from error


def _advice(error: Exception) -> str:
    """Tell the user what to do about an error of the storage."""
    number = getattr(error, "errno", None)
    if number in _DISK_FULL:
        return "free some space there, the crawl then goes on"
    if isinstance(error, PermissionError) or number in _DENIED:
        return "allow the crawl to read and write there"
    if isinstance(error, ImportError):
        return "install the library that it names on each machine"
    return "check [cluster] storage, the network and the credentials"


def _write_durably(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically. Its temporary name is unique among all machines."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with _create(part) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def _create(path: Path) -> IO[bytes]:
    try:
        return path.open("xb")
    except FileNotFoundError:
        _make_folder(path.parent)
        return path.open("xb")


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, so that they survive a power failure."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    fsync_folder(folder.parent)
