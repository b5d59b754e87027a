"""Refuse further writes to a state after a failed write, or after a damaged row was read."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import lmdb

from focused.errors import StateError
from focused.frontier import environment

# A disk that took a part of what was written is an lmdb.Error without a name of its own.
DISK_ERRORS = (lmdb.Error, OSError)


def advice(error: Exception) -> str:
    """What the user does about a write that failed."""
    is_read_only = isinstance(error, OSError) and error.errno == errno.EROFS
    return "make the disk writable" if is_read_only else "free some disk"


class Soundness:
    """Of the state in one folder: what writes its tables and its journal shares it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._error: StateError | None = None
        """Why nothing may be written any more."""

    @property
    def holds(self) -> bool:
        """Whether all could be read and written so far."""
        return self._error is None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Write to the disk in here. Raises StateError when that fails, or anything did before."""
        self.check()
        try:
            yield
        except DISK_ERRORS as error:
            raise self.lost(error) from error

    def check(self) -> None:
        """Raise the first error again, which a caller may have taken for a single page's."""
        if self._error is not None:
            raise StateError(str(self._error)) from self._error

    def damaged(self, reason: str) -> StateError:
        """The error that tells that what was read is damaged; from here on nothing is written."""
        self._error = self._error or environment.damaged(self._folder, ValueError(reason))
        return self._error

    def lost(self, error: Exception) -> StateError:
        """The error that tells that something could not be written; from here on nothing is."""
        if isinstance(error, lmdb.BadValsizeError):
            raise error  # it is the caller's: no key is so long
        # Tables and journal may differ now: only what is on the disk can be believed.
        self._error = self._error or StateError(
            f"cannot write to {self._folder}: {error}. What was fetched before is safe; "
            f"{advice(error)} and start the same command again."
        )
        return self._error
