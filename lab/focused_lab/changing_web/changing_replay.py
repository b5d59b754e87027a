"""Serve a recorded web as a changing one: open it, write its truth, and run its clock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from focused.durations import DAY_S
from focused.errors import ConfigurationError
from focused_lab.change_history import read_change_history, write_change_history
from focused_lab.changing_web.change_options import ChangeOptions
from focused_lab.changing_web.changing_web import ChangingWeb
from focused_lab.recorded_web.recorded_web import RecordedResponse, RecordedWeb, WebSource
from focused_lab.recorded_web.replay_clock import ReplayClock


@dataclass(frozen=True, slots=True)
class ChangingReplay:
    """How a replay server serves a recorded web as a changing one.

    ``changes`` are files of change histories. The clock begins ``day`` days after the start of the
    histories and runs ``speed`` times as fast as real time. ``truth`` is a folder for the true
    histories (:func:`write_truth`).
    """

    changes: tuple[Path, ...]
    options: ChangeOptions = field(default_factory=ChangeOptions)
    speed: float = 1.0
    day: float = 0.0
    truth: Path | None = None

    def open(
        self, web: RecordedWeb, real_time: Callable[[], float]
    ) -> tuple[WebSource, ReplayClock]:
        """Open the changing web and write its truth; the clock begins when this is done.

        Raises ConfigurationError if a change history cannot be read or the truth not be written.
        """
        changing = open_changing_web(web, self)
        clock = self.clock(real_time())
        return ChangingSource(changing, clock), clock

    def clock(self, real_start: float) -> ReplayClock:
        """Return the clock that begins at ``real_start``, in seconds since the epoch."""
        return ReplayClock(self.options.start + self.day * DAY_S, real_start, self.speed)


def open_changing_web(web: RecordedWeb, replay: ChangingReplay) -> ChangingWeb:
    """Open the changing web of a replay, and write its truth.

    Raises ConfigurationError if a change history cannot be read or the truth cannot be written.
    """
    histories = [read_change_history(path) for path in replay.changes]
    changing = ChangingWeb(web, histories, replay.options)
    if replay.truth is not None:
        write_truth(replay.truth, changing)
    return changing


def write_truth(folder: Path, changing: ChangingWeb) -> None:
    """Write the true history of each host, whose pages are URLs, as ``HOST.tsv.gz``.

    For evaluation only. Raises ConfigurationError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for history in changing.true_changes():
            write_change_history(folder / f"{history.site}.tsv.gz", history)
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: the true histories cannot be written: {error.strerror}"
        ) from error


class ChangingSource:
    """The responses of a changing web at the time of a clock."""

    def __init__(self, web: ChangingWeb, clock: Callable[[], float]) -> None:
        self._web = web
        self._clock = clock

    @property
    def hosts(self) -> Collection[str]:
        """The recorded hosts."""
        return self._web.hosts

    def get(self, url: str) -> RecordedResponse | None:
        """Return the response to an unconditional request now, or None."""
        return self._web.response_at(url, self._clock())
