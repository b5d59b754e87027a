"""A directory of sample pages: which pages stand for which category.

A directory file is UTF-8 text in the manner of DMOZ, one sample a line::

    category <TAB> url <TAB> title <TAB> description

Title and description may be left out; lines that start with ``#`` and blank
lines are skipped, a header line of those column names too. Categories are
paths such as ``Top/Computers/Databases``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from focused.errors import ConfigurationError, TrainingError
from focused.web.url import normalise

_MAX_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One sample: ``url`` is absolute and normalised; texts may be ``""``."""

    category: str
    url: str
    title: str = ""
    description: str = ""


def read_directory(paths: Sequence[Path]) -> list[DirectoryEntry]:
    """All samples of the files, in order.

    Raises :class:`ConfigurationError` naming file and line for a file that
    cannot be read or a line that is no sample, and :class:`TrainingError`
    when the files hold no sample at all.
    """
    entries = [entry for path in paths for entry in _read_file(path)]
    if not entries:
        files = ", ".join(str(path) for path in paths) or "none given"
        raise TrainingError(
            f"training.directory holds no samples (files: {files}): "
            "add lines of category <TAB> url <TAB> title <TAB> description"
        )
    return entries


def _read_file(path: Path) -> Iterable[DirectoryEntry]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"training.directory: cannot read {path}: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(f"{path}:{line}: not UTF-8 text; save it as UTF-8") from error
    # split("\n"), not splitlines(): descriptions may hold U+2028 and its like.
    for number, sample in enumerate(text.split("\n"), start=1):
        if sample.strip() and not sample.startswith("#"):
            fields = [field.strip() for field in sample.split("\t")]
            if [field.lower() for field in fields[:2]] != ["category", "url"]:
                yield _entry(fields, f"{path}:{number}")


def _entry(fields: list[str], where: str) -> DirectoryEntry:
    if not 2 <= len(fields) <= _MAX_COLUMNS:
        raise ConfigurationError(
            f"{where}: {len(fields)} column(s); expected "
            "category <TAB> url <TAB> title <TAB> description, separated by tabs"
        )
    category = "/".join(part.strip() for part in fields[0].split("/") if part.strip())
    if not category:
        raise ConfigurationError(f"{where}: the category is empty")
    url = normalise(fields[1])
    if url is None:
        raise ConfigurationError(f"{where}: {fields[1]!r} is no http or https address")
    title, description = [*fields[2:], "", ""][:2]
    return DirectoryEntry(category, url, title, description)


def is_below(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or lies below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")


def good_categories(categories: Iterable[str], good_prefixes: Sequence[str]) -> frozenset[str]:
    """Those of ``categories`` that are a good prefix or lie below one.

    Raises :class:`TrainingError` naming ``training.good`` when a prefix has
    no category, with the nearest names there are.
    """
    known = sorted(set(categories))
    for prefix in good_prefixes:
        if not any(is_below(category, prefix) for category in known):
            raise TrainingError(
                f"training.good: {prefix!r} has no sample in the directory; "
                f"its categories are {_some(known)}"
            )
    return frozenset(
        category for category in known if any(is_below(category, good) for good in good_prefixes)
    )


def _some(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The directory's samples, each URL once. ``good[i]`` tells entry i's side.

    ``conflicts`` counts the URLs listed both in a good and in another
    category (they are good: a page may be about more than one thing);
    ``repeats`` counts the further lines dropped.
    """

    entries: tuple[DirectoryEntry, ...]
    good: tuple[bool, ...]
    conflicts: int = 0
    repeats: int = 0


def sample_set(entries: Sequence[DirectoryEntry], good_prefixes: Sequence[str]) -> SampleSet:
    """Put each URL on one side: good if any of its lines is good.

    A URL keeps its first line on that side. Raises :class:`TrainingError`
    as :func:`good_categories` does.
    """
    good = good_categories((entry.category for entry in entries), good_prefixes)
    chosen: dict[str, DirectoryEntry] = {}
    sides: dict[str, set[bool]] = {}
    for entry in entries:
        side = entry.category in good
        seen = sides.setdefault(entry.url, set())
        if not seen or (side and True not in seen):
            chosen[entry.url] = entry
        seen.add(side)
    return SampleSet(
        entries=tuple(chosen.values()),
        good=tuple(entry.category in good for entry in chosen.values()),
        conflicts=sum(len(seen) > 1 for seen in sides.values()),
        repeats=len(entries) - len(chosen),
    )
