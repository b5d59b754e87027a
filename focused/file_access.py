"""Folders that only their user reads, and files that are regular."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def make_private_folder(folder: Path) -> None:
    """Create a folder, unless it exists, that other users cannot read. Raises OSError.

    What a crawl stores can be pages behind a login. Missing parents get the usual rights, and an
    existing folder keeps its own.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError for a FIFO, which would wait for a writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "this is no regular file", str(path))
    return open(file, "rb")
