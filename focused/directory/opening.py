"""Directory files opened, compressed or not, and read line by line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from focused.errors import ConfigurationError

MAX_LINE_BYTES = 16_000_000
CUT_OFF = "place where the file is cut off or damaged; the rest was not read"
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What reading a compressed file that is cut off or damaged raises."""

_OPENERS: dict[str, Callable[..., object]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def plain_name(path: Path) -> str:
    """The file's name in lower case, without the ending that tells its compression."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in _OPENERS else name


def opened(path: Path) -> BufferedIOBase:
    """The file's bytes, decompressed by its ending (.gz, .xz, .bz2).

    Raises :class:`ConfigurationError` when it cannot be opened, and for a pipe or device:
    a directory is read more than once.
    """
    if path.exists() and not path.is_file():
        raise ConfigurationError(
            f"training.directory: {path}: is no regular file; copy what it gives into one"
        )
    try:
        return cast(BufferedIOBase, _OPENERS.get(path.suffix.lower(), open)(path, "rb"))
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> ConfigurationError:
    """The error for a file that cannot be read, or not to its end."""
    reason = getattr(error, "strerror", None) or error
    return ConfigurationError(f"training.directory: cannot read {path}: {reason}")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, from 1 on, without their ends; blank ones left out.

    Raises :class:`ConfigurationError` naming the file, and the line that is not UTF-8
    or longer than :data:`MAX_LINE_BYTES`.
    """
    with opened(path) as file:
        try:
            for number, line in enumerate(byte_lines(file), start=1):
                text = _text(line, number, path)
                if text.strip():
                    yield number, text.rstrip("\r\n")
        except (OSError, *DAMAGED) as error:
            raise unreadable(path, error) from error


def byte_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """The lines of a file with their ends; those too long in pieces."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line


def _text(line: bytes, number: int, path: Path) -> str:
    if len(line) > MAX_LINE_BYTES:
        raise ConfigurationError(
            f"{path}:{number}: longer than {MAX_LINE_BYTES // 10**6} MB; is this a "
            "directory of one sample a line?"
        )
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}:{number}: not UTF-8 text; save it as UTF-8") from error
