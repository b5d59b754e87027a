"""A directory read as a whole, from all its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from focused.directory.entry import DirectoryEntry
from focused.directory.tsv import read_tsv
from focused.errors import TrainingError


def read_directory(paths: Sequence[Path]) -> list[DirectoryEntry]:
    """All samples of the files, in order.

    Raises :class:`ConfigurationError` naming file and line for a file that
    cannot be read or a line that is no sample, and :class:`TrainingError`
    when the files hold no sample at all.
    """
    entries = [entry for path in paths for entry in read_tsv(path)]
    if not entries:
        files = ", ".join(str(path) for path in paths) or "none given"
        raise TrainingError(
            f"training.directory holds no samples (files: {files}): "
            "add lines of category <TAB> url <TAB> title <TAB> description"
        )
    return entries
