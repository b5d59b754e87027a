"""Recorded webs whose pages change in a replay.

What makes them change is an entry point of the group ``focused.changing_webs``: change histories
come with the extra ``experiments``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from focused.errors import MissingExtraError
from focused.installed_features import INSTALL_LAB, LAB, installed_parts, load_entry_point

if TYPE_CHECKING:
    from focused.recorded_web.recorded_web import RecordedWeb, WebSource
    from focused.recorded_web.replay_clock import ReplayClock

ENTRY_POINT_GROUP = "focused.changing_webs"


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
