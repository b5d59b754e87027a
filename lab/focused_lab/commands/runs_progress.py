"""Progress of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import click

from focused.cli.progress_bars import progress_bar
from focused.reports.formatting import single_line

if TYPE_CHECKING:
    from focused_lab.experiment_plan import Trial

_MAX_NAMED = 2


class RunsProgress:
    """Shows how many runs are done, which are running, and the remaining time."""

    def __init__(self, total: int, done: int) -> None:
        self._bar = progress_bar()
        self._total = total
        self._done = done
        self._task = self._bar.add_task("", total=total, completed=done)

    def under_way(self, trials: Sequence[Trial]) -> None:
        """Show the current runs."""
        named = [f"{trial.policy} on {single_line(trial.topic)}" for trial in trials]
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        self._bar.update(self._task, description=", ".join(named[:_MAX_NAMED]) + more)

    def advance(self) -> None:
        """Count a finished run."""
        self._bar.advance(self._task)
        self._done += 1
        tenths = self._done * 10 // self._total
        if tenths > (self._done - 1) * 10 // self._total and not self._bar.console.is_terminal:
            click.echo(f"focused: {self._done} of {self._total} runs are done", err=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
