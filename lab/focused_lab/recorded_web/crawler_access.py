"""What the crawler asks of recorded webs: see :class:`focused.recorded_web.RecordedWebReader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from focused.web.page import Page
from focused_lab.recorded_web.recorded_web import (
    LABELS_FILE,
    RecordedWeb,
    page_reader,
    read_web_labels,
)
from focused_lab.recorded_web.replay_clock import ReplayClock


@contextmanager
def replay(folder: Path) -> Iterator[str]:
    """Serve the web from a child process; give its address."""
    from focused_lab.recorded_web.replay_process import ReplayProcess  # labels need no server

    with ReplayProcess(folder) as served:
        yield served.address


@contextmanager
def open_pages(folder: Path) -> Iterator[Callable[[str], Page | None]]:
    """Open the web; give the function that reads a page."""
    with RecordedWeb.open(folder) as web:
        yield page_reader(web)


def read_labels(folder: Path) -> Mapping[str, frozenset[str]]:
    """Return the categories of pages by URL."""
    return read_web_labels(folder / LABELS_FILE)


def parse_clock(text: str) -> ReplayClock:
    """Return the clock that FOCUSED_CLOCK describes."""
    return ReplayClock.parse(text)
