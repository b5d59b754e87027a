"""Progress of long commands: a bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from focused.cli.common import echo
from focused.reports.formatting import single_line


@contextmanager
def page_progress(name: str, doing: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show how much of ``name`` is done; yields a function of (done, total)."""
    with progress_bar() as bar:
        task = bar.add_task(f"{doing} {single_line(name)}", total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


@contextmanager
def step_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show how much of a step is done; yields a function of (step, done, total).

    Without a terminal, a line for each tenth of each step is printed.
    """
    with progress_bar() as bar:
        task = bar.add_task("", total=None)
        printed = ("", -1)

        def advance(step: str, done: int, total: int) -> None:
            nonlocal printed
            bar.update(task, description=step, completed=done, total=total or None)
            tenth = 10 * done // total if total else 0
            if not bar.console.is_terminal and (step, tenth) != printed:
                printed = (step, tenth)
                count = f": {done:,} of {total:,} pages" if total else ""
                echo(f"focused: {step}{count}", err=True)

        yield advance


def progress_bar() -> Progress:
    """Return a bar with counts and times on standard error; nothing without a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
