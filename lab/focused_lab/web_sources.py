"""Open the webs of an experiment: recorded webs, and WARC files, imported as one.

Several WARC files are one web, because a crawl often writes many. They are imported into a folder
beside the comparison, and again when they change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from focused.errors import ConfigurationError, RecordedWebError
from focused_lab.recorded_web.recorded_web import (
    LABELS_FILE,
    RecordedWeb,
    read_details,
    read_web_labels,
    write_details,
)
from focused_lab.recorded_web.web_import import import_warc
from focused_lab.simulation.parsed_web import warc_files_stamp

_IMPORTED_FROM = "imported_from"
_DEFAULT_WARC_NAMES = ("pages", "warc")

Warn = Callable[[str], object]
"""Receives a warning, one line."""


@dataclass(frozen=True, slots=True)
class ExperimentWeb:
    """A recorded web with a unique name; ``labels`` override its own."""

    name: str
    folder: Path
    labels: Path | None = None

    def open(self) -> RecordedWeb:
        """Open the web with its ground-truth labels. Raises RecordedWebError."""
        web = RecordedWeb.open(self.folder)
        if self.labels is not None:
            web.labels = _resolve_labels(web, read_web_labels(self.labels))
        return web

    def stamp(self) -> str:
        """Identify the state of pages and labels."""
        digest = hashlib.sha256(warc_files_stamp(self.folder).encode())
        labels = self.labels or self.folder / LABELS_FILE
        digest.update(labels.read_bytes() if labels.is_file() else b"")
        return digest.hexdigest()


def find_webs(
    sources: Sequence[Path], labels: Path | None, folder: Path, warn: Warn
) -> list[ExperimentWeb]:
    """The webs of ``sources``: one per folder, and one of all WARC files.

    Imported webs go below ``folder``. Raises ConfigurationError, RecordedWebError.
    """
    if labels is not None and not labels.is_file():
        raise ConfigurationError(f"--labels {labels}: there is no such file")
    folders = [source for source in dict.fromkeys(sources) if source.is_dir()]
    files = [source for source in dict.fromkeys(sources) if not source.is_dir()]
    if files:
        folders.append(_import_warcs(files, folder, warn))
    webs: dict[str, ExperimentWeb] = {}
    for each in folders:
        name = str(read_details(each).get("name", each.name))
        name = str(each) if name in webs else name
        webs[name] = ExperimentWeb(name, each, labels)
    return list(webs.values())


def unknown_labels(web: RecordedWeb, labels: Path) -> int:
    """Number of labelled URLs that the web does not have."""
    return sum(web.find(url) is None for url in read_web_labels(labels))


def _resolve_labels(
    web: RecordedWeb, labels: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for url, categories in labels.items():
        recorded = web.find(url)
        if recorded is not None:
            found[recorded] = found.get(recorded, frozenset()) | categories
    return found


def _import_warcs(files: Sequence[Path], folder: Path, warn: Warn) -> Path:
    """Import the WARC files unless they are already, and return the web's folder."""
    for file in files:
        if not file.is_file():
            raise RecordedWebError(
                f"--web {file}: there is no such file or folder; name a recorded web's folder, "
                "or WARC files"
            )
    target = folder / _web_name(files[0])
    state = [[str(f.absolute()), f.stat().st_size, f.stat().st_mtime_ns] for f in files]
    if target.is_dir() and read_details(target).get(_IMPORTED_FROM) == state:
        return target
    imported = import_warc(files, target, target.name)
    write_details(target, {**read_details(target), _IMPORTED_FROM: state})
    passed_over = (
        f"; skipped: {imported.damaged:,} damaged, {imported.skipped:,} that are no pages"
        if imported.damaged or imported.skipped
        else ""
    )
    files_read = "1 WARC file" if len(files) == 1 else f"{len(files)} WARC files"
    warn(f"{target}: {imported.responses:,} responses from {files_read}{passed_over}")
    return target


def _web_name(file: Path) -> str:
    """Name the web of a WARC file; a crawl's ``pages.warc.gz`` is named after its folder."""
    stem = file.name.partition(".")[0]
    return file.absolute().parent.name if stem in _DEFAULT_WARC_NAMES or not stem else stem
