"""Recorded webs whose pages change in a replay, the clock of such a replay, and change histories.

What makes them change is an entry point of the group ``focused.changing_webs``: change histories
come with the extra ``experiments``.

A history is a file of tab-separated lines, ``*.tsv`` or ``*.tsv.gz``, one line per event::

    page <TAB> created|changed|deleted <TAB> time <TAB> lines added <TAB> lines deleted

``page`` is any text that identifies the page within its site, usually a path. ``time`` is in
seconds since the epoch. The name of the file, without its suffixes, is the name of the site.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from focused.errors import ConfigurationError, MissingExtraError
from focused.files import write_atomically
from focused.installed_features import INSTALL_LAB, LAB, installed_parts, load_entry_point

if TYPE_CHECKING:
    from focused.recorded_web.recorded_web import RecordedWeb, WebSource

ENTRY_POINT_GROUP = "focused.changing_webs"


@dataclass(frozen=True, slots=True)
class ReplayClock:
    """``start + (real time - real_start) * speed``, in seconds since the epoch.

    Processes of one machine with equal values read the same time. ``real_time`` returns seconds
    since the epoch.
    """

    start: float
    real_start: float
    speed: float = 1.0
    real_time: Callable[[], float] = field(default=time.time, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a value that is not finite, or a speed not above 0."""
        if not all(map(math.isfinite, (self.start, self.real_start, self.speed))):
            raise ConfigurationError(f"clock {str(self)!r}: all values must be finite")
        if self.speed <= 0:
            raise ConfigurationError(f"clock {str(self)!r}: the speed must be above 0")

    def __call__(self) -> float:
        """Return the time."""
        return self.start + (self.real_time() - self.real_start) * self.speed

    def real_s(self, duration_s: float) -> float:
        """Return how many real seconds pass during ``duration_s`` of this clock."""
        return duration_s / self.speed

    def advance_to(self, last: float) -> None:
        """Check that the clock has reached ``last``, the end of the previous session.

        Raises ConfigurationError if not: the crawl cannot set the server's clock forward.
        """
        if self() < last:
            raise ConfigurationError(
                f"the clock of the replayed web is {last - self():.0f} s behind the crawl's last "
                "activity: serve the web with a later --day, or start the crawl anew"
            )

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        return f"{self.start!r},{self.real_start!r},{self.speed!r}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``START,REAL_START,SPEED``. Raises ConfigurationError."""
        try:
            start, real_start, speed = map(float, text.split(","))
        except ValueError:
            raise ConfigurationError(
                f"clock {text!r}: expected START,REAL_START,SPEED in seconds since the epoch, as "
                "'focused web serve --changes' prints it"
            ) from None
        return cls(start, real_start, speed)


class ChangingWeb(Protocol):
    """How the pages of a recorded web change while it is replayed."""

    @classmethod
    def from_options(
        cls,
        changes: Sequence[Path],
        speed: float,
        *,
        day: float = 0.0,
        last_at: float = 0.0,
        truth: Path | None = None,
        **options: float,
    ) -> Self:
        """Make one from the options of ``focused crawl`` and ``focused web serve``.

        The clock runs ``speed`` times as fast as real time. It begins ``day`` days after the start,
        and not before ``last_at``, the last activity of an earlier crawl in seconds since the
        epoch.
        """

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of :meth:`to_json`."""

    def to_json(self) -> str:
        """Return the text that :meth:`from_json` reads."""

    def open(
        self, web: RecordedWeb, real_time: Callable[[], float]
    ) -> tuple[WebSource, ReplayClock]:
        """Return the changing web and its clock.

        ``real_time`` returns seconds since the epoch.
        """


def changing_web_type() -> type[ChangingWeb]:
    """Return the class of webs that change by histories. Raises MissingExtraError without it."""
    point = installed_parts(ENTRY_POINT_GROUP).get("histories")
    if point is None:
        raise MissingExtraError(f"--changes needs {LAB}, which is not installed: {INSTALL_LAB}")
    kind: type[ChangingWeb] = load_entry_point(point)
    return kind


class ChangeKind(StrEnum):
    """What happened to a page."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a page at ``at``; the size of a change is in lines."""

    kind: ChangeKind
    at: float
    lines_added: int = 0
    lines_deleted: int = 0


@dataclass(frozen=True, slots=True)
class PageChanges:
    """The events of one page in order of time.

    The kinds are consistent: a page that exists is changed or deleted, any other is created. The
    first event may be a change or a deletion; the page then existed before the history began.
    """

    page: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SiteChanges:
    """The change history of one site; pages are in the order of the file."""

    site: str
    pages: tuple[PageChanges, ...]


def write_change_history(path: Path, history: SiteChanges) -> None:
    """Write a history atomically, compressed if the name ends with ``.gz``."""
    lines = "".join(
        f"{page.page}\t{change.kind}\t{change.at!r}\t{change.lines_added}\t{change.lines_deleted}\n"
        for page in history.pages
        for change in page.changes
    )
    content = lines.encode()
    if path.suffix == ".gz":
        # A fixed time: equal histories are equal files.
        content = gzip.compress(content, mtime=0)
    write_atomically(path, content)


def page_changes(page: str, changes: Iterable[Change]) -> PageChanges:
    """Return the events in order of time with consistent kinds."""
    return PageChanges(page, tuple(_consistent(sorted(changes, key=_time_of))))


def site_name(path: Path) -> str:
    """Return the site's name: the file's name without ``.tsv`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".tsv")


def _time_of(change: Change) -> float:
    return change.at


def _consistent(changes: Iterable[Change]) -> Iterator[Change]:
    exists: bool | None = None
    for change in changes:
        kind = change.kind
        if exists is True and kind is ChangeKind.CREATED:
            kind = ChangeKind.CHANGED
        elif exists is False and kind is ChangeKind.CHANGED:
            kind = ChangeKind.CREATED
        elif exists is False and kind is ChangeKind.DELETED:
            continue
        exists = kind is not ChangeKind.DELETED
        yield change if kind is change.kind else replace(change, kind=kind)
