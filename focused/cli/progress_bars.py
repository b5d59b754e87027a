"""Progress of long commands: a bar on the terminal, else a line for each tenth."""

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

from focused.reports.formatting import single_line


@contextmanager
def page_progress(name: str, doing: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show how much of ``name`` is done; yields a function of (done, total)."""
    with progress_bar() as bar:
        task = bar.add_task(f"{doing} {single_line(name)}", total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


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
